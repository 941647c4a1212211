package docstore

import (
	"errors"
	"fmt"
	"math"
)

// decodeMargin is how far past a unit its decoder may write, since copies are rounded up to whole
// chunks of copyChunk bytes.
const (
	copyChunk    = 16
	decodeMargin = 2 * copyChunk
)

var (
	errCut    = errors.New("a unit's encoding ends too early")
	errLong   = errors.New("a unit's encoding stands for more bytes than the unit has")
	errShort  = errors.New("a unit's encoding stands for fewer bytes than the unit has")
	errOffset = errors.New("a match lies before the dictionary")
)

// decoder decodes one unit as far as requested, into a buffer with the unit's dictionary before it
// and decodeMargin bytes after it, which it may overwrite. Having both in one slice makes it twice
// as fast as a decoder that looks for the place of every match. If a unit is read only up to some
// place, the rest is not even checked.
type decoder struct {
	encoded []byte
	plain   bool // the encoding is the unit itself
	next    uint // in encoded
	at, end uint // in the buffer: the next byte to decode, and the end of the unit
}

// begin prepares the decoder for the unit [start, start+n) of a buffer.
func (d *decoder) begin(start, n int, encoded []byte) error {
	if len(encoded) > n {
		return fmt.Errorf("a unit of %d bytes takes %d", n, len(encoded))
	}
	*d = decoder{encoded: encoded, plain: len(encoded) == n, at: uint(start), end: uint(start + n)}
	return nil
}

// until continues until at least the unit's bytes before to are decoded.
func (d *decoder) until(buf []byte, to int) (err error) {
	switch {
	case d.at >= uint(to) || d.at == d.end:
		return nil
	case d.plain:
		copy(buf[d.at:d.end], d.encoded)
		d.at = d.end
		return nil
	case uint(to) >= d.end:
		to = math.MaxInt // so that the end of the encoding is checked
	}
	d.at, d.next, err = decodeLZ4(buf[:d.end+decodeMargin], d.at, uint(to), d.encoded, d.next)
	return err
}

// decodeLZ4 decodes an LZ4 block from next on to buf from at on. It stops once it has reached to, or
// decodeMargin bytes before the end of buf, and returns both positions.
func decodeLZ4(buf []byte, at, to uint, src []byte, next uint) (uint, uint, error) {
	end := uint(len(buf)) - decodeMargin
	for at < to && next < uint(len(src)) {
		token := uint(src[next])
		next++
		literals, length := token>>4, token&15
		if literals < 15 && next+copyChunk+2 <= uint(len(src)) && at+literals <= end {
			*(*[copyChunk]byte)(buf[at : at+copyChunk]) = *(*[copyChunk]byte)(src[next : next+copyChunk])
		} else {
			if literals, next = readLength(literals, src, next); literals > uint(len(src))-next {
				return at, next, errCut
			}
			if literals > end-at {
				return at, next, errLong
			}
			copy(buf[at:end], src[next:next+literals])
			if next+literals == uint(len(src)) { // the last sequence has no match
				return at + literals, next + literals, checkEnd(at+literals, end, length)
			}
		}
		at, next = at+literals, next+literals
		if next+2 > uint(len(src)) {
			return at, next, errCut
		}
		offset := uint(src[next]) | uint(src[next+1])<<8
		next += 2
		if offset == 0 || offset > at {
			return at, next, errOffset
		}
		if length == 15 {
			length, next = readLength(length, src, next)
		}
		if length += minMatch; length > end-at {
			return at, next, errLong
		}
		copyMatch(buf, at, offset, length)
		at += length
	}
	if at < to {
		return at, next, errCut
	}
	return at, next, nil
}

// checkEnd checks the last sequence, whose literals must reach the end.
func checkEnd(at, end, length uint) error {
	switch {
	case at < end:
		return errShort
	case length > 0: // of a match that does not exist
		return errCut
	}
	return nil
}

// readLength reads the bytes that follow four bits of a length.
func readLength(length uint, src []byte, next uint) (sum, after uint) {
	if length < 15 {
		return length, next
	}
	for next < uint(len(src)) {
		more := src[next]
		length += uint(more)
		next++
		if more != 255 {
			break
		}
	}
	return length, next
}

// copyMatch copies length bytes within buf to at, from offset bytes before.
func copyMatch(buf []byte, at, offset, length uint) {
	from, end := at-offset, at+length
	if offset < copyChunk { // the match repeats itself
		for ; at < end; at++ {
			buf[at] = buf[from]
			from++
		}
		return
	}
	for ; at < end; at += copyChunk {
		*(*[copyChunk]byte)(buf[at : at+copyChunk]) = *(*[copyChunk]byte)(buf[from : from+copyChunk])
		from += copyChunk
	}
}
