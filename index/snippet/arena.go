package snippet

// Arena stores many short slices one after the other in a few arrays: a result has thousands of them, which live as long as
// it does. The zero value is empty. It is not safe for concurrent use.
type Arena[T any] struct{ last []T }

// maxGrown is the length up to which the arrays of an arena double.
const maxGrown = 1 << 16

// Take returns a slice of n zero elements. It is in the last array, or in a new one: copying the last one into a larger array would
// keep both in memory, since earlier slices are parts of each.
func (a *Arena[T]) Take(n int) []T {
	from := len(a.last)
	if from+n > cap(a.last) {
		a.last, from = make([]T, 0, max(n, min(2*cap(a.last), maxGrown))), 0
	}
	a.last = a.last[:from+n]
	return a.last[from : from+n : from+n]
}

// Copy returns a copy of a slice.
func (a *Arena[T]) Copy(of []T) []T {
	to := a.Take(len(of))
	copy(to, of)
	return to
}
