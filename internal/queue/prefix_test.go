package queue_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestPrefixesAreApart: queues with different prefixes on one NATS do not see each
// other's jobs and dead letters, even if one prefix begins with the other.
func TestPrefixesAreApart(t *testing.T) {
	nc := startNATS(t, t.TempDir(), "").Conn()
	queues := map[string]*queue.Queue{}
	for _, prefix := range []string{"", "trawl-b", "b", "trawl_jobs"} {
		cfg := brisk()
		cfg.Prefix = prefix
		q := newQueue(t, nc, cfg)
		if err := q.Ensure(t.Context()); err != nil {
			t.Fatal(err)
		}
		queues[prefix] = q
	}
	b := queues["trawl-b"]
	for _, repo := range []string{"bad", "waits"} {
		if err := b.Publish(t.Context(), queue.Job{Repo: repo, Epoch: 1}); err != nil {
			t.Fatal(err)
		}
	}
	consume(t, b, 1, func(_ context.Context, d *queue.Delivery) error {
		if d.Repo == "bad" {
			return queue.Permanent(errors.New("no"))
		}
		return queue.Later(errors.New("not yet"), time.Hour)
	})
	testrun.Until(t, "a dead letter", func() bool { d, err := b.Depth(t.Context()); return err == nil && d.Dead == 1 && d.Jobs == 1 })
	for prefix, q := range queues {
		if q == b {
			continue
		}
		if d, err := q.Depth(t.Context()); err != nil || d != (queue.Depth{}) {
			t.Errorf("prefix %q: %+v, %v", prefix, d, err)
		}
		if _, err := q.DeadLetter(t.Context(), "bad"); !errors.Is(err, queue.ErrNoLetter) {
			t.Errorf("prefix %q has the letter: %v", prefix, err)
		}
	}
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	names := js.StreamNames(t.Context())
	streams := streamNames(names)
	want := []string{"B_DEAD", "B_JOBS", "TRAWL-B_DEAD", "TRAWL-B_JOBS", "TRAWL_DEAD", "TRAWL_JOBS", "TRAWL_JOBS_DEAD", "TRAWL_JOBS_JOBS"}
	if !slices.Equal(streams, want) || names.Err() != nil {
		t.Errorf("streams %q, %v", streams, names.Err())
	}
}

func TestPrefixesThatAreRefused(t *testing.T) {
	for _, prefix := range []string{"", "A", "a.b", "a b", "*", ">", "a/b", "ä", strings.Repeat("a", 65)} {
		if queue.CheckPrefix(prefix) == nil {
			t.Errorf("%q is accepted", prefix)
		}
	}
	if err := queue.CheckPrefix(queue.DefaultPrefix); err != nil {
		t.Error(err)
	}
}

func streamNames(lister jetstream.StreamNameLister) (names []string) {
	for name := range lister.Name() {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
