package symbols

// Within finds the symbols that contain places of a text. It is not safe for concurrent use.
type Within struct {
	found []Symbol
	next  int   // index in found
	open  []int // those that contain the last place, the innermost at the end
}

// NewWithin returns a Within for the symbols of a text, in the order of Append.
func NewWithin(found []Symbol) *Within { return &Within{found: found} }

// At returns the index in found of the innermost symbol whose name or body contains a place of the
// text; -1 if there is none. Places must not descend. All calls together take time linear in the
// number of symbols.
func (w *Within) At(at uint32) int {
	for ; w.next < len(w.found) && w.found[w.next].Start <= at; w.next++ {
		w.close(w.found[w.next].Start)
		w.open = append(w.open, w.next)
	}
	w.close(at)
	if n := len(w.open); n > 0 {
		return w.open[n-1]
	}
	return -1
}

// close drops the innermost symbols that end before a place.
func (w *Within) close(at uint32) {
	n := len(w.open)
	for n > 0 && max(w.found[w.open[n-1]].End, w.found[w.open[n-1]].Until) <= at {
		n--
	}
	w.open = w.open[:n]
}
