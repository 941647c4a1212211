package discover

import (
	"slices"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/codehost"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// TestIDsOfTheHost: repos get the ids of the host if the source says so, and keep the ids that an operator gave them if not.
func TestIDsOfTheHost(t *testing.T) {
	inWorld(t, func(w *world) {
		long := repo(2, "acme/b")
		long.ID = "{5f0c7b1e}"
		w.listed["x"] = []codehost.Repo{repo(1, "acme/a"), long}
		s := spec("x")
		w.apply(s)
		w.take()
		given := &catalogv1.Desired{Name: "git.example.com/acme/b", Url: long.CloneURL, Facts: &ingestv1.RepoFacts{Id: 9, Public: long.Public}}
		if _, _, err := w.Store.PutDesired(t.Context(), given); err != nil {
			t.Fatal(err)
		}
		check := func(what string, a, b uint32, requests ...string) {
			t.Helper()
			after(time.Hour)
			for path, want := range map[string]uint32{"acme/a": a, "acme/b": b} {
				d, err := w.Store.GetDesired(t.Context(), "git.example.com/"+path)
				if err != nil || d.Record.GetFacts().GetId() != want {
					t.Errorf("%s: %s has %v, %v, want the id %d", what, path, d.Record, err, want)
				}
			}
			if got := w.take(); !slices.Equal(got, requests) {
				t.Errorf("%s: %q were requested, want %q", what, got, requests)
			}
		}
		check("without host_ids", 0, 9)
		s.HostIds = true
		w.apply(s)
		check("with host_ids", 1, 9, "git.example.com/acme/a:2")
		s.HostIds = false
		w.apply(s)
		check("without them again", 1, 9)
	})
}
