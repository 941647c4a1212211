package gitsource

import (
	"maps"
	"os"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

// TestSubmodulesOfALocalRepository: the files of submodules that are checked out in a local repository
// are found in it, at the commits that it names.
func TestSubmodulesOfALocalRepository(t *testing.T) {
	lib, r := gitsourcetest.New(t), gitsourcetest.New(t)
	lib.Files("main", "l.c", "1", "d/m.c", "m")
	lib.Git("checkout", "-q", "main")
	r.Git("submodule", "--quiet", "add", lib.Dir, "a/lib")
	r.Git("submodule", "--quiet", "add", "--name", "same/again", lib.Dir, "again")
	write(t, r.Dir, "a/lib.c", "own")
	r.Git("add", "-A")
	r.Git("commit", "-q", "-m", "x")
	f, mirror := newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m")
	check := func(want map[string]string) {
		t.Helper()
		got := fetchAll(t, f, mirror, r.Dir)
		delete(got, ".gitmodules@main")
		if !maps.Equal(got, want) {
			t.Errorf("got %v, want %v", got, want)
		}
	}
	check(map[string]string{"a/lib.c@main": "own", "a/lib/l.c@main": "1", "a/lib/d/m.c@main": "m", "again/l.c@main": "1", "again/d/m.c@main": "m"})

	// One is checked out at a newer commit, the other one is no longer there.
	old := docstore.Branch{Name: "main", Commit: r.Git("rev-parse", "main")}
	lib.Files("main", "l.c", "2")
	r.Git("-C", "a/lib", "fetch", "-q")
	r.Git("-C", "a/lib", "checkout", "-q", "origin/main")
	r.Git("rm", "-q", "-f", "again")
	r.Git("commit", "-q", "-a", "-m", "y")
	check(map[string]string{"a/lib.c@main": "own", "a/lib/l.c@main": "2"})
	now := docstore.Branch{Name: "main", Commit: r.Git("rev-parse", "main")}
	if _, err := OpenChanges(t.Context(), mirror, []docstore.Branch{old}, []docstore.Branch{now}, 100, Limits{}); err == nil {
		t.Error("changes in submodules count as one changed path")
	}

	// The other branch still has it, though it is not checked out.
	r.Git("branch", "old", old.Commit)
	if got := fetchAll(t, f, mirror, r.Dir, "main", "old"); got["again/l.c@old"] != "1" || got["a/lib/l.c@old"] != "1" || got["a/lib/l.c@main"] != "2" {
		t.Errorf("both branches: %v", got)
	}

	// A clone of the parent alone has none of their files.
	r.Git("clone", "-q", r.Dir, filepath.Join(filepath.Dir(r.Dir), "clone"))
	if got := fetchAll(t, f, filepath.Join(t.TempDir(), "m"), filepath.Join(filepath.Dir(r.Dir), "clone")); got["a/lib@main"] != "" || got["a/lib.c@main"] != "own" {
		t.Errorf("a clone: %v", got)
	}
}

// TestSubmodulesStayWithinTheirFolders: what is kept as a submodule leads no further than the repository.
func TestSubmodulesStayWithinTheirFolders(t *testing.T) {
	secret, r := gitsourcetest.New(t), gitsourcetest.New(t)
	commit := secret.Files("main", "a", "secret")
	r.Commit("main", [3]string{"160000", commit, "lib"})
	modules := filepath.Join(r.Dir, ".git", "modules")
	f := newFetcher(t, local(r))
	if err := os.MkdirAll(modules, 0o755); err != nil {
		t.Fatal(err)
	}
	os.Symlink(filepath.Join(secret.Dir, ".git"), filepath.Join(modules, "linked"))
	if got := fetchAll(t, f, filepath.Join(t.TempDir(), "m"), r.Dir); len(got) != 1 || got["lib@main"] != "" {
		t.Errorf("a link: %v", got)
	}
	r.Git("init", "-q", "--bare", filepath.Join(modules, "borrows"))
	write(t, modules, "borrows/objects/info/alternates", filepath.Join(secret.Dir, ".git", "objects")+"\n")
	_, err := f.Branches(t.Context(), r.Dir, nil)
	wantFailure(t, err, Refused, "rule folder")
}
