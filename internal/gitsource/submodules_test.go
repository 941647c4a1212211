package gitsource

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
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

// TestBrokenSubmodules: a submodule that git cannot read is left out, and its repository and the other submodules are not. If
// another folder has its commit, its files come from there.
func TestBrokenSubmodules(t *testing.T) {
	for what, damage := range map[string]func(t *testing.T, folder string){
		"a clone that was interrupted": func(t *testing.T, folder string) {
			must(t, os.RemoveAll(folder))
			write(t, folder, "HEAD", "ref: refs/heads/main\n")
		},
		"HEAD": func(t *testing.T, folder string) { write(t, folder, "HEAD", "x\n") },
		"a format of later": func(t *testing.T, folder string) {
			write(t, folder, "config", "[core]\n\trepositoryformatversion = 99\n\tbare = true\n")
		},
		"an object is gone": func(t *testing.T, folder string) {
			blobs, err := filepath.Glob(filepath.Join(folder, "objects", "56", "*")) // of the content 1
			must(t, err)
			must(t, os.Remove(blobs[0]))
		},
	} {
		t.Run(what, func(t *testing.T) {
			lib, other, r := gitsourcetest.New(t), gitsourcetest.New(t), gitsourcetest.New(t)
			lib.Files("main", "l.c", "1")
			other.Files("main", "o.c", "2")
			r.Git("submodule", "--quiet", "add", lib.Dir, "lib")
			r.Git("submodule", "--quiet", "add", other.Dir, "other")
			write(t, r.Dir, "a", "own")
			r.Git("add", "-A")
			r.Git("commit", "-q", "-m", "x")
			damage(t, filepath.Join(r.Dir, ".git", "modules", "lib"))
			mirror := filepath.Join(t.TempDir(), "m")
			got := fetchAll(t, newFetcher(t, local(r)), mirror, r.Dir)
			if got["a@main"] != "own" || got["other/o.c@main"] != "2" || got["lib/l.c@main"] != "" {
				t.Errorf("got %v", got)
			}
			r.Git("clone", "-q", "--bare", lib.Dir, filepath.Join(r.Dir, ".git", "modules", "lib2"))
			if got := fetchAll(t, newFetcher(t, local(r)), mirror, r.Dir); got["lib/l.c@main"] != "1" {
				t.Errorf("with another clone: %v", got)
			}
		})
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

// TestManySubmodules: a mirror holds the submodules of a repository up to a number of commits, over all of its
// branches, whatever the number of paths. With one more the repository is refused as too large. So it is with more folders
// of submodules than that.
func TestManySubmodules(t *testing.T) {
	lib, r := gitsourcetest.New(t), gitsourcetest.New(t)
	there := lib.Files("main", "f", "content")
	modules := filepath.Join(r.Dir, ".git", "modules")
	r.Git("clone", "-q", "--bare", lib.Dir, filepath.Join(modules, "lib"))
	// links are at n paths, at commits from a number on.
	links := func(first, n int) (entries [][3]string) {
		for i := range n {
			entries = append(entries, [3]string{"160000", fmt.Sprintf("%040x", first+i), fmt.Sprintf("other/%d", i)})
		}
		return entries
	}
	f, one := newFetcher(t, local(r)), [3]string{"160000", there, "lib"}
	fetch := func() (map[string]string, error) {
		mirror := filepath.Join(t.TempDir(), "m")
		branches, err := f.Branches(t.Context(), r.Dir, []string{"*"})
		must(t, err)
		if _, err := f.Fetch(t.Context(), mirror, r.Dir, branches, nil); err != nil {
			return nil, err
		}
		return fetchAll(t, f, mirror, r.Dir, "*"), nil
	}
	steps := map[string]struct {
		main, dev [][3]string
		fits      bool
	}{
		"as many as may be":                {main: append(links(1, maxSubmodules-1), one), fits: true},
		"one more":                         {main: append(links(1, maxSubmodules), one)},
		"as many as may be, in two":        {main: append(links(1, 500), one), dev: links(501, maxSubmodules-501), fits: true},
		"one more, in two":                 {main: append(links(1, 500), one), dev: links(501, maxSubmodules-500)},
		"the same ones in two":             {main: append(links(1, 800), one), dev: links(1, 800), fits: true},
		"one commit at more paths than so": {main: append(same(links(1, maxSubmodules+10)), one), fits: true},
	}
	for what, step := range steps {
		r.Commit("main", step.main...)
		r.Commit("dev", append(step.dev, [3]string{"100644", r.Blob("own"), "own"})...)
		got, err := fetch()
		if !step.fits {
			wantFailure(t, err, TooLarge, "more than 1024 submodules")
			continue
		}
		if err != nil || got["lib/f@main"] != "content" {
			t.Errorf("%s: %v, %v", what, got["lib/f@main"], err)
		}
	}

	for i := range maxSubmodules {
		write(t, modules, fmt.Sprintf("other/%d/HEAD", i), "ref: refs/heads/main\n")
		write(t, modules, fmt.Sprintf("other/%d/objects/info/packs", i), "\n")
		if i < maxSubmodules-2 {
			continue
		}
		_, err := f.Branches(t.Context(), r.Dir, nil)
		if i == maxSubmodules-2 {
			must(t, err)
			continue
		}
		wantFailure(t, err, TooLarge, "more than 1024 submodules")
	}
}

// same returns the entries with the object of the first.
func same(entries [][3]string) [][3]string {
	for i := range entries {
		entries[i][1] = entries[0][1]
	}
	return entries
}

// TestLimitsOfPathsInSubmodules: a file of a submodule is left out, and one that is too deep is skipped, by its path
// in the repository.
func TestLimitsOfPathsInSubmodules(t *testing.T) {
	lib, r := gitsourcetest.New(t), gitsourcetest.New(t)
	there := lib.Files("main", "f", "1", "d/g", "2", "longer", "3")
	r.Git("clone", "-q", "--bare", lib.Dir, filepath.Join(r.Dir, ".git", "modules", "lib"))
	long := strings.Repeat("l", MaxPath-len("/d/g"))
	r.Commit("main", [3]string{"160000", there, "lib"}, [3]string{"160000", there, long})
	f, mirror := newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m")
	branches, err := f.Branches(t.Context(), r.Dir, nil)
	must(t, err)
	fetched, err := f.Fetch(t.Context(), mirror, r.Dir, branches, nil)
	must(t, err)
	repo, err := OpenBranches(t.Context(), mirror, fetched, Limits{MaxDepth: 2})
	must(t, err)
	got := map[string]docstore.SkipReason{}
	for _, d := range collect(t, repo) {
		got[string(d.Path)] = d.Skip
	}
	want := map[string]docstore.SkipReason{
		"lib/f": 0, "lib/d/g": docstore.TooDeep, "lib/longer": 0, long + "/f": 0, long + "/d/g": docstore.TooDeep,
	}
	if !maps.Equal(got, want) || repo.Omitted() != 1 {
		t.Errorf("%d were left out, and %d are there: %.200v", repo.Omitted(), len(got), got)
	}
}

// TestFilesOfSubmodulesCount: the files of submodules count as documents of the repository.
func TestFilesOfSubmodulesCount(t *testing.T) {
	lib, r := gitsourcetest.New(t), gitsourcetest.New(t)
	there := lib.Files("main", "f", "1", "g", "2", "h", "3")
	r.Git("clone", "-q", "--bare", lib.Dir, filepath.Join(r.Dir, ".git", "modules", "lib"))
	r.Commit("main", [3]string{"160000", there, "lib"}, [3]string{"160000", there, "again"})
	f, mirror := newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m")
	branches, err := f.Branches(t.Context(), r.Dir, nil)
	must(t, err)
	fetched, err := f.Fetch(t.Context(), mirror, r.Dir, branches, nil)
	must(t, err)
	repo, err := OpenBranches(t.Context(), mirror, fetched, Limits{MaxDocuments: 6})
	must(t, err)
	if got := collect(t, repo); len(got) != 6 {
		t.Errorf("%d documents", len(got))
	}
	_, err = OpenBranches(t.Context(), mirror, fetched, Limits{MaxDocuments: 5})
	wantFailure(t, err, TooLarge, "more documents than the limit of 5")
}
