package history_test

import (
	"errors"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/integration/history"
)

// world is a correct cluster with one repo, whose callers often get no answer.
type world struct {
	tape

	mu      sync.Mutex
	desired bool
	epoch   uint64
	last    uint64
	// revision is that of the last deletion.
	revision int64
	now      served
	before   served // what was served until the last change
}

type served struct {
	generation, published uint64
	commit                int
}

// serve changes what is served.
func (w *world) serve(s served) { w.before, w.now = w.now, s }

// put and remove change the repo. A call without an answer may take effect late.
func (w *world) put() history.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.desired, w.epoch = true, w.epoch+1
	w.wrote(history.Put, put(w.epoch))
	return put(w.epoch)
}

func (w *world) remove() history.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.desired {
		return missing
	}
	w.desired = false
	w.serve(served{})
	w.revision++
	w.wrote(history.Delete, deleted(w.revision))
	return deleted(w.revision)
}

func (w *world) publish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.desired && w.now.published < w.epoch {
		w.last++
		w.serve(served{w.last, w.epoch, int(w.epoch)})
		w.published(w.last, w.epoch, int(w.epoch))
	}
}

func (w *world) read(kind history.Kind) history.Answer {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case kind == history.Search:
		return commit(w.now.commit)
	case kind == history.List:
		return list(w.now.generation)
	case !w.desired:
		return missing
	}
	return state(w.epoch, w.now.published, w.now.generation)
}

// write is a caller's put or delete, which takes a while. One in three gets no answer: it takes
// effect at once, late, or never.
func (w *world) write(client int, rng *rand.Rand, running *sync.WaitGroup) {
	kind, act := history.Put, w.put
	if rng.IntN(4) == 0 {
		kind, act = history.Delete, w.remove
	}
	op := w.begin(client, kind)
	doze(rng, 100)
	switch rng.IntN(9) {
	case 0:
		w.Lost(op)
	case 1:
		act()
		w.Lost(op)
	case 2:
		running.Go(func() {
			time.Sleep(10 * time.Second)
			act()
		})
		w.Lost(op)
	default:
		a := act()
		doze(rng, 100)
		w.End(op, a)
	}
}

// doze sleeps for a random time of less than most milliseconds. The time is in nanoseconds, so
// two dozes hardly ever take equally long.
func doze(rng *rand.Rand, most int) {
	time.Sleep(time.Duration(rng.Int64N(int64(most) * int64(time.Millisecond))))
}

// live runs two writers and four readers for a while.
func (w *world) live(rng *rand.Rand) {
	var running, late sync.WaitGroup
	for client := range 6 {
		rng := rand.New(rand.NewPCG(rng.Uint64(), 0))
		running.Go(func() {
			for range 150 {
				if client < 2 {
					w.write(client, rng, &late)
					doze(rng, 1000)
					continue
				}
				kind := []history.Kind{history.Status, history.Search, history.List}[rng.IntN(3)]
				op := w.begin(client, kind)
				doze(rng, 100)
				a := w.read(kind)
				doze(rng, 100)
				w.End(op, a)
				doze(rng, 300)
			}
		})
	}
	done := make(chan struct{})
	go func() { running.Wait(); late.Wait(); close(done) }()
	for {
		select {
		case <-done:
			return
		case <-time.After(time.Duration(rng.IntN(900)) * time.Millisecond):
			w.publish()
		}
	}
}

// TestManyUnknownOutcomes: with a third of all changes unanswered, Check accepts a right
// history and finds a single stale answer in it.
func TestManyUnknownOutcomes(t *testing.T) {
	for seed := range uint64(6) {
		synctest.Test(t, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(seed, 1))
			w := &world{tape: newTape(t)}
			w.live(rng)
			w.do(history.Put, w.put()) // earlier calls without an effect never take effect
			w.publish()
			w.do(history.Search, w.read(history.Search))
			if _, err := w.check(); err != nil {
				t.Errorf("seed %d: %v", seed, err)
			}
			stale := w.before.commit
			if stale == w.now.commit {
				stale++
			}
			w.do(history.Search, commit(stale))
			if err := w.Check(time.Minute, t.TempDir()); !errors.Is(err, history.ErrNotLinearizable) {
				t.Errorf("seed %d: a stale answer: %v", seed, err)
			}
		})
	}
}
