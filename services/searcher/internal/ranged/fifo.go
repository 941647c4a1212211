package ranged

// block is a piece of an object that is on disk. Its fields are guarded by the cache's mutex.
type block struct {
	object     *object
	prev, next *block // in its queue
	number     uint32 // within its object
	size       int32  // bytes it takes on disk
	freq       uint8  // uses since it came, at most mostFreq
	main       bool   // is in the main queue, not in the small one
}

// mostFreq is the highest use count of a block.
const mostFreq = 3

// queue is a list of blocks, oldest first.
type queue struct{ head, tail *block }

func (q *queue) push(b *block) {
	b.prev, b.next = q.tail, nil
	if q.tail == nil {
		q.head = b
	} else {
		q.tail.next = b
	}
	q.tail = b
}

func (q *queue) remove(b *block) {
	if b.prev == nil {
		q.head = b.next
	} else {
		b.prev.next = b.next
	}
	if b.next == nil {
		q.tail = b.prev
	} else {
		b.next.prev = b.prev
	}
	b.prev, b.next = nil, nil
}

// fifo is the order in which blocks leave: S3-FIFO (Yang, Zhang, Qiu, Yue, Rashmi, "FIFO
// queues are all you need for cache eviction", SOSP 2023). A new block waits in a small
// queue with a tenth of all bytes. It moves to the main queue only if it is used twice
// there, or comes back soon after it left. So a sweep over everything passes through the
// small queue alone.
type fifo struct {
	small, main           queue
	smallBytes, mainBytes int64
	// blocks counts the blocks of both queues. departed counts those that left the small
	// one; ghosts age by it.
	blocks, departed uint32
}

// smallShare is the divisor of the small queue: it holds a tenth of all bytes.
const smallShare = 10

// ghost is when a block left the small queue, 0 for never.
type ghost uint32

// insert adds a block that was just read. A recent ghost means that the block was cached
// not long ago, so it goes to the main queue.
func (q *fifo) insert(b *block, g ghost) {
	b.main = g != 0 && q.departed-uint32(g) < q.blocks
	b.freq = 0
	*q.bytes(b) += int64(b.size)
	q.blocks++
	q.of(b).push(b)
}

func (q *fifo) of(b *block) *queue {
	if b.main {
		return &q.main
	}
	return &q.small
}

func (q *fifo) bytes(b *block) *int64 {
	if b.main {
		return &q.mainBytes
	}
	return &q.smallBytes
}

// drop forgets a block.
func (q *fifo) drop(b *block) {
	q.of(b).remove(b)
	*q.bytes(b) -= int64(b.size)
	q.blocks--
}

// evict drops the block whose turn it is to leave, with its ghost; nil if there is none.
func (q *fifo) evict() (*block, ghost) {
	for {
		b := q.oldest()
		switch {
		case b == nil:
			return nil, 0
		case b.main && b.freq > 0:
			q.main.remove(b)
			b.freq--
			q.main.push(b)
		case !b.main && b.freq > 1:
			q.promote(b)
		case b.main:
			q.drop(b)
			return b, 0
		default:
			q.drop(b)
			q.departed++
			return b, ghost(max(q.departed, 1))
		}
	}
}

// oldest returns the head of the queue from which to evict.
func (q *fifo) oldest() *block {
	first, second := &q.main, &q.small
	if q.smallBytes*smallShare >= q.smallBytes+q.mainBytes {
		first, second = second, first
	}
	if first.head != nil {
		return first.head
	}
	return second.head
}

func (q *fifo) promote(b *block) {
	q.small.remove(b)
	q.smallBytes -= int64(b.size)
	b.main, b.freq = true, 0
	q.mainBytes += int64(b.size)
	q.main.push(b)
}
