package gitsource

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
)

// TestRefsAreBranchesAndTags has refs of all kinds, whose names end or begin as others do.
func TestRefsAreBranchesAndTags(t *testing.T) {
	r := gitsourcetest.New(t)
	for branch, content := range map[string]string{
		"main": "1", "dev": "2", "HEAD": "3", "refs/heads/main": "4", "refs/tags/v1": "5", "-x": "6", "@": "7", "v1": "8", "tags/v1": "9",
	} {
		r.Files(branch, "a", content)
	}
	r.Git("update-ref", "refs/remotes/origin/main", "refs/heads/main")
	r.Git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main")
	r.Git("update-ref", "refs/original/refs/heads/main", "refs/heads/dev")
	r.Git("update-ref", "refs/original/refs/tags/v1", "refs/heads/dev")
	r.Git("update-ref", "refs/tags/v1", "refs/heads/dev")
	r.Git("tag", "-a", "-m", "x", "v2", "refs/heads/dev")
	r.Git("tag", "-a", "-m", "x", "v3", "refs/tags/v2")
	r.Git("update-ref", "refs/tags/HEAD", "refs/heads/main")
	r.Git("update-ref", "refs/tags/folder", r.Git("rev-parse", "refs/remotes/origin/main^{tree}"))
	f, mirror := newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m")
	branches := map[string]string{
		"a@main": "1", "a@dev": "2", "a@refs/heads/HEAD": "3", "a@refs/heads/refs/heads/main": "4", "a@refs/heads/refs/tags/v1": "5",
		"a@refs/heads/-x": "6", "a@@": "7", "a@v1": "8", "a@tags/v1": "9",
	}
	for _, tt := range []struct {
		want []string
		got  map[string]string
	}{
		{nil, map[string]string{"a@main": "1"}},
		{[]string{"HEAD"}, map[string]string{"a@main": "1"}},
		{[]string{"**"}, branches},
		{[]string{"HEAD", "**"}, branches},
		{[]string{"refs/heads/**", "main"}, branches},
		{[]string{"v1"}, map[string]string{"a@v1": "8"}},
		{[]string{"refs/heads/main"}, map[string]string{"a@main": "1"}},
		{[]string{"refs/heads/HEAD"}, map[string]string{"a@refs/heads/HEAD": "3"}},
		{[]string{"refs/heads/-x", "@"}, map[string]string{"a@refs/heads/-x": "6", "a@@": "7"}},
		{[]string{"refs/tags/*"}, map[string]string{
			"a@refs/tags/HEAD,refs/tags/folder": "1", "a@refs/tags/v1,refs/tags/v2,refs/tags/v3": "2",
		}},
		{[]string{"HEAD", "refs/tags/v*"}, map[string]string{"a@main": "1", "a@refs/tags/v1,refs/tags/v2,refs/tags/v3": "2"}},
		{[]string{"main", "gone", "refs/tags/gone", "gone/*"}, map[string]string{"a@main": "1"}},
		{[]string{"gone", "dev"}, map[string]string{"a@dev": "2"}},
	} {
		if got := fetchAll(t, f, mirror, r.Dir, tt.want...); !maps.Equal(got, tt.got) {
			t.Errorf("%q: %v, want %v", tt.want, got, tt.got)
		}
	}
}

// TestTagsOfSingleFilesAreLeftOut: a tag that names a file has no files to index, wherever it stands among the branches.
func TestTagsOfSingleFilesAreLeftOut(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	r.Git("update-ref", "refs/tags/file", r.Blob("1"))
	r.Git("tag", "-a", "-m", "x", "of-tag", "refs/tags/file")
	r.Git("update-ref", "refs/tags/v1", "main")
	f, mirror := newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m")
	fetch := func(want ...string) ([]docstore.Branch, error) {
		listed, err := f.Branches(t.Context(), r.Dir, want)
		must(t, err)
		return f.Fetch(t.Context(), mirror, r.Dir, listed, nil)
	}
	for _, want := range [][]string{{"refs/tags/*"}, {"refs/tags/v1", "refs/tags/*"}} {
		if got, err := fetch(want...); err != nil || len(got) != 1 || got[0].Name != "refs/tags/v1" {
			t.Errorf("%q: %v, %v", want, got, err)
		}
	}
	for _, want := range [][]string{{"refs/tags/file"}, {"refs/tags/of-tag", "refs/tags/file"}} {
		_, err := fetch(want...)
		wantFailure(t, err, NoBranch, "a single file")
	}
}

