package inorder_test

import (
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/index/inorder"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestResultsInOrder: each piece of work waits for the one started after it, as far as they
// may run concurrently, and the results still come in order.
func TestResultsInOrder(t *testing.T) {
	for _, beside := range []int{0, 1, 3} {
		var running, most atomic.Int32
		q := inorder.New[int](beside)
		begun := make([]chan struct{}, 21)
		for i := range begun {
			begun[i] = make(chan struct{})
		}
		var got []int
		for i := range 20 {
			close(begun[i])
			q.Start(func() int {
				if now := running.Add(1); now > most.Load() {
					most.Store(now)
				}
				if beside > 0 && i%(beside+1) < beside {
					<-begun[i+1]
				}
				running.Add(-1)
				return i
			})
			for q.Full() {
				result, _ := q.Next()
				got = append(got, result)
			}
		}
		for result, ok := q.Next(); ok; result, ok = q.Next() {
			got = append(got, result)
		}
		for i, result := range got {
			if i != result {
				t.Fatalf("beside %d: results %v", beside, got)
			}
		}
		if len(got) != 20 || int(most.Load()) > beside+1 {
			t.Errorf("beside %d: %d results, %d pieces at once", beside, len(got), most.Load())
		}
	}
}
