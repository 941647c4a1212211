// Package heap keeps the element of a slice that comes before all others at its start. Unlike
// container/heap it needs no type of its own. A compare function returns less than zero if a comes
// before b.
package heap

// Push adds an element to a heap.
func Push[E any](heap []E, e E, compare func(a, b *E) int) []E {
	heap = append(heap, e)
	for i := len(heap) - 1; i > 0; {
		parent := (i - 1) / 2
		if compare(&heap[i], &heap[parent]) >= 0 {
			break
		}
		heap[i], heap[parent] = heap[parent], heap[i]
		i = parent
	}
	return heap
}

// Pop removes the first element of a heap.
func Pop[E any](heap []E, compare func(a, b *E) int) []E {
	var none E
	end := len(heap) - 1
	heap[0], heap[end] = heap[end], none
	Fix(heap[:end], 0, compare)
	return heap[:end]
}

// Init makes a heap of a slice.
func Init[E any](heap []E, compare func(a, b *E) int) {
	for i := len(heap)/2 - 1; i >= 0; i-- {
		Fix(heap, i, compare)
	}
}

// Fix restores the order of a heap in which the element at i has grown.
func Fix[E any](heap []E, i int, compare func(a, b *E) int) {
	for {
		first := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(heap); child++ {
			if compare(&heap[child], &heap[first]) < 0 {
				first = child
			}
		}
		if first == i {
			return
		}
		heap[i], heap[first] = heap[first], heap[i]
		i = first
	}
}

// First returns the first n elements of a heap in their order, or all if there are fewer. The heap stays as it is.
func First[E any](heap []E, n int, compare func(a, b *E) int) []E {
	n = min(n, len(heap))
	first := make([]E, 0, n)
	// The next one is a child of an element that was returned: next has their indices.
	next := []int{0}
	order := func(a, b *int) int { return compare(&heap[*a], &heap[*b]) }
	for len(first) < n {
		at := next[0]
		first, next = append(first, heap[at]), Pop(next, order)
		for child := 2*at + 1; child <= 2*at+2 && child < len(heap); child++ {
			next = Push(next, child, order)
		}
	}
	return first
}