// TestDetachedHead: what is checked out is indexed as HEAD when it is not on a branch.
func TestDetachedHead(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	r.Git("update-ref", "--no-deref", "HEAD", r.Files("dev", "a", "2"))
	r.Git("checkout", "-q", "--detach", "dev")
	f, mirror := newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m")
	for _, want := range [][]string{nil, {"HEAD"}} {
		if got := fetchAll(t, f, mirror, r.Dir, want...); !maps.Equal(got, map[string]string{"a@HEAD": "2"}) {
			t.Errorf("%q: %v", want, got)
		}
	}
	if got := fetchAll(t, f, mirror, r.Dir, "HEAD", "**"); !maps.Equal(got, map[string]string{"a@HEAD,dev": "2", "a@main": "1"}) {
		t.Errorf("with all branches: %v", got)
	}
	r.Git("checkout", "-q", "main")
	if got := fetchAll(t, f, mirror, r.Dir, "HEAD"); !maps.Equal(got, map[string]string{"a@main": "1"}) {
		t.Errorf("attached again: %v", got)
	}
	// No branch is left, as in a clone of a tag.
	r.Git("checkout", "-q", "--detach", "main")
	r.Git("branch", "-q", "-D", "main", "dev")
	if got := fetchAll(t, f, mirror, r.Dir); !maps.Equal(got, map[string]string{"a@HEAD": "1"}) {
		t.Errorf("without branches: %v", got)
	}
}

// TestWantedBranchOfCloneWithoutBranches has a clone of a tag, which has no branch of its own, and a repository with
// tags alone. Neither is empty, whatever is wanted.
func TestWantedBranchOfCloneWithoutBranches(t *testing.T) {
	r := gitsourcetest.New(t)
	commit := r.Files("main", "a", "1")
	r.Git("update-ref", "refs/tags/v1", commit)
	r.Git("update-ref", "refs/remotes/origin/main", commit)
	f := newFetcher(t, local(r))
	for _, head := range []string{"detached", "unborn"} {
		if head == "detached" {
			r.Git("checkout", "-q", "--detach", "main")
			r.Git("branch", "-q", "-D", "main")
		} else {
			r.Git("symbolic-ref", "HEAD", "refs/heads/main")
		}
		for want, words := range map[string]string{
			"v1":                    `no branch "v1"; for a tag write refs/tags/v1`,
			"tags/v1":               `no branch "tags/v1"; for a tag write refs/tags/v1`,
			"origin/main":           `no branch "origin/main"; for a tag write refs/tags/origin/main`,
			commit[:12]:             `no branch "` + commit[:12] + `"; for a tag`,
			"v*":                    "no branch like v*",
			"refs/heads/main":       `no "refs/heads/main"`,
			"refs/tags/v2":          `no "refs/tags/v2"`,
			"refs/remotes/origin/x": "",
		} {
			_, err := f.Branches(t.Context(), r.Dir, []string{want})
			if words != "" {
				wantFailure(t, err, NoBranch, words)
			} else {
				wantFailure(t, err, Refused, "")
			}
		}
		branches, err := f.Branches(t.Context(), r.Dir, []string{"refs/tags/v1"})
		if err != nil || len(branches) != 1 || branches[0].Commit != commit {
			t.Errorf("%s HEAD: the tag is %v, %v", head, branches, err)
		}
	}
	_, err := f.Branches(t.Context(), r.Dir, nil)
	wantFailure(t, err, NoBranch, "default branch does not exist")
}

// asked is a context that counts how often it is asked whether it has ended.
type asked struct {
	context.Context

	times *int
}

func (a asked) Err() error { *a.times++; return a.Context.Err() }

