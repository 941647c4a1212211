package docstore

const (
	chainBits     = 14 // of a hash of five bytes in the dictionary
	unitChainBits = 11 // of a hash of four bytes in the unit

	// maxChain is how many places with the same hash are tried, of the
	// dictionary and of the unit. Four times as many make units 1.7 % smaller,
	// and take twice as long.
	maxChain = 8
	// longMatch is the length from which no longer match is looked for.
	longMatch = 64
	// shorterMatches is how much shorter than the longest match one may be
	// that starts the cheapest way to the end.
	shorterMatches = 8
)

// deepEncoder looks for the longest match at every place, in chains of places
// with the same hash, and then takes the sequence of literals and matches that
// is shortest in bytes. As every offset takes two bytes, the longest match at a
// place stands for all shorter ones.
type deepEncoder struct {
	window

	inDictionary [1 << chainBits]uint16
	inUnit       [1 << unitChainBits]uint16
	before       [windowSize]uint16 // last place with the same hash

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
		if best.length > minMatch { // what is left of the match at the place before
			best.from, best.length = best.from+1, best.length-1
		} else {
			best = match{length: minMatch - 1} // it takes more than this to be one
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

// longest tries the places of a chain for a match at a place that is longer
// than the best one.
func (e *deepEncoder) longest(best match, chain uint16, at, end uint) match {
	if best.length >= longMatch || at+best.length >= end {
		return best
	}
	// A longer match has the byte after the best one, and those before it.
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

// findWay sets the steps, from the end to the start of n places.
func (e *deepEncoder) findWay(n int) {
	e.costs[n], e.literals[n] = 0, 0
	for i := n - 1; i >= 0; i-- {
		run := e.literals[i+1] + 1
		cost, step := e.costs[i+1]+1+lengthBytes(run)-lengthBytes(run-1), uint16(1)
		if longest := int(e.lengths[i]); longest > 0 {
			// Beside the longest ones, try the last one without a further byte of length.
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

// matchCost is what is left to write from place i when a match is taken there:
// its token and offset, its length, and what follows.
func (e *deepEncoder) matchCost(i, length int) uint16 {
	return 3 + lengthBytes(uint16(length-minMatch)) + e.costs[i+length]
}

// lengthBytes is how many bytes a length takes beside the token.
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
