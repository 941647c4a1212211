package serving_test

import (
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/integration/hostile"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestFutureRevisions: callers that name revisions that do not exist, in every possible way,
// are refused at once and delay no other caller.
func TestFutureRevisions(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/one", map[string]string{"a.go": "needle", "b.go": "needle"})
	c.eventually("it is found", func() bool { return len(c.find("needle", nil).Files) == 2 })
	page := c.find("needle", &searchv1.SearchOptions{MaxFiles: 1}).NextPageToken
	ways := hostile.FutureRevisions(c.search, "needle", page)
	var greedy sync.WaitGroup
	refused := make(chan struct{})
	for i := range 400 {
		greedy.Go(func() {
			if err := ways[i%len(ways)](t.Context()); status.Code(err) != codes.FailedPrecondition {
				t.Errorf("way %d to name a revision that does not exist: %v", i%len(ways), err)
			}
		})
	}
	go func() { greedy.Wait(); close(refused) }()
	for over := false; !over; {
		select {
		case <-refused:
			over = true
		default:
		}
		if resp := c.find("needle", nil); !resp.Coverage.Complete || len(resp.Files) != 2 {
			t.Errorf("meanwhile: %v", resp.Coverage)
		}
	}
}
