package docstore

import "math/bits"

const (
	// windowSize is how far the offsets of LZ4 reach: a dictionary and a unit.
	windowSize = 1 << 16
	// unitStart is where the unit starts in a window, right after the dictionary.
	unitStart = windowSize - SuperblockSize
	// MaxDictionary is the longest dictionary, in bytes: the end of a unit
	// could not reach the start of a longer one.
	MaxDictionary = unitStart

	// minMatch is the shortest match of LZ4. The last lastLiterals bytes of a
	// unit are literals, and no match starts in the last matchMargin bytes.
	minMatch, lastLiterals, matchMargin = 4, 5, 12
	// maxEncoded is the longest encoding of a unit, with only literals.
	maxEncoded = SuperblockSize + SuperblockSize/255 + 16
	// wordMargin is how far past a window words may be loaded.
	wordMargin = 16

	// hashPrime spreads bits upwards: 2^64 divided by the golden ratio.
	hashPrime = 0x9E3779B185EBCA87
)

// window is where an encoder finds matches: a dictionary followed by the unit.
// A place in it fits into 16 bits. Place 0 stands for none, so the first byte
// of the longest dictionary cannot be used.
type window struct {
	data [windowSize + wordMargin]byte
	low  uint // where the dictionary starts, at least 1
	out  [maxEncoded]byte
}

// load puts a dictionary before the unit.
func (w *window) load(dict []byte) {
	copy(w.data[unitStart-len(dict):], dict)
	w.low = max(1, unitStart-uint(len(dict)))
}

// word returns the eight bytes at a place.
func (w *window) word(at uint16) uint64 { return le.Uint64(w.data[at : uint(at)+8]) }

// common returns how many bytes from p and from q on are equal, where p < q; it
// stops at end.
func (w *window) common(p, q, end uint) uint {
	start := q
	for q < end {
		if x := le.Uint64(w.data[p:p+8]) ^ le.Uint64(w.data[q:q+8]); x != 0 {
			q += uint(bits.TrailingZeros64(x)) / 8
			break
		}
		p, q = p+8, q+8
	}
	return min(q, end) - start
}

// appendSequence appends an LZ4 sequence: the literals [from, to) and a match
// of length bytes, offset bytes before to.
func (w *window) appendSequence(dst []byte, from, to, offset, length uint) []byte {
	n, more, at := to-from, length-minMatch, len(dst)
	if n < 15 && more < 15 && at+1+16 <= cap(dst) { // nearly all: no lengths after the token
		short := dst[at : at+1+16]
		short[0] = byte(n<<4 | more)
		*(*[16]byte)(short[1:]) = *(*[16]byte)(w.data[from : from+16])
		dst = dst[:at+1+int(n)]
	} else {
		dst = w.appendLiterals(dst, from, to)
		dst[at] |= byte(min(more, 15))
	}
	dst = append(dst, byte(offset), byte(offset>>8))
	return appendLength(dst, more)
}

// appendLiterals appends a token with the length of a run of literals, and the
// literals.
func (w *window) appendLiterals(dst []byte, from, to uint) []byte {
	dst = appendLength(append(dst, byte(min(to-from, 15)<<4)), to-from)
	return append(dst, w.data[from:to]...)
}

// appendLength appends the part of a length that does not fit into four bits of
// a token.
func appendLength(dst []byte, n uint) []byte {
	if n < 15 {
		return dst
	}
	for n -= 15; n >= 255; n -= 255 {
		dst = append(dst, 255)
	}
	return append(dst, byte(n))
}
