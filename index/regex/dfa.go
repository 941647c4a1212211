package regex

// A transition is the index of the next state's row, one of the first two marks, or a row with the
// other marks, which the search has to check.
const (
	unmade   uint32 = 1 << 28 // not made yet
	dead     uint32 = 1 << 29 // no match can follow
	matching uint32 = 1 << 30 // a match lies before the rune that was read
	resting  uint32 = 1 << 31 // nothing has begun yet, so the search may skip ahead
	special         = unmade
	rowMask         = unmade - 1
)

// Bounds on the states of one automaton; a searching goroutine holds two.
const (
	maxBytes  = 768 << 10
	stateCost = 96 // estimated bytes of a state in addition to its row and key
	leastGain = 10 // bytes to read for each state before all are dropped
)

// dfa makes the states of a program when a text needs them, and drops all when there are too many.
// It is not safe for concurrent use.
type dfa struct {
	program *program
	closure closure
	rests   bool // mark the states in which nothing has begun
	limit   int  // bytes that all states together may take
	lease   *lease
	gain    int // bytes that must be read for each state for automata to pay

	rows    []uint32 // transitions, columns for each state
	states  []string
	numbers map[string]uint32 // row by state, with its marks
	used    int               // bytes
	starts  [kinds]uint32     // initial states, by the kind of rune before them
	key     []byte

	gained  int // bytes read with these states, before this search
	entered int // where this search began

	goOn    func() bool // called every lookEvery bytes, unless nil
	stopped bool        // goOn returned false
}

// newDFA makes an automaton without states. Memory may bound it further than its limit.
func newDFA(p *program, rests bool, memory *Memory) *dfa {
	d := &dfa{program: p, closure: newClosure(p), rests: rests, limit: maxBytes, gain: leastGain, numbers: map[string]uint32{}}
	d.lease = leaseFor(d, memory)
	d.clear()
	return d
}

// clear drops all states.
func (d *dfa) clear() {
	d.rows, d.states, d.used = d.rows[:0], d.states[:0], 0
	clear(d.numbers)
	for i := range d.starts {
		d.starts[i] = unmade
	}
}

// start returns the state before any text; begins says whether a match may also begin later.
func (d *dfa) start(k kind, begins bool) uint32 {
	if d.starts[k] == unmade {
		d.key = append(d.key[:0], byte(k))
		if begins {
			d.key[0] |= beginsBit
		} else {
			d.key = append(d.key, byte(d.program.start), byte(d.program.start>>8))
		}
		d.starts[k] = d.number(d.key)
	}
	return d.starts[k]
}

// number returns the row of a state. It makes the state if there is none yet.
func (d *dfa) number(key []byte) uint32 {
	if n, ok := d.numbers[string(key)]; ok {
		return n
	}
	if len(key) == 1 && key[0]&beginsBit == 0 {
		return dead
	}
	n := uint32(len(d.rows))
	if len(key) == 1 && d.rests {
		n |= resting
	}
	columns := d.program.classes.columns()
	for range columns {
		d.rows = append(d.rows, unmade)
	}
	state := string(key)
	d.states = append(d.states, state)
	d.numbers[state] = n
	d.used += columns*4 + len(state) + stateCost
	return n
}

// next makes the transition of a state by a class, at a place in the text. ok is false if states
// are made faster than they are used.
func (d *dfa) next(row uint32, class uint8, at int) (to uint32, ok bool) {
	columns := d.program.classes.columns()
	var matched bool
	d.key, matched = d.closure.follow(d.key, d.states[int(row)/columns], class)
	keep := true
	if used := d.used + columns*4 + len(d.key) + stateCost; used > d.limit || !d.lease.covers(used) {
		paid := d.gained+distance(at, d.entered) >= d.gain*len(d.states)
		d.clear()
		d.gained, d.entered, keep = 0, at, false
		if !paid {
			return dead, false
		}
	}
	to = d.number(d.key)
	if matched {
		to |= matching
	}
	if keep {
		d.rows[int(row)+int(class)] = to
	}
	return to, true
}

// lookEvery is how many bytes are read between two calls of goOn.
const lookEvery = 16 << 10

// pause returns how far a search that is at a place may read before it asks again whether to
// continue.
func (d *dfa) pause(text []byte, at int) int {
	if d.goOn == nil {
		return len(text)
	}
	return min(len(text), at+lookEvery)
}

// pauseBefore is pause for a search backwards, which ends at from.
func (d *dfa) pauseBefore(from, at int) int {
	if d.goOn == nil {
		return from
	}
	return max(from, at-lookEvery)
}

func (d *dfa) mayGoOn() bool {
	d.stopped = d.stopped || !d.goOn()
	return !d.stopped
}

// enter and leave record where a search begins and ends.
func (d *dfa) enter(at int) { d.entered = at }
func (d *dfa) leave(at int) { d.gained += distance(at, d.entered) }

func distance(a, b int) int { return max(a-b, b-a) }
