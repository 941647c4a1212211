package cli

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestIndexWaitsForItsOwnRequest(t *testing.T) {
	published := func(epoch uint64, state ingestv1.State) *ingestv1.RepoStatus {
		return &ingestv1.RepoStatus{Name: `example.org/an "odd" (r)`, State: state, Epoch: 2, PublishedEpoch: epoch, Generation: 5, Built: "full: first build; left out: x"}
	}
	s := &scripted{
		statuses: []*ingestv1.RepoStatus{
			published(1, ingestv1.State_STATE_QUEUED), published(1, ingestv1.State_STATE_BUILDING), published(2, ingestv1.State_STATE_PUBLISHED),
		},
		repos: []*searchv1.RepoEntry{{
			Name: `example.org/an "odd" (r)`, Documents: 1, ContentBytes: 2000, IndexBytes: 1000, Branches: []*searchv1.BranchEntry{{Name: "a,b"}, {Name: "c"}},
		}},
	}
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(dir))
	exit, out, errs := trawl(t, s, "index", "-b", "a,b", "-b", "refs/heads/c", "-b", "gone/*", "--name", "n", "--rank", "40", filepath.Base(dir))
	if exit != 0 || !strings.HasPrefix(out, `example.org/an "odd" (r): generation 5 in `) || !strings.HasSuffix(out, ", 1 document, 2.0 kB, index 1.0 kB\n") {
		t.Errorf("exit %d, printed %q, %s", exit, out, errs)
	}
	if !strings.Contains(errs, ": left out: x\n") {
		t.Errorf("nothing is said of what was left out: %q", errs)
	}
	if !strings.Contains(errs, "building") {
		t.Errorf("no progress: %q", errs)
	}
	if got := strings.Count(errs, "there is no branch"); got != 1 || !strings.Contains(errs, "there is no branch gone/*") {
		t.Errorf("missing branches: %q", errs)
	}
	if s.put.GetUrl() != dir || s.put.GetName() != "n" || len(s.put.GetBranches()) != 3 || s.put.GetBranches()[0] != "a,b" || s.put.GetFacts().GetRank() != 40 {
		t.Errorf("asked for %v", s.put)
	}
}

// TestIndexGivesFactsOfFlags: the request names the facts that flags give, and the router keeps the others.
func TestIndexGivesFactsOfFlags(t *testing.T) {
	for _, tt := range []struct {
		args  []string
		facts *ingestv1.RepoFacts
		given []string
	}{
		{nil, nil, nil},
		{[]string{"--rank", "0"}, &ingestv1.RepoFacts{}, []string{"rank"}},
		{[]string{"--rank", "40"}, &ingestv1.RepoFacts{Rank: 40}, []string{"rank"}},
		{[]string{"--id", "8", "--rank", "0"}, &ingestv1.RepoFacts{Id: 8}, []string{"rank", "id"}},
	} {
		s := &scripted{}
		exit, _, errs := trawl(t, s, append([]string{"index", "--no-wait", "https://example.org/r.git"}, tt.args...)...)
		if exit != 0 || !proto.Equal(s.put.GetFacts(), tt.facts) || (s.put.GetFacts() == nil) != (tt.facts == nil) || !slices.Equal(s.put.GetFactsMask().GetPaths(), tt.given) {
			t.Errorf("%v: exit %d, put %v, want %v of %v\n%s", tt.args, exit, s.put, tt.given, tt.facts, errs)
		}
	}
}

// TestIndexNamesDroppedBranches: a repo that is indexed again with fewer branches loses the others, and the command says which.
func TestIndexNamesDroppedBranches(t *testing.T) {
	repo := func(branches ...string) *searchv1.RepoEntry {
		r := &searchv1.RepoEntry{Name: "example.org/r"}
		for _, b := range branches {
			r.Branches = append(r.Branches, &searchv1.BranchEntry{Name: b})
		}
		return r
	}
	for _, tt := range []struct {
		before []*searchv1.RepoEntry
		after  *searchv1.RepoEntry
		want   string
	}{
		{nil, repo("main"), ""},
		{[]*searchv1.RepoEntry{repo("main", "release/1")}, repo("main", "release/1"), ""},
		{[]*searchv1.RepoEntry{repo("main", "release/1", "dev")}, repo("main"), "release/1 dev"},
	} {
		s := &scripted{
			statuses: []*ingestv1.RepoStatus{{Name: "example.org/r", Epoch: 2, PublishedEpoch: 2}},
			before:   tt.before, repos: []*searchv1.RepoEntry{tt.after},
		}
		exit, _, errs := trawl(t, s, "index", "https://example.org/r.git", "-b", "main", "-b", "release/*")
		var dropped []string
		for line := range strings.Lines(errs) {
			if name, is := strings.CutSuffix(line, " is no longer indexed; -b names each branch to index\n"); is {
				dropped = append(dropped, strings.TrimPrefix(name, "example.org/r: branch "))
			}
		}
		if exit != 0 || strings.Join(dropped, " ") != tt.want {
			t.Errorf("%v, then %v: exit %d, printed %q, want %q", tt.before, tt.after, exit, errs, tt.want)
		}
	}
}

// TestIndexTellsWhyItFailed: and what Trawl does next, and how a repo is removed that was never indexed.
func TestIndexTellsWhyItFailed(t *testing.T) {
	s := &scripted{statuses: []*ingestv1.RepoStatus{{
		Name: "r", State: ingestv1.State_STATE_FAILED, Epoch: 2, Reason: "the repository is empty",
	}}}
	const why = "not indexed: r: the repository is empty; its branches are those of before: main v*; -b HEAD is the default branch alone\n  Trawl tries again by itself "
	const remove = "trawl delete example.org/r removes it\n"
	exit, _, errs := trawl(t, s, "index", "https://example.org/r")
	if exit != 1 || !strings.Contains(errs, why) || !strings.HasSuffix(errs, remove) {
		t.Errorf("exit %d: %s", exit, errs)
	}
	s.before = []*searchv1.RepoEntry{{Name: "example.org/r"}}
	s.put = nil
	if exit, _, errs := trawl(t, s, "index", "https://example.org/r"); exit != 1 || !strings.Contains(errs, why) || strings.Contains(errs, remove) {
		t.Errorf("with an index, exit %d: %s", exit, errs)
	}
	s.statuses[0].State = ingestv1.State_STATE_DELETED
	if exit, _, errs := trawl(t, s, "index", "https://example.org/r"); exit != 1 || !strings.HasSuffix(errs, "not indexed: r was deleted in the meantime\n") {
		t.Errorf("deleted, exit %d: %s", exit, errs)
	}
}

func TestIndexWithoutWaiting(t *testing.T) {
	exit, out, _ := trawl(t, &scripted{}, "index", "--no-wait", "https://example.org/r")
	if exit != 0 || out != "example.org/r: request 2 accepted\n" {
		t.Errorf("exit %d: %q", exit, out)
	}
}
