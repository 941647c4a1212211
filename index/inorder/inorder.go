// Package inorder does work beside the caller and gives its results back in the
// order in which it was begun: what is written to a stream may be encoded on
// all processors, and comes out the same.
package inorder

// Queue is work that was begun and whose result was not taken yet. Each piece
// runs in a goroutine of its own, which ends with it: who stops early takes
// what is left with Next, so that nothing stays behind. One goroutine at a time.
type Queue[T any] struct {
	beside  int
	pending []chan T
}

// New makes a queue that does up to that many pieces of work beside the caller's
// own; with 0 the caller does all.
func New[T any](beside int) *Queue[T] { return &Queue[T]{beside: max(beside, 0)} }

// Start begins a piece of work. Call it only while the queue is not Full.
func (q *Queue[T]) Start(do func() T) {
	result := make(chan T, 1)
	q.pending = append(q.pending, result)
	if q.beside == 0 {
		result <- do()
		return
	}
	go func() { result <- do() }()
}

// Full reports whether as much was begun as may be: take a result first.
func (q *Queue[T]) Full() bool { return len(q.pending) > q.beside }

// Empty reports whether all results were taken.
func (q *Queue[T]) Empty() bool { return len(q.pending) == 0 }

// Next waits for the result of the piece begun first; false if there is none.
func (q *Queue[T]) Next() (result T, ok bool) {
	if len(q.pending) == 0 {
		return result, false
	}
	first := q.pending[0]
	q.pending = q.pending[1:]
	return <-first, true
}
