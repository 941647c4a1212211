package job

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestOddPushes: searches match the repository after each push that rewrites, renames or removes,
// and after damage to its mirror.
func TestOddPushes(t *testing.T) {
	r, e := newRepo(t, nil)
	want := func(what string, branches []string, docs ...string) {
		t.Helper()
		root := e.done(e.want(r.Dir, branches...))
		if got := e.found(root, "needle"); !slices.Equal(got, docs) {
			t.Errorf("%s (%s): found %v, want %v", what, root.GetBuilt(), got, docs)
		}
	}
	r.Files("main", "a", "needle 1", "b", "needle 2", "Dir/c", "needle 3")
	want("at first", nil, "Dir/c@main", "a@main", "b@main")
	r.Files("main", "a", "needle 1", "B", "needle 2", "dir/c", "needle 3")
	want("names differ in case only", nil, "B@main", "a@main", "dir/c@main")
	r.Files("main", "x", "needle of another history")
	want("a forced push", nil, "x@main")
	r.Git("reflog", "expire", "--expire=now", "--all")
	r.Git("gc", "-q", "--prune=now")
	r.Files("main", "x", "needle of another history", "y", "needle")
	want("the old history is gone at the host", nil, "x@main", "y@main")
	r.Git("branch", "-q", "-m", "main", "trunk")
	want("the default branch has another name", nil, "x@trunk", "y@trunk")
	r.Files("next", "n", "needle")
	r.Git("symbolic-ref", "HEAD", "refs/heads/next")
	want("another default branch", nil, "n@next")
	want("patterns", []string{"*"}, "n@next", "x@trunk", "y@trunk")
	r.Git("branch", "-q", "-D", "trunk")
	want("a branch is deleted", []string{"*"}, "n@next")
	r.Commit("next")
	want("emptied", nil)
	// The small form of a commit that touches 100,000 files.
	var files [][3]string
	var docs []string
	blobs := []string{r.Blob("needle 1"), r.Blob("needle 2")}
	for i := range 900 {
		path := fmt.Sprintf("f%03d", i)
		files, docs = append(files, [3]string{"100644", blobs[i%2], path}), append(docs, path+"@next")
	}
	r.Commit("next", files...)
	want("one commit touches all files", nil, docs...)
}

// TestHundredThousandFiles: commits touch all of 100,000 files, a fifth of them, a fiftieth, and
// all names. Searches match each of them, and each is built in the cheaper way.
func TestHundredThousandFiles(t *testing.T) {
	r, e := newRepo(t, nil)
	const n = 100_000 // a fifth of them does not fit into a set of hidden documents
	blobs := []string{r.Blob("needle 0"), r.Blob("needle 1")}
	push := func(built, path string, is func(i int) int) {
		t.Helper()
		files, want := make([][3]string, n), 0
		for i := range files {
			want += is(i)
			files[i] = [3]string{"100644", blobs[is(i)], fmt.Sprintf(path, i%97, i)}
		}
		r.Commit("main", files...)
		begun := time.Now()
		root := e.done(e.want(r.Dir))
		t.Logf("%s: %v", root.GetBuilt(), time.Since(begun))
		if root.GetBuilt() != built {
			t.Errorf("built %q, want %q", root.GetBuilt(), built)
		}
		served := e.serve(root)
		for content, want := range map[string]int{"needle 1": want, "needle 0": n - want} {
			q, err := search.Prepare(&query.Substring{Pattern: content})
			if err != nil {
				t.Fatal(err)
			}
			if _, stats := served.search(q, search.Options{MaxFiles: 1}); stats.FilesMatched != uint64(want) {
				t.Errorf("%s: %q is in %d files, want %d", built, content, stats.FilesMatched, want)
			}
		}
	}
	push("full: first build", "d%d/f%d", func(int) int { return 1 })
	push("full: many replaced documents", "d%d/f%d", func(i int) int { return min(i%5, 1) })
	if testrun.All() {
		push("delta: documents changed", "d%d/f%d", func(i int) int { return min(i%5, (i+49)%50, 1) })
		push("full: much changed", "d%d/f%d", func(int) int { return 0 })
		push("full: much changed", "e%d/f%d", func(i int) int { return i % 2 })
	}
}

