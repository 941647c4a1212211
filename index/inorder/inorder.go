// Package inorder keeps what is made before its turn. A Queue runs pieces of work beside
// the caller, and returns their results in the order in which the pieces were started. So
// a stream can be encoded on all processors, and its bytes are the same as from one. A
// Buffer holds the bytes of a section that grows while another one is written, and moves
// them to a temporary file beyond a bound. Sections holds whole sections that way.
package inorder

// Queue holds the started pieces whose results were not taken yet. Each piece runs in
// a goroutine of its own, which ends with the piece. A caller that stops early takes
// the remaining results with Next, and leaves no goroutine behind. A Queue is for one
// goroutine at a time.
type Queue[T any] struct {
	beside  int
	pending []chan T
}

// New returns a queue that runs up to beside pieces at once beside the caller. With 0,
// Start runs each piece itself.
func New[T any](beside int) *Queue[T] { return &Queue[T]{beside: max(beside, 0)} }

// Start starts a piece of work. Call it only while the queue is not Full.
func (q *Queue[T]) Start(do func() T) {
	result := make(chan T, 1)
	q.pending = append(q.pending, result)
	if q.beside == 0 {
		result <- do()
		return
	}
	go func() { result <- do() }()
}

// Full reports whether a result must be taken before the next piece starts.
func (q *Queue[T]) Full() bool { return len(q.pending) > q.beside }

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
