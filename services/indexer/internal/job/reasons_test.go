package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// tenFiles are ten files, the first of them with the given content.
func tenFiles(first string) []string {
	files := []string{"f0", first}
	for i := range 9 {
		files = append(files, fmt.Sprintf("f%d", i+1), fmt.Sprintf("needle %d", i+1))
	}
	return files
}

// republish changes the root as many pushes would have left it.
func (e *env) republish(change func(root *catalogv1.Root)) {
	e.t.Helper()
	lease, err := e.Store.AcquireLease(e.t.Context(), repoName, time.Minute)
	if err != nil {
		e.t.Fatal(err)
	}
	next := proto.CloneOf(lease.Root().Record)
	next.Generation = lease.NextGeneration()
	change(next)
	if _, err := e.Store.Publish(e.t.Context(), lease, lease.Root(), next); err != nil {
		e.t.Fatal(err)
	}
	if err := lease.Release(e.t.Context()); err != nil {
		e.t.Fatal(err)
	}
}

// dropMirror removes the mirror, as if another indexer had the next job or the cache were full.
func (e *env) dropMirror(url string) {
	e.t.Helper()
	if err := os.RemoveAll(e.mirror(url)); err != nil {
		e.t.Fatal(err)
	}
}

// mirror is the folder of the copy that jobs use.
func (e *env) mirror(url string) string {
	e.t.Helper()
	desired, err := e.Store.GetDesired(e.t.Context(), repoName)
	if err != nil && !errors.Is(err, catalog.ErrNotFound) {
		e.t.Fatal(err)
	}
	dir, release := e.Mirrors.Use(repoName, url, desired.Life)
	release()
	return dir
}

// TestReasons: after each event the next push is built by the expected method, for the expected
// reason, and can be searched.
func TestReasons(t *testing.T) {
	for _, c := range []struct {
		want   string
		happen func(r *gitsourcetest.Repo, e *env)
	}{
		{"delta: documents changed", func(*gitsourcetest.Repo, *env) {}},
		{"delta: documents changed", func(r *gitsourcetest.Repo, e *env) { e.dropMirror(r.Dir) }},
		{"full: the indexed commit is gone", func(r *gitsourcetest.Repo, e *env) {
			e.dropMirror(r.Dir)
			old := r.Git("rev-parse", "main")
			r.Files("main", tenFiles("needle next")...)
			if err := os.Remove(filepath.Join(r.Dir, ".git", "objects", old[:2], old[2:])); err != nil {
				e.t.Fatal(err)
			}
		}},
		{"full: what changed cannot be read", func(r *gitsourcetest.Repo, e *env) {
			r.Files("main", append(tenFiles("needle old"), "folder/f", "text")...)
			e.done(e.want(r.Dir))
			mirror := []string{"--git-dir", e.mirror(r.Dir)}
			packs, err := filepath.Glob(filepath.Join(e.mirror(r.Dir), "objects", "pack", "*"))
			testrun.Must(e.t, err)
			for _, file := range packs {
				data, err := os.ReadFile(file)
				testrun.Must(e.t, errors.Join(err, os.Remove(file)))
				if filepath.Ext(file) == ".pack" {
					r.GitIn(string(data), append(mirror, "unpack-objects", "-q")...)
				}
			}
			folder := r.Git("rev-parse", "main:folder")
			testrun.Must(e.t, os.Remove(filepath.Join(e.mirror(r.Dir), "objects", folder[:2], folder[2:])))
		}},
		{"full: many deltas", func(_ *gitsourcetest.Repo, e *env) {
			e.republish(func(root *catalogv1.Root) {
				for range maxDeltas {
					ref := proto.CloneOf(root.Shards[0])
					ref.Delta = true
					root.Shards = append(root.Shards, ref)
				}
			})
		}},
		{"full: the shards so far cannot be read", func(_ *gitsourcetest.Repo, e *env) {
			e.republish(func(root *catalogv1.Root) { root.Shards[0].Hidden = []byte{0x80} })
		}},
		{"delta: documents changed", func(_ *gitsourcetest.Repo, e *env) {
			e.republish(func(root *catalogv1.Root) { root.Branches[0].Name = "master" })
		}},
		{"full: the shards so far cannot be read", func(_ *gitsourcetest.Repo, e *env) {
			e.republish(func(root *catalogv1.Root) {
				root.Branches[0].Name, root.Shards[0].Branches = "master", []uint32{1, 1}
			})
		}},
		{"full: no branch before", func(_ *gitsourcetest.Repo, e *env) {
			e.republish(func(root *catalogv1.Root) { root.Branches = nil })
		}},
		{"full: a full build was asked for", func(_ *gitsourcetest.Repo, e *env) { e.requestFullBuild() }},
		{"full: facts or settings changed", func(_ *gitsourcetest.Repo, e *env) { e.Limits.MaxDepth = 3 }},
	} {
		t.Run(c.want, func(t *testing.T) {
			r, e := newRepo(t, nil)
			r.Files("main", tenFiles("needle old")...)
			e.done(e.want(r.Dir))
			c.happen(r, e)
			commit := r.Files("main", tenFiles("needle new")...)
			root := e.done(e.want(r.Dir))
			if root.GetBuilt() != c.want || root.GetBranches()[0].GetCommit() != commit {
				t.Errorf("built %q at %s, want %q", root.GetBuilt(), root.GetBranches()[0].GetCommit(), c.want)
			}
			if found := e.found(root, "needle"); len(found) != 10 || !slices.Equal(e.found(root, "new"), []string{"f0@main"}) || len(e.found(root, "old")) > 0 {
				t.Errorf("found %v", found)
			}
			if status, err := e.Store.RepoStatus(t.Context(), repoName); err != nil || status.GetBuilt() != c.want {
				t.Errorf("the status shows %q, %v", status.GetBuilt(), err)
			}
			if strings.HasPrefix(c.want, "delta") != (len(root.GetShards()) == 2) {
				t.Errorf("%d shards", len(root.GetShards()))
			}
		})
	}
}

