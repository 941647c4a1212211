package catalog_test

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestSourceView follows sources that come, change and go.
func TestSourceView(t *testing.T) {
	store := catalog.New(etcdtest.New().Client(nil), "")
	view := catalog.NewSourceView(t.Context(), store, slog.New(slog.DiscardHandler))
	defer view.Close()
	spec := func(name, owner string) *ingestv1.Source {
		return &ingestv1.Source{Name: name, Kind: "github", Owner: owner}
	}
	for _, step := range []struct {
		specs []*ingestv1.Source
		owner string // of the source a, "" if it is not there
	}{
		{nil, ""},
		{[]*ingestv1.Source{spec("a", "x"), spec("ab", "y")}, "x"},
		{[]*ingestv1.Source{spec("a", "z")}, "z"},
		{[]*ingestv1.Source{spec("ab", "y")}, ""}, // removed, and kept until its repos are gone
		{[]*ingestv1.Source{spec("a", "x")}, "x"},
	} {
		if _, err := store.ApplySources(t.Context(), step.specs); err != nil {
			t.Fatal(err)
		}
		testrun.Until(t, "the watch is there", func() bool {
			got, err := view.Get("a")
			if err != nil && !errors.Is(err, catalog.ErrNotFound) && !errors.Is(err, catalog.ErrNotRead) {
				t.Fatal(err)
			}
			return got.GetOwner() == step.owner && (step.owner != "" || errors.Is(err, catalog.ErrNotFound))
		})
	}
	if got, err := view.Get("a"); err != nil || got.GetOwner() != "x" {
		t.Errorf("%v, %v", got, err)
	}
	if all := view.All(); len(all) != 1 || all[0].GetName() != "a" {
		t.Errorf("all are %v", all)
	}
}