// TestManyBranchesEndEarly: a server chooses how many branches there are. Looking at them ends with ctx, and
// once there are too many.
func TestManyBranchesEndEarly(t *testing.T) {
	r := refs{commits: make(map[string]string)}
	for i := range 50 * maxBranches {
		r.commits[fmt.Sprintf("refs/heads/b%d", i)] = strings.Repeat("0", 40)
	}
	times := 0
	_, err := r.choose(asked{t.Context(), &times}, []string{"**"})
	wantFailure(t, err, TooLarge, "more than 1024 branches")
	if times == 0 || times > 2*maxBranches {
		t.Errorf("%d branches were looked at", times)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, pattern := range []string{"**", "none*"} {
		if _, err := r.choose(ctx, []string{pattern}); !errors.Is(err, context.Canceled) {
			t.Errorf("%s after the end: %v", pattern, err)
		}
	}
	// As many as allowed, of which each is wanted by several patterns.
	maps.DeleteFunc(r.commits, func(ref, _ string) bool { return len(r.commits) > maxBranches })
	branches, err := r.choose(t.Context(), []string{"b1*", "**", "b*", "**"})
	if err != nil || len(branches) != maxBranches {
		t.Errorf("%d branches, %v", len(branches), err)
	}
	r.commits["refs/heads/one-more"] = strings.Repeat("0", 40)
	_, err = r.choose(t.Context(), []string{"b*", "one-more"})
	wantFailure(t, err, TooLarge, "more than 1024 branches")
}

// TestBranchesAreNamedAsInGit compares with git which names branches may have, for every character at
// the start, in the middle and at the end. Only for control characters git says yes, where Trawl says no.
func TestBranchesAreNamedAsInGit(t *testing.T) {
	var names []string
	for c := range rune(128) {
		for _, form := range []string{"%s", "%sa", "a%sb", "a%s", "a/%s", "%s/a", "a%[1]s%[1]sb", "a%s{b"} {
			names = append(names, fmt.Sprintf(form, string(c)))
		}
	}
	names = append(names, "a.lock", "a.lock/b", "a.lockb", "refs", "refs/heads/x", "HEAD/x", "heads/x", "日本", "e\u0301", "👍", "a\u202eb")
	for _, name := range names {
		if strings.ContainsRune(name, 0) {
			continue // no argument of a program
		}
		ref := "refs/heads/" + name
		want := exec.CommandContext(t.Context(), "git", "check-ref-format", ref).Run() == nil
		if got := origin.CheckBranch(ref) == nil; got != want {
			t.Errorf("%q: %v, and git says %v", name, got, want)
		}
		if short := origin.BranchName(ref); want && (origin.BranchRef(short) != ref || origin.CheckBranch(short) != nil) {
			t.Errorf("%q: its name is %q, which stands for %q", ref, short, origin.BranchRef(short))
		}
	}
}

// TestLongBranchNames: a branch whose name is too long for a file, as others can hold it, does not keep the others out.
func TestLongBranchNames(t *testing.T) {
	r := gitsourcetest.New(t)
	commit, long := r.Files("main", "a", "1"), strings.Repeat("b", 250)
	packed := "# pack-refs with: peeled fully-peeled sorted \n"
	for _, branch := range []string{long, long + "b", "main"} {
		packed += commit + " refs/heads/" + branch + "\n"
	}
	write(t, r.Dir, ".git/packed-refs", packed)
	f := newFetcher(t, local(r))
	if got, want := fetchAll(t, f, filepath.Join(t.TempDir(), "m"), r.Dir, "**"), "1"; got["a@main,"+long] != want {
		t.Errorf("got %v", got)
	}
	_, err := f.Branches(t.Context(), r.Dir, []string{long + "b"})
	wantFailure(t, err, Refused, "more than 250 bytes")
}

// TestBranchPatterns: a pattern stands for the branches that it matches at the time, the default branch first.
func TestBranchPatterns(t *testing.T) {
	r := gitsourcetest.New(t)
	for _, branch := range []string{"main", "release/2", "release/1", "release/x/fix", "feature"} {
		r.Files(branch, "a", branch)
	}
	f := newFetcher(t, local(r))
	for _, c := range []struct{ want, got []string }{
		{[]string{"**"}, []string{"main", "feature", "release/1", "release/2", "release/x/fix"}},
		{[]string{"release/*", "**"}, []string{"release/1", "release/2", "main", "feature", "release/x/fix"}},
		{[]string{"release/*"}, []string{"release/1", "release/2"}},
		{[]string{"main", "**"}, []string{"main", "feature", "release/1", "release/2", "release/x/fix"}},
		{[]string{"HEAD", "none*", "m*"}, []string{"main"}},
	} {
		branches, err := f.Branches(t.Context(), r.Dir, c.want)
		var got []string
		for _, b := range branches {
			got = append(got, b.Name)
			if !hexOID(b.Commit) {
				t.Errorf("%q: %+v", c.want, b)
			}
		}
		if err != nil || !slices.Equal(got, c.got) {
			t.Errorf("%q: %q, %v; want %q", c.want, got, err, c.got)
		}
	}
	_, err := f.Branches(t.Context(), r.Dir, []string{"v*"})
	wantFailure(t, err, NoBranch, "no branch like v*")
}