// TestHostAwayDuringADelta: a host that cannot be reached for the indexed commit is tried again, and only the last attempt builds in
// full. No branch has that commit anymore, so git asks for it by name alone.
func TestHostAwayDuringADelta(t *testing.T) {
	for _, lasts := range []bool{false, true} {
		r, e := newRepo(t, nil)
		var away atomic.Pointer[string] // the commit that the host does not send
		git := gitsourcetest.Handler(t, filepath.Dir(r.Dir))
		host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			body, err := io.ReadAll(req.Body)
			if commit := away.Load(); err != nil || commit != nil && bytes.Contains(body, []byte(*commit)) {
				http.Error(w, "for maintenance", http.StatusServiceUnavailable)
				return
			}
			req.Body = io.NopCloser(bytes.NewReader(body))
			git.ServeHTTP(w, req)
		}))
		defer host.Close()
		var cfg gitsource.FetchConfig
		cfg.SetDefaults()
		cfg.PrivateNetworks, cfg.Schemes = []string{"127.0.0.1/32"}, []string{"http"}
		fetcher, err := gitsource.NewFetcher(t.TempDir(), cfg)
		testrun.Must(t, err)
		defer fetcher.Close()
		e.Fetcher = fetcher
		url := host.URL + "/repo/.git"
		indexed := r.Files("main", tenFiles("needle old")...)
		e.done(e.want(url))
		e.dropMirror(url)
		r.Files("main", tenFiles("needle new")...)
		away.Store(&indexed)
		job := e.want(url)
		for ; job.NumDelivered < e.Attempts; job.NumDelivered++ {
			err := e.Handle(t.Context(), job)
			if reason := e.status().GetReason(); err == nil || queue.IsPermanent(err) || !strings.Contains(reason, "the host cannot be reached") {
				t.Fatalf("attempt %d: %v, %s", job.NumDelivered, err, reason)
			}
		}
		want := "full: the indexed commit is gone"
		if !lasts {
			away.Store(nil)
			want = "delta: documents changed"
		}
		if root := e.done(job); root.GetBuilt() != want {
			t.Errorf("built %q, want %q", root.GetBuilt(), want)
		}
	}
}

// requestFullBuild asks for the repo to be built anew, and returns the job for it.
func (e *env) requestFullBuild() *queue.Delivery {
	e.t.Helper()
	epoch, requested, err := e.Store.RequestFullBuild(e.t.Context(), repoName, time.Now())
	if err != nil || !requested {
		e.t.Fatalf("requested: %v, %v", requested, err)
	}
	return &queue.Delivery{Job: queue.Job{Repo: repoName, Epoch: epoch}, NumDelivered: 1}
}

// TestFullBuildOfWhatIsUnchanged: a request for a full build of an unchanged repo builds it anew,
// once. The time of the full build stays with the deltas after it.
func TestFullBuildOfWhatIsUnchanged(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", tenFiles("needle old")...)
	first := e.done(e.want(r.Dir))
	root := e.done(e.requestFullBuild())
	if root.GetGeneration() != 2 || root.GetBuilt() != "full: a full build was asked for" || root.GetShards()[0].GetKey() == first.GetShards()[0].GetKey() {
		t.Errorf("after %v\n%v", first, root)
	}
	if !root.GetBuiltInFullAt().AsTime().After(first.GetBuiltInFullAt().AsTime()) {
		t.Errorf("built in full at %v, before at %v", root.GetBuiltInFullAt(), first.GetBuiltInFullAt())
	}
	if again := e.done(e.want(r.Dir)); again.GetGeneration() != 2 || again.GetEpoch() != 3 {
		t.Errorf("without a change: %v", again)
	}
	r.Files("main", tenFiles("needle new")...)
	if delta := e.done(e.want(r.Dir)); delta.GetBuilt() != "delta: documents changed" || !proto.Equal(delta.GetBuiltInFullAt(), root.GetBuiltInFullAt()) {
		t.Errorf("a delta: %v", delta)
	}
}

