// Package inorder keeps results that are ready before their turn. A Queue runs pieces of work
// concurrently with the caller, and returns their results in the order in which the pieces were
// started. So a stream can be encoded on all processors, with the same bytes as on one. A Buffer
// keeps the bytes of a section that grows while another one is written, and moves them to a
// temporary file beyond a bound. Sections keeps whole sections in that way.
package inorder

// Queue has the started pieces whose results have not been taken yet. Each piece runs in a
// goroutine of its own, which ends with the piece. A caller that stops early takes the remaining
// results with Next, and so leaves no goroutine behind. A Queue is not safe for concurrent use.
type Queue[T any] struct {
	workers int
	pending []chan T
}

// New returns a queue that runs up to workers pieces concurrently with the caller. With 0, Start
// runs each piece itself.
func New[T any](workers int) *Queue[T] { return &Queue[T]{workers: max(workers, 0)} }

// Start starts a piece of work. The queue must not be Full.
func (q *Queue[T]) Start(do func() T) {
	result := make(chan T, 1)
	q.pending = append(q.pending, result)
	if q.workers == 0 {
		result <- do()
		return
	}
	go func() { result <- do() }()
}

// Full reports whether a result must be taken before the next piece starts.
func (q *Queue[T]) Full() bool { return len(q.pending) > q.workers }

// Empty reports whether all results were taken.
func (q *Queue[T]) Empty() bool { return len(q.pending) == 0 }

// Next waits for the result of the oldest piece; ok is false if there is none.
func (q *Queue[T]) Next() (result T, ok bool) {
	if len(q.pending) == 0 {
		return result, false
	}
	first := q.pending[0]
	q.pending = q.pending[1:]
	return <-first, true
}
