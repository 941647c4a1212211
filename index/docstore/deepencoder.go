package docstore

const (
	chainBits     = 14 // of a hash of five bytes in the dictionary
	unitChainBits = 11 // of a hash of four bytes in the unit

	// maxChain is the most places with the same hash that are tried, in the dictionary and in the
	// unit. Four times as many make units 1.7 % smaller, and take twice as long.
	maxChain = 8
	// longMatch is the length from which on no longer match is searched for.
	longMatch = 64
	// shorterMatches is how much shorter than the longest match the first match of the cheapest way
	// to the end may be.
	shorterMatches = 8
)

// deepEncoder finds the longest match at every place, through chains of places with the same hash,
// and then takes the sequence of literals and matches with the fewest bytes. Since every offset
// takes two bytes, the longest match at a place stands for all shorter ones.
type deepEncoder struct {
	window

	inDictionary [1 << chainBits]uint16
	inUnit       [1 << unitChainBits]uint16
	before       [windowSize]uint16 // previous place with the same hash

	lengths, offsets [SuperblockSize]uint16 // of the longest match at each place
	steps            [SuperblockSize]uint16 // of the cheapest way to the end: a literal is 1
	costs, literals  [SuperblockSize + 1]uint16
}

func chainHash(word uint64) uint64     { return word << 24 * hashPrime >> (64 - chainBits) }
func unitChainHash(word uint64) uint64 { return word << 32 * hashPrime >> (64 - unitChainBits) }

func (e *deepEncoder) setDictionary(dict []byte) {
	e.load(dict)
	clear(e.inDictionary[:])
	for at := e.low; at+8 <= unitStart; at++ {
		head := &e.inDictionary[chainHash(e.word(uint16(at)))]
		e.before[at], *head = *head, uint16(at)
	}
}

func (e *deepEncoder) encode(unit []byte) []byte {
	copy(e.data[unitStart:], unit)
	e.findMatches(len(unit))
	e.findWay(len(unit))
	if dst := e.appendWay(e.out[:0], len(unit)); len(dst) < len(unit) {
		return dst
	}
	return unit
}

// match is a match at some place, with as much of it as is known.
type match struct{ from, length uint }

// findMatches sets lengths and offsets of the first n places of the unit.
func (e *deepEncoder) findMatches(n int) {
	clear(e.lengths[:n])
	clear(e.inUnit[:])
	last := max(0, n-matchMargin)
	best, end := match{}, uint(unitStart+n-lastLiterals)
	for i := range last {
		at := uint(unitStart + i)
		if best.length > minMatch { // the rest of the match at the place before
			best.from, best.length = best.from+1, best.length-1
		} else {
			best = match{length: minMatch - 1} // a match must be longer
		}
		word := e.word(uint16(at))
		head := &e.inUnit[unitChainHash(word)]
		best = e.longest(best, *head, at, end)
		best = e.longest(best, e.inDictionary[chainHash(word)], at, end)
		e.before[at], *head = *head, uint16(at)
		if best.length >= minMatch {
			e.lengths[i], e.offsets[i] = uint16(best.length), uint16(at-best.from)
		}
	}
}

// longest returns the longest match at a place among the places of a chain, or best if none is
// longer.
func (e *deepEncoder) longest(best match, chain uint16, at, end uint) match {
	if best.length >= longMatch || at+best.length >= end {
		return best
	}
	// A longer match ends in the byte after the best one, and in those before it.
	tail := best.length - 3
	want := le.Uint32(e.data[at+tail : at+tail+4])
	for range maxChain {
		if chain == 0 {
			break
		}
		from := uint(chain)
		if le.Uint32(e.data[from+tail:from+tail+4]) == want {
			if n := e.common(from, at, end); n > best.length {
				if best = (match{from, n}); n >= longMatch || at+n >= end {
					break
				}
				tail = n - 3
				want = le.Uint32(e.data[at+tail : at+tail+4])
			}
		}
		chain = e.before[chain]
	}
	return best
}

// findWay computes the cheapest way from each of n places to the end.
func (e *deepEncoder) findWay(n int) {
	e.costs[n], e.literals[n] = 0, 0
	for i := n - 1; i >= 0; i-- {
		run := e.literals[i+1] + 1
		cost, step := e.costs[i+1]+1+lengthBytes(run)-lengthBytes(run-1), uint16(1)
		if longest := int(e.lengths[i]); longest > 0 {
			// In addition to the longest ones, try the longest length that needs no further byte.
			for length := longest; length >= max(minMatch, longest-shorterMatches); length-- {
				if c := e.matchCost(i, length); c < cost {
					cost, step, run = c, uint16(length), 0
				}
			}
			if length := minMatch + 14; longest-shorterMatches > length {
				if c := e.matchCost(i, length); c < cost {
					cost, step, run = c, uint16(length), 0
				}
			}
		}
		e.costs[i], e.steps[i], e.literals[i] = cost, step, run
	}
}

// matchCost returns the bytes from place i to the end if a match is taken there: its token and
// offset, its length, and what follows.
func (e *deepEncoder) matchCost(i, length int) uint16 {
	return 3 + lengthBytes(uint16(length-minMatch)) + e.costs[i+length]
}

// lengthBytes returns how many bytes a length takes in addition to the token.
func lengthBytes(n uint16) uint16 {
	if n < 15 {
		return 0
	}
	return (n-15)/255 + 1
}

// appendWay appends the sequences of n places.
func (e *deepEncoder) appendWay(dst []byte, n int) []byte {
	done := 0
	for i := 0; i < n; {
		step := int(e.steps[i])
		if step > 1 {
			dst = e.appendSequence(dst, uint(unitStart+done), uint(unitStart+i), uint(e.offsets[i]), uint(step))
			done = i + step
		}
		i += step
	}
	return e.appendLiterals(dst, uint(unitStart+done), uint(unitStart+n))
}