// TestMuchOfARepo: a push that changes a quarter of the documents is a delta, and one that changes
// more is not. A push that empties a delta removes it.
func TestMuchOfARepo(t *testing.T) {
	r, e := newRepo(t, nil)
	files := tenFiles("1")
	r.Files("main", files...)
	e.done(e.want(r.Dir))
	files[1], files[3] = "2", "2"
	r.Files("main", files...)
	if root := e.done(e.want(r.Dir)); root.GetBuilt() != "delta: documents changed" || len(root.GetShards()) != 2 {
		t.Errorf("two of ten: %s, %v", root.GetBuilt(), root.GetShards())
	}
	r.Files("main", files[4:]...)
	root := e.done(e.want(r.Dir))
	if len(root.GetShards()) != 1 || root.GetShards()[0].GetLiveDocuments() != 8 || len(e.found(root, "")) != 8 {
		t.Errorf("without those two: %s, %v", root.GetBuilt(), root.GetShards())
	}
	files[5], files[7], files[9] = "3", "3", "3"
	r.Files("main", files[4:]...)
	if root := e.done(e.want(r.Dir)); root.GetBuilt() != "full: much changed" || len(root.GetShards()) != 1 {
		t.Errorf("three of eight: %s, %v", root.GetBuilt(), root.GetShards())
	}
	// The newest facts come from the request.
	d := &catalogv1.Desired{Name: repoName, Url: r.Dir, Facts: &ingestv1.RepoFacts{Fork: true}}
	if root := e.done(e.wantWith(d)); len(e.found(root, "fork:yes")) != 8 {
		t.Errorf("facts: %s", root.GetBuilt())
	}
}

// TestRank: all shards of a repo have its rank, deltas too, since a change of it builds the repo in full.
func TestRank(t *testing.T) {
	r, e := newRepo(t, nil)
	var files []string
	for i := range 20 {
		files = append(files, fmt.Sprintf("file%d", i), "text")
	}
	r.Files("main", files...)
	wanted := func(rank uint32) *catalogv1.Root {
		return e.done(e.wantWith(&catalogv1.Desired{Name: repoName, Url: r.Dir, Facts: &ingestv1.RepoFacts{Rank: rank}}))
	}
	e.checkRanks(wanted(0), 0)
	e.checkRanks(wanted(70), 70)
	files[1] = "another text"
	r.Files("main", files...)
	e.checkRanks(wanted(70), 70, 70)
	e.checkRanks(wanted(100), 100)
}

// TestIDsBuildNothing: a root has the id of the newest request that gave one, and a new one is published without a build.
func TestIDsBuildNothing(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "text")
	wanted := func(facts *ingestv1.RepoFacts) *catalogv1.Root {
		return e.done(e.wantWith(&catalogv1.Desired{Name: repoName, Url: r.Dir, Facts: facts}))
	}
	first := wanted(&ingestv1.RepoFacts{Id: 7, Fork: true})
	for _, step := range []struct {
		facts *ingestv1.RepoFacts
		id    uint32
	}{
		{&ingestv1.RepoFacts{Fork: true}, 7},
		{&ingestv1.RepoFacts{Id: 8, Fork: true}, 8},
	} {
		if root := wanted(step.facts); root.GetId() != step.id || root.GetGeneration() != first.GetGeneration() || root.GetEpoch() == first.GetEpoch() {
			t.Errorf("%v: %v, at first %v", step.facts, root, first)
		}
	}
	r.Files("main", "a", "other text")
	if root := wanted(nil); root.GetId() != 8 || root.GetGeneration() == first.GetGeneration() {
		t.Errorf("without facts, after a push: %v", root)
	}
}

// checkRanks compares the ranks of the repo in the shards of a root.
func (e *env) checkRanks(root *catalogv1.Root, want ...uint8) {
	e.t.Helper()
	var got []uint8
	for _, ref := range root.GetShards() {
		r, _, err := e.bucket.Get(e.t.Context(), ref.GetKey())
		if err != nil {
			e.t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		if err != nil {
			e.t.Fatal(err)
		}
		f, err := format.NewFile(ref.GetKey(), data)
		if err != nil {
			e.t.Fatal(err)
		}
		docs, err := docstore.OpenDocs(f)
		if err != nil {
			e.t.Fatal(err)
		}
		rank, err := docs.RepoRank(0)
		if err != nil {
			e.t.Fatal(err)
		}
		got = append(got, rank)
	}
	if !slices.Equal(got, want) {
		e.t.Errorf("%s: the ranks are %d, want %d", root.GetBuilt(), got, want)
	}
}
