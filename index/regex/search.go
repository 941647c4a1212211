package regex

import "unicode/utf8"

// ending returns the end of the leftmost match that starts at from or later; -1
// if there is none. ok is false if the automaton does not pay.
func (a *automata) ending(d *dfa, text []byte, from int) (end int, ok bool) {
	c := a.forward.classes
	skip := a.skip.at(text)
	end, at := -1, from
	pause := d.pause(text, from)
	s := d.start(a.forward.sight.before(text, at), !a.anchored)
	d.enter(at)
	for {
		if s&resting != 0 {
			to := skip.next(at)
			if to < 0 {
				d.leave(at)
				return -1, true
			}
			if to > at {
				at = to
				s = d.start(a.forward.sight.before(text, at), true)
			}
		}
		rows, row, part := d.rows, s&rowMask, text[:pause] // avoids bounds checks
		for at < len(part) {
			to := rows[row+uint32(c.ascii[part[at]])]
			if to >= special {
				break
			}
			row = to
			at++
		}
		if at >= pause && at < len(text) {
			if !d.mayGoOn() {
				d.leave(at)
				return -1, true
			}
			pause = d.pause(text, at)
		}
		class, size := c.end, 1
		if at < len(text) {
			class, size = c.read(text[at:])
		}
		s = rows[row+uint32(class)]
		if s == unmade {
			if s, ok = d.next(row, class, at); !ok {
				return 0, false
			}
		}
		if s&matching != 0 {
			end = at
		}
		if at += size; s&dead != 0 || at > len(text) {
			d.leave(min(at, len(text)))
			return end, true
		}
	}
}

// read returns the class and the length of the rune at the beginning of a text.
func (c *classes) read(text []byte) (class uint8, size int) {
	if text[0] < utf8.RuneSelf {
		return c.ascii[text[0]], 1
	}
	r, size := utf8.DecodeRune(text)
	return c.of[c.interval(r)], size
}

// readLast is read at the end of a text. Runes are the same in both directions,
// because a byte that may begin one is never within another.
func (c *classes) readLast(text []byte) (class uint8, size int) {
	last := text[len(text)-1]
	if last < utf8.RuneSelf {
		return c.ascii[last], 1
	}
	r, size := utf8.DecodeLastRune(text)
	return c.of[c.interval(r)], size
}

// starting finds the leftmost start, at from or later, of a match that ends at
// end.
func (a *automata) starting(d *dfa, text []byte, from, end int) (start int, ok bool) {
	c := a.backward.classes
	start, at := -1, end
	pause := d.pauseBefore(from, end)
	s := d.start(a.backward.sight.after(text, end), false)
	d.enter(end)
	for {
		rows, row := d.rows, s&rowMask
		for at > pause {
			to := rows[row+uint32(c.ascii[text[at-1]])]
			if to >= special {
				break
			}
			row = to
			at--
		}
		if at <= pause && at > from {
			if !d.mayGoOn() {
				d.leave(at)
				return -1, true
			}
			pause = d.pauseBefore(from, at)
		}
		class, size := c.end, 0
		if at > 0 {
			class, size = c.readLast(text[:at])
		}
		s = rows[row+uint32(class)]
		if s == unmade {
			if s, ok = d.next(row, class, at); !ok {
				return 0, false
			}
		}
		if s&matching != 0 {
			start = at
		}
		if s&dead != 0 || at <= from {
			d.leave(at)
			return start, true
		}
		at -= size
	}
}
