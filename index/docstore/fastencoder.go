package docstore

import "math/bits"

const (
	dictionaryBits = 16 // of a hash of dictionaryBytes in the dictionary
	unitBits       = 12 // of a hash of unitBytes in the unit

	// missShift says how fast steps grow where there are no matches: by one
	// byte for each 2^missShift misses.
	missShift = 5
)

// fastEncoder takes the first match that it finds, as LZ4 itself does. It looks
// in two tables, one of the dictionary, which stays, and one of the unit. Each
// has the last place of each hash, and the encoder takes the longer match. It
// hashes six bytes of the dictionary and five of the unit: fewer bytes find
// more matches that are too short to pay.
type fastEncoder struct {
	window

	inDictionary [1 << dictionaryBits]uint16
	inUnit       [1 << unitBits]uint16
}

func hash6(word uint64) uint64 { return word << 16 * hashPrime >> (64 - dictionaryBits) }
func hash5(word uint64) uint64 { return word << 24 * hashPrime >> (64 - unitBits) }

func (e *fastEncoder) setDictionary(dict []byte) {
	e.load(dict)
	clear(e.inDictionary[:])
	for at := e.low; at+8 <= unitStart; at++ {
		e.inDictionary[hash6(e.word(uint16(at)))] = uint16(at)
	}
}

func (e *fastEncoder) encode(unit []byte) []byte {
	n := uint(len(unit))
	copy(e.data[unitStart:], unit)
	clear(e.inUnit[:])
	dst, done := e.out[:0], uint(unitStart)
	for at, step := done, uint(1)<<missShift; at+matchMargin < unitStart+n; {
		from, length := e.find(at, unitStart+n-lastLiterals)
		if length == 0 {
			at += step >> missShift
			step++
			continue
		}
		step = 1 << missShift
		for at > done && from > e.low && e.data[at-1] == e.data[from-1] {
			at, from, length = at-1, from-1, length+1
		}
		dst = e.appendSequence(dst, done, at, at-from, length)
		at += length
		done = at
		e.inUnit[hash5(e.word(uint16(at-2)))] = uint16(at - 2)
	}
	if dst = e.appendLiterals(dst, done, unitStart+n); len(dst) >= len(unit) {
		return unit
	}
	return dst
}

// find returns the longer of the two matches that the tables have for a place,
// of length 0 if there is none. It adds the place to the unit's table.
func (e *fastEncoder) find(at, end uint) (from, length uint) {
	word := e.word(uint16(at))
	slot := &e.inUnit[hash5(word)]
	p, q := *slot, e.inDictionary[hash6(word)]
	*slot = uint16(at)
	if x := e.word(p) ^ word; uint32(x) == 0 && p != 0 {
		from, length = uint(p), uint(bits.TrailingZeros64(x))/8
		if x == 0 {
			length += e.common(from+8, at+8, end)
		}
	}
	x := e.word(q) ^ word
	if n := uint(bits.TrailingZeros64(x)) / 8; n < minMatch || n < min(length+1, 8) || q == 0 {
		return from, length
	} else if x != 0 {
		return uint(q), n
	}
	if n := 8 + e.common(uint(q)+8, at+8, end); n > length {
		return uint(q), n
	}
	return from, length
}
