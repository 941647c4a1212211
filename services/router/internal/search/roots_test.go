package search_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/search"
)

// TestRootsAreAsRecentAsAsked changes the catalog and asks at once, many times:
// a view that had only what its watch brought so far would be behind.
func TestRootsAreAsRecentAsAsked(t *testing.T) {
	etcd, err := embedded.StartEtcd(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    t.TempDir(), Heartbeat: 10 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	defer etcd.Close()
	store := catalog.New(etcd.Client(), "")
	view := catalog.NewView(t.Context(), store, slog.New(slog.DiscardHandler))
	defer view.Close()
	roots := search.NewRoots(view)
	anyone := access.With(t.Context(), access.Anyone)
	linearizable := &searchv1.Consistency{Level: &searchv1.Consistency_Linearizable{Linearizable: true}}
	bounded := &searchv1.Consistency{Level: &searchv1.Consistency_Bounded{Bounded: durationpb.New(time.Hour)}}
	for i := range 100 {
		_, revision, err := store.PutDesired(t.Context(), &catalogv1.Desired{Name: "r"})
		if err != nil {
			t.Fatal(err)
		}
		atLeast := &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: catalog.EncodeToken(revision)}}
		want, least := [4]*searchv1.Consistency{nil, linearizable, atLeast, bounded}[i%4], int64(0)
		if want == bounded {
			least = revision // as a page token asks
		}
		layout, err := roots.At(anyone, want, least)
		if err != nil || layout.Revision < revision {
			t.Fatalf("round %d, %v: revision %d, want %d, %v", i, want, layout.Revision, revision, err)
		}
	}
	checkTokens(t, roots)
	lease, err := store.AcquireLease(t.Context(), "r", time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	digest := d(1)
	if _, err := store.Publish(t.Context(), lease, lease.Root(), &catalogv1.Root{
		Repo: "r", Generation: 1, Epoch: lease.Desired().Epoch, Shards: []*catalogv1.ShardRef{{Digest: digest[:], SizeBytes: 1, Repos: 1}},
	}); err != nil {
		t.Fatal(err)
	}
	checkLate(t, roots)
}

// checkLate: when time is over there is a layout without a revision, so that the answer can say what was not reached.
func checkLate(t *testing.T, roots *search.Roots) {
	t.Helper()
	late, cancel := context.WithTimeout(access.With(t.Context(), access.Anyone), -1)
	defer cancel()
	layout, err := roots.At(late, nil, 0) // the last layout has no shards
	if status.Code(err) != codes.DeadlineExceeded || layout != nil {
		t.Errorf("late, and without shards: %v, %v", layout, err)
	}
	if now, err := roots.At(access.With(t.Context(), access.Anyone), nil, 0); err != nil || len(now.All()) != 1 || now.Revision == 0 {
		t.Fatalf("in time: %v, %v", now, err)
	}
	if layout, err = roots.At(late, nil, 0); status.Code(err) != codes.DeadlineExceeded || layout == nil || len(layout.All()) != 1 || layout.Revision != 0 {
		t.Errorf("late: %v, %v", layout, err)
	}
	none := access.With(late, &sees{"none", func(string) bool { return false }})
	if layout, err = roots.At(none, nil, 0); status.Code(err) != codes.DeadlineExceeded || layout != nil {
		t.Errorf("late, for a caller who sees nothing: %v, %v", layout, err)
	}
}

func checkTokens(t *testing.T, roots *search.Roots) {
	t.Helper()
	ctx := access.With(t.Context(), access.Anyone)
	level := &searchv1.Consistency_AtLeast{AtLeast: catalog.EncodeToken(1 << 50)}
	future := &searchv1.Consistency{Level: level}
	_, err := roots.At(ctx, future, 0)
	wantField(t, err, codes.FailedPrecondition, "consistency.at_least")
	wantField(t, roots.Reach(ctx, future, 0), codes.FailedPrecondition, "consistency.at_least")
	wantField(t, roots.Reach(ctx, nil, 1<<50), codes.FailedPrecondition, "page_token")
	level.AtLeast = []byte("none")
	_, err = roots.At(ctx, future, 0)
	wantField(t, err, codes.InvalidArgument, "consistency.at_least")
}
