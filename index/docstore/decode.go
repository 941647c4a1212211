package docstore

import (
	"errors"
	"fmt"
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

// decodeUnit decodes the unit [start, start+n) of a buffer with the unit's dictionary before it and decodeMargin bytes after it,
// which it may overwrite. Having all of it in one slice makes it twice as fast as a decoder that looks for the place of every
// match.
func decodeUnit(buf []byte, start, n int, encoded []byte) error {
	switch {
	case len(encoded) > n:
		return fmt.Errorf("a unit of %d bytes takes %d", n, len(encoded))
	case len(encoded) == n: // the encoding is the unit itself
		copy(buf[start:], encoded)
		return nil
	}
	return decodeLZ4(buf[:start+n+decodeMargin], uint(start), encoded)
}

// decodeLZ4 decodes an LZ4 block to buf from at on, as far as decodeMargin bytes before its end.
func decodeLZ4(buf []byte, at uint, src []byte) error {
	end, next := uint(len(buf))-decodeMargin, uint(0)
	for next < uint(len(src)) {
		token := uint(src[next])
		next++
		literals, length := token>>4, token&15
		if literals < 15 && next+copyChunk+2 <= uint(len(src)) && at+literals <= end {
			*(*[copyChunk]byte)(buf[at : at+copyChunk]) = *(*[copyChunk]byte)(src[next : next+copyChunk])
		} else {
			if literals, next = readLength(literals, src, next); literals > uint(len(src))-next {
				return errCut
			}
			if literals > end-at {
				return errLong
			}
			copy(buf[at:end], src[next:next+literals])
			if next+literals == uint(len(src)) { // the last sequence has no match
				return checkEnd(at+literals, end, length)
			}
		}
		at, next = at+literals, next+literals
		if next+2 > uint(len(src)) {
			return errCut
		}
		offset := uint(src[next]) | uint(src[next+1])<<8
		next += 2
		if offset == 0 || offset > at {
			return errOffset
		}
		if length == 15 {
			length, next = readLength(length, src, next)
		}
		if length += minMatch; length > end-at {
			return errLong
		}
		copyMatch(buf, at, offset, length)
		at += length
	}
	return errCut
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
