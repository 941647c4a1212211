package catalog_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestRefresh follows a repo through pushes before, while and after it is indexed.
func TestRefresh(t *testing.T) {
	const apart = 10 * time.Second
	store := catalog.New(etcdtest.New().Client(nil), "")
	start := time.Unix(1_800_000_000, 0)
	push := func(what string, at time.Duration, epoch uint64, begins time.Duration) {
		t.Helper()
		got, turn, err := store.Refresh(t.Context(), "r", nil, start.Add(at), apart)
		if err != nil || got != epoch || epoch > 0 && !turn.Equal(start.Add(begins)) {
			t.Errorf("%s: epoch %d at %v, want %d at %v; %v", what, got, turn.Sub(start), epoch, begins, err)
		}
	}
	lease := func() *catalog.Lease {
		t.Helper()
		l, err := store.AcquireLease(t.Context(), "r", time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	done := func(l *catalog.Lease) {
		t.Helper()
		_, err := store.Publish(t.Context(), l, l.Root(), &catalogv1.Root{Repo: "r", Generation: l.NextGeneration(), Epoch: l.Desired().GetEpoch()})
		if err := errors.Join(err, l.Release(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	if _, _, err := store.Refresh(t.Context(), "r", nil, start, apart); !errors.Is(err, catalog.ErrNotFound) {
		t.Errorf("of no repo: %v", err)
	}
	if _, _, err := store.PutDesired(t.Context(), &catalogv1.Desired{Name: "r", RequestedAt: timestamppb.New(start)}); err != nil {
		t.Fatal(err)
	}
	push("nobody has begun", time.Second, 0, 0)
	first := lease()
	push("somebody has begun", 2*time.Second, 2, apart)
	push("the next one waits already", 3*time.Second, 0, 0)
	done(first)
	push("it waits still", 4*time.Second, 0, 0)
	second := lease()
	push("the second has begun", 11*time.Second, 3, 2*apart)
	done(second)
	push("the third waits", 12*time.Second, 0, 0)
	done(lease())
	push("long after", time.Hour, 4, time.Hour)
	err := store.PutStatus(t.Context(), "r", &catalogv1.Status{State: ingestv1.State_STATE_FAILED, Epoch: 4}, nil)
	if err != nil {
		t.Fatal(err)
	}
	push("the request has failed", 2*time.Hour, 5, 2*time.Hour)
	done(lease())
	push("another clock is behind", time.Hour, 6, time.Hour+apart)
}

// TestApplySources: only sources that differ are written, and a removed one stays
// until it is dropped.
func TestApplySources(t *testing.T) {
	store := catalog.New(etcdtest.New().Client(nil), "")
	spec := func(name, owner string) *ingestv1.Source {
		return &ingestv1.Source{Name: name, Kind: "github", Owner: owner}
	}
	apply := func(want catalog.Applied, specs ...*ingestv1.Source) {
		t.Helper()
		got, err := store.ApplySources(t.Context(), specs)
		if err != nil || !slices.Equal(got.Added, want.Added) || !slices.Equal(got.Changed, want.Changed) || !slices.Equal(got.Removed, want.Removed) {
			t.Errorf("got %+v, want %+v; %v", got, want, err)
		}
	}
	apply(catalog.Applied{Added: []string{"a", "b"}}, spec("a", "x"), spec("b", "x"))
	apply(catalog.Applied{}, spec("b", "x"), spec("a", "x"))
	apply(catalog.Applied{Changed: []string{"a"}, Removed: []string{"b"}}, spec("a", "y"))
	apply(catalog.Applied{}, spec("a", "y"))
	b, err := store.GetSource(t.Context(), "b")
	if err != nil || !b.Record.GetRemoved() {
		t.Errorf("%v, %v", b.Record, err)
	}
	apply(catalog.Applied{Changed: []string{"b"}}, spec("a", "y"), spec("b", "x"))
	if err := store.DropSource(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	if b, err = store.GetSource(t.Context(), "b"); err != nil || b.Record.GetRemoved() {
		t.Errorf("it is wanted again, and was dropped: %v, %v", b.Record, err)
	}
	if err := store.PutSourceReport(t.Context(), b, &ingestv1.SourceReport{Repos: 3}); err != nil {
		t.Fatal(err)
	}
	if r, err := store.GetSourceReport(t.Context(), "b"); err != nil || r.GetRepos() != 3 {
		t.Errorf("%v, %v", r, err)
	}
	if r, err := store.GetSourceReport(t.Context(), "a"); err != nil || r != nil {
		t.Errorf("%v, %v", r, err)
	}
}

// TestNumberSource: versions grow, above those of the bucket. A source that changed since
// it was read gets none, and takes none from the present one.
func TestNumberSource(t *testing.T) {
	store := catalog.New(etcdtest.New().Client(nil), "")
	read := func(owner string) catalog.Source {
		t.Helper()
		if _, err := store.ApplySources(t.Context(), []*ingestv1.Source{{Name: "a", Kind: "github", Owner: owner}}); err != nil {
			t.Fatal(err)
		}
		source, err := store.GetSource(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		return source
	}
	number := func(s catalog.Source, least, want uint64) {
		t.Helper()
		if got, err := store.NumberSource(t.Context(), s, least); err != nil || got.GetVersion() != want {
			t.Errorf("version %d, %v, want %d", got.GetVersion(), err, want)
		}
	}
	stored := func(s catalog.Source, want bool) {
		t.Helper()
		if got, err := store.IsStored(t.Context(), s); err != nil || got != want {
			t.Errorf("stored: %t, %v", got, err)
		}
	}
	first := read("first")
	number(first, 6, 7)
	number(first, 100, 7) // it has one
	stored(first, false)
	second := read("second")
	number(second, 6, 8)
	if _, err := store.NumberSource(t.Context(), first, 0); !errors.Is(err, catalog.ErrStale) {
		t.Errorf("what is no longer so got a version: %v", err)
	}
	for _, s := range []struct {
		catalog.Source
		version uint64
	}{{second, 8}, {first, 7}} {
		if err := store.SourceStored(t.Context(), s.Source, s.version); err != nil {
			t.Fatal(err)
		}
	}
	stored(second, true)
	number(second, 100, 8)
}

// TestVersionsAreUnique: no version comes twice, even if other processes number other
// sources meanwhile.
func TestVersionsAreUnique(t *testing.T) {
	for n := 1; n <= 12; n++ {
		etcd := etcdtest.New()
		truth := catalog.New(etcd.Client(nil), "")
		var specs []*ingestv1.Source
		for _, name := range []string{"a", "b", "c", "d"} {
			specs = append(specs, &ingestv1.Source{Name: name, Kind: "github", Owner: "x"})
		}
		if _, err := truth.ApplySources(t.Context(), specs); err != nil {
			t.Fatal(err)
		}
		versions := map[uint64]string{}
		number := func(store *catalog.Store, name string) {
			source, err := truth.GetSource(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			made, err := store.NumberSource(t.Context(), source, 0)
			if errors.Is(err, catalog.ErrStale) {
				made, err = store.NumberSource(t.Context(), source, 0)
			}
			if err != nil || versions[made.GetVersion()] != "" {
				t.Errorf("step %d: version %d of %s is that of %q: %v", n, made.GetVersion(), name, versions[made.GetVersion()], err)
			}
			versions[made.GetVersion()] = name
		}
		steps := 0
		number(catalog.New(etcd.Client(func(context.Context) error {
			if steps++; steps == n {
				number(truth, "b")
				number(truth, "c")
			}
			return nil
		}), ""), "a")
		number(truth, "d")
	}
}