// TestHundredBranches: a branch costs what differs on it, whether it exists from the start, is
// added, or is removed.
func TestHundredBranches(t *testing.T) {
	r, e := newRepo(t, nil)
	var base [][3]string
	for i := range 200 {
		base = append(base, [3]string{"100644", r.Blob(fmt.Sprintf("needle %d", i)), fmt.Sprintf("f%03d", i)})
	}
	r.Commit("main", base...)
	branch := func(i int) {
		own := slices.Clone(base)
		own[i] = [3]string{"100644", r.Blob(fmt.Sprintf("own %d", i)), own[i][2]}
		r.Commit(fmt.Sprintf("release/%03d", i), own...)
	}
	push := func(what, built string, documents, onBranch int) *catalogv1.Root {
		t.Helper()
		root := e.done(e.want(r.Dir, "*", "release/*"))
		made := uint64(0)
		for _, ref := range root.GetShards() {
			made += ref.GetDocuments()
		}
		if root.GetBuilt() != built || made != uint64(documents) {
			t.Errorf("%s: %s, %d documents in all, want %s, %d", what, root.GetBuilt(), made, built, documents)
		}
		if found := e.found(root, "branch:release/100"); len(found) != onBranch {
			t.Errorf("%s: %d documents on release/100, want %d", what, len(found), onBranch)
		}
		return root
	}
	for i := range 100 {
		branch(i)
	}
	push("at first", "full: first build", 300, 0)
	branch(100)
	push("one more", "delta: documents changed", 302, 200)
	r.Git("branch", "-q", "-m", "release/100", "release/last")
	push("renamed", "delta: no document changed", 302, 0)
	r.Git("branch", "-q", "-m", "release/last", "release/100")
	for i := range 50 {
		r.Git("branch", "-q", "-D", fmt.Sprintf("release/%03d", i))
	}
	root := push("half of them are gone", "delta: no document changed", 302, 200)
	if found := e.found(root, "own"); len(found) != 51 {
		t.Errorf("own documents of the branches that are left: %v", found)
	}
}

// TestDamagedCopyIsFetchedAnew: a damaged object of the mirror costs an attempt, and never causes a
// wrong answer.
func TestDamagedCopyIsFetchedAnew(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "needle 1")
	e.done(e.want(r.Dir))
	dir := e.mirror(r.Dir)
	damaged := 0
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".pack") && len(filepath.Base(filepath.Dir(path))) != 2 {
			return err
		}
		damaged++
		return os.WriteFile(path, []byte("no object"), 0o600)
	})
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err != nil || damaged == 0 {
		t.Fatalf("%d files damaged, %v", damaged, err)
	}
	r.Files("main", "a", "needle 2", "b", "needle 3")
	d := e.want(r.Dir)
	for d.NumDelivered = 1; ; d.NumDelivered++ {
		if err = e.Handle(t.Context(), d); err == nil || d.NumDelivered == e.Attempts {
			break
		}
		t.Logf("try %d: %v", d.NumDelivered, err)
	}
	if got := e.found(e.root(), "needle"); err != nil || !slices.Equal(got, []string{"a@main", "b@main"}) {
		t.Errorf("found %v, %v", got, err)
	}
}

// TestDeletedBranchDoesNotStopTheOthers: a branch or tag that was named and is deleted leaves the
// index, and the others go on. They fail only once none is left.
func TestDeletedBranchDoesNotStopTheOthers(t *testing.T) {
	r, e := newRepo(t, nil)
	found := func(want ...string) {
		t.Helper()
		if got := e.found(e.done(e.want(r.Dir, "gone", "main", "refs/tags/v1")), "needle"); !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	r.Files("gone", "a", "needle 1")
	r.Files("main", "a", "needle 1")
	r.Git("tag", "-a", "-m", "x", "v1", "main")
	found("a@gone,main,refs/tags/v1")
	r.Git("branch", "-D", "gone")
	r.Files("main", "b", "needle 2")
	found("a@refs/tags/v1", "b@main")
	r.Git("tag", "-d", "v1")
	found("b@main")
	r.Files("gone", "c", "needle 3")
	found("b@main", "c@gone")
	r.Files("other", "a", "1")
	r.Git("update-ref", "-d", "refs/heads/gone")
	r.Git("update-ref", "-d", "refs/heads/main")
	d := e.want(r.Dir, "gone", "main", "refs/tags/v1")
	if err := e.Handle(t.Context(), d); !queue.IsPermanent(err) || !strings.Contains(e.status().GetReason(), `no branch "gone"`) {
		t.Errorf("without any: %v, %v", err, e.status())
	}
}

// TestSubmoduleFollowsItsParent: after each push the files of a submodule are those of the commit
// that the parent names, and a removed submodule has none.
func TestSubmoduleFollowsItsParent(t *testing.T) {
	lib := gitsourcetest.New(t)
	lib.Files("main", "l", "needle 1")
	r, e := newRepo(t, nil)
	r.Git("submodule", "--quiet", "add", lib.Dir, "lib")
	r.Git("commit", "-q", "-m", "x")
	found := func(want ...string) {
		t.Helper()
		if got := e.found(e.done(e.want(r.Dir)), "needle"); !slices.Equal(got, want) {
			t.Errorf("found %q, want %q", got, want)
		}
	}
	found("lib/l@main")
	lib.Files("main", "m", "needle 2")
	r.Git("-C", "lib", "fetch", "-q")
	r.Git("-C", "lib", "checkout", "-q", "origin/main")
	r.Git("commit", "-q", "-a", "-m", "y")
	found("lib/m@main")
	r.Git("rm", "-q", "-f", "lib")
	r.Git("commit", "-q", "-m", "z")
	found()
}
