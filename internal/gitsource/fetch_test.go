package gitsource

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
)

func newFetcher(t testing.TB, change func(*FetchConfig)) *Fetcher {
	t.Helper()
	var cfg FetchConfig
	cfg.SetDefaults()
	change(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	f, err := NewFetcher(t.TempDir(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// local allows the folder of a test repository.
func local(r *gitsourcetest.Repo) func(*FetchConfig) {
	return func(c *FetchConfig) { c.Folders = []string{filepath.Dir(r.Dir)} }
}

// fetchAll does what an indexer does: ask, fetch, read.
func fetchAll(t testing.TB, f *Fetcher, mirror, url string, want ...string) map[string]string {
	t.Helper()
	branches, err := f.Branches(t.Context(), url, want)
	if err != nil {
		t.Fatal(err)
	}
	fetched, err := f.Fetch(t.Context(), mirror, url, branches, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(branches, fetched) {
		t.Errorf("asked for %v, fetched %v", branches, fetched)
	}
	repo, err := OpenBranches(t.Context(), mirror, fetched, Limits{})
	if err != nil {
		t.Fatal(err)
	}
	docs := make(map[string]string)
	for _, d := range collect(t, repo) {
		docs[string(d.Path)+"@"+names(repo, d)] = string(d.Content)
	}
	return docs
}

func wantFailure(t testing.TB, err error, kind Kind, words string) {
	t.Helper()
	var fail *Failure
	if !errors.As(err, &fail) || fail.Kind != kind || !strings.Contains(err.Error(), words) {
		t.Errorf("got %v (%+v), want kind %d with %q", err, fail, kind, words)
	}
}

func TestFetchLocal(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	r.Files("dev", "a", "2")
	f := newFetcher(t, local(r))
	mirror := filepath.Join(t.TempDir(), "mirror.git")

	check := func(got map[string]string, want ...string) {
		t.Helper()
		expected := make(map[string]string)
		for pair := range slices.Chunk(want, 2) {
			expected[pair[0]] = pair[1]
		}
		if fmt.Sprint(got) != fmt.Sprint(expected) {
			t.Errorf("got %v, want %v", got, expected)
		}
	}
	check(fetchAll(t, f, mirror, r.Dir), "a@main", "1")
	check(fetchAll(t, f, mirror, "file://"+r.Dir, "dev", "HEAD"), "a@dev", "2", "a@main", "1")

	// History is rewritten, and one branch is replaced by another below its name.
	r.Git("update-ref", "-d", "refs/heads/dev")
	r.Files("main", "b", "3")
	r.Files("dev/next", "c", "4")
	check(fetchAll(t, f, mirror, r.Dir, "main", "dev/next"), "b@main", "3", "c@dev/next", "4")

	// A killed run left locks and half a pack; the disk lost an object.
	write(t, mirror, "shallow.lock", "")
	write(t, mirror, "refs/heads/main.lock", "")
	write(t, mirror, "objects/pack/tmp_pack_x", "half")
	write(t, mirror, "tmp_history/HEAD", "half")
	write(t, mirror, "info/kept", "")
	r.Files("main", "b", "5")
	check(fetchAll(t, f, mirror, r.Dir), "b@main", "5")
	for _, half := range []string{"objects/pack/tmp_pack_x", "tmp_history"} {
		if _, err := os.Stat(filepath.Join(mirror, half)); err == nil {
			t.Errorf("%s is still there", half)
		}
	}
	if _, err := os.Stat(filepath.Join(mirror, "info/kept")); err != nil {
		t.Errorf("the mirror was made anew for them: %v", err)
	}
	write(t, mirror, "HEAD", "garbage")
	check(fetchAll(t, f, mirror, r.Dir), "b@main", "5")
}

// TestBranchesThatLookLikeLeftovers: branches may have the names of git's temporary files. The mirror
// keeps them and does not start anew.
func TestBranchesThatLookLikeLeftovers(t *testing.T) {
	r := gitsourcetest.New(t)
	f := newFetcher(t, local(r))
	mirror := filepath.Join(t.TempDir(), "mirror.git")
	want := make(map[string]string)
	for _, branch := range []string{"main", "tmp_two", "tmp_fixes/one", "a/tmp_b/c", "tmp_", "lock", "tmp_objdir-x"} {
		r.Files(branch, branch, "1")
		want[branch+"@"+branch] = "1"
	}
	if got := fetchAll(t, f, mirror, r.Dir, "**"); !maps.Equal(got, want) {
		t.Fatalf("got %v", got)
	}
	write(t, mirror, "info/kept", "")
	for _, half := range []string{"tmp_a", "tmp_history/HEAD", "objects/tmp_objdir-y/pack/tmp_pack_z", "refs/heads/tmp_two.lock", "refs/heads/tmp_fixes/one.lock"} {
		write(t, mirror, half, "half")
	}
	if err := removeLeftovers(mirror); err != nil {
		t.Fatal(err)
	}
	for name := range want {
		_, branch, _ := strings.Cut(name, "@")
		if _, err := os.Stat(filepath.Join(mirror, "refs/heads", branch)); err != nil {
			t.Errorf("branch %s: %v", branch, err)
		}
	}
	for _, half := range []string{"tmp_a", "tmp_history", "objects/tmp_objdir-y", "refs/heads/tmp_two.lock", "refs/heads/tmp_fixes/one.lock"} {
		if _, err := os.Stat(filepath.Join(mirror, half)); err == nil {
			t.Errorf("%s is still there", half)
		}
	}
	r.Files("tmp_fixes/one", "tmp_fixes/one", "2")
	want["tmp_fixes/one@tmp_fixes/one"] = "2"
	if got := fetchAll(t, f, mirror, r.Dir, "**"); !maps.Equal(got, want) {
		t.Errorf("after a push: got %v", got)
	}
	if _, err := os.Stat(filepath.Join(mirror, "info/kept")); err != nil {
		t.Errorf("the mirror was made anew: %v", err)
	}
}

// TestFetchCompacts: neither the packs of a mirror nor what git says of it at each fetch grow with the number of pushes, and a push
// of a commit that the mirror forgot brings it back.
func TestFetchCompacts(t *testing.T) {
	r := gitsourcetest.New(t)
	f := newFetcher(t, local(r))
	mirror := filepath.Join(t.TempDir(), "mirror.git")
	noise := make([]byte, 100_000) // a pack of it stays as it is
	rand.NewChaCha8([32]byte{}).Read(noise)
	first := ""
	for i := range maxPacks + 2 {
		before := r.Files("main", "a", fmt.Sprint(i-1), "b", string(noise))
		r.Files("main", "a", fmt.Sprint(i), "b", string(noise))
		r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "-m", "y", "-p", before, "main^{tree}"))
		first = cmp.Or(first, r.Git("rev-parse", "main"))
		if got := fetchAll(t, f, mirror, r.Dir)["a@main"]; got != fmt.Sprint(i) {
			t.Fatalf("round %d: got %q", i, got)
		}
	}
	packs, _ := filepath.Glob(filepath.Join(mirror, "objects/pack/*.pack"))
	if len(packs) > maxPacks {
		t.Errorf("%d packs", len(packs))
	}
	shallow, err := os.ReadFile(filepath.Join(mirror, "shallow"))
	if lines := strings.Count(string(shallow), "\n"); err != nil || lines != 2 {
		t.Errorf("%d commits without history, want that of the compaction and the one since: %v", lines, err)
	}
	r.Git("update-ref", "refs/heads/main", first)
	if got := fetchAll(t, f, mirror, r.Dir)["a@main"]; got != "0" {
		t.Errorf("after a push of an old commit: got %q", got)
	}
	if out, err := exec.CommandContext(t.Context(), "git", "--git-dir="+mirror, "fsck", "--connectivity-only").CombinedOutput(); err != nil {
		t.Errorf("git fsck: %v: %s", err, out)
	}
}

func TestFetchSHA256(t *testing.T) {
	r := gitsourcetest.NewSHA256(t)
	r.Files("main", "a", "1")
	if got := fetchAll(t, newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m"), r.Dir); got["a@main"] != "1" {
		t.Errorf("got %v", got)
	}
}

func TestFetchReportsProgress(t *testing.T) {
	r := gitsourcetest.New(t)
	var pairs []string
	for i := range 50 {
		pairs = append(pairs, fmt.Sprint(i), fmt.Sprint(i))
	}
	r.Files("main", pairs...)
	f := newFetcher(t, local(r))
	var last Progress
	_, err := f.Fetch(t.Context(), filepath.Join(t.TempDir(), "m"), r.Dir, []docstore.Branch{{Name: "main"}},
		func(p Progress) { last = p })
	if err != nil || last.Done != 52 || last.Total != 52 {
		t.Errorf("last %+v, %v; want 52 of 52", last, err)
	}
}

func TestFetchFailures(t *testing.T) {
	empty, r := gitsourcetest.New(t), gitsourcetest.New(t)
	r.Files("main", "a", "1")
	plain := t.TempDir()
	outside := gitsourcetest.New(t)
	inside := t.TempDir()
	os.Symlink(outside.Dir, filepath.Join(inside, "link"))
	f := newFetcher(t, func(c *FetchConfig) {
		c.Folders = []string{filepath.Dir(r.Dir), filepath.Dir(empty.Dir), plain, inside}
	})
	for _, c := range []struct {
		name, url string
		want      []string
		kind      Kind
		words     string
	}{
		{"empty", empty.Dir, nil, Empty, "empty"},
		{"empty, branch", empty.Dir, []string{"main"}, Empty, "empty"},
		{"no branch", r.Dir, []string{"gone", "refs/tags/v1"}, NoBranch, `no branch "gone"`},
		{"no tag", r.Dir, []string{"refs/tags/v1"}, NoBranch, `no "refs/tags/v1"`},
		{"another ref", r.Dir, []string{"refs/pull/1/head"}, Refused, "refs/tags/"},
		{"branch as option", r.Dir, []string{"--upload-pack=x"}, Refused, "dash"},
		{"branch as refspec", r.Dir, []string{"a:b"}, Refused, "branch"},
		{"no folder", filepath.Join(plain, "none"), nil, NotFound, "no such folder"},
		{"no repository", plain, nil, NotFound, "does not exist"},
		{"other folder", outside.Dir, nil, Refused, "rule folder"},
		{"link to other folder", filepath.Join(inside, "link"), nil, Refused, "rule folder"},
		{"option", "--upload-pack=touch " + plain + "/owned", nil, Refused, "rule leading-dash"},
		{"helper", "ext::sh -c touch% " + plain + "/owned", nil, Refused, "rule transport-helper"},
		{"scheme", "git://github.com/x", nil, Refused, "rule scheme"},
		{"private", "https://127.0.0.1/x", nil, Refused, "rule private-address"},
	} {
		branches, err := f.Branches(t.Context(), c.url, c.want)
		if branches != nil || err == nil {
			t.Errorf("%s: got %v", c.name, branches)
		}
		wantFailure(t, err, c.kind, c.words)
		if !c.kind.Permanent() {
			t.Errorf("%s: not permanent", c.name)
		}
	}
	if _, err := os.Stat(filepath.Join(plain, "owned")); err == nil {
		t.Error("an argument ran a program")
	}
	_, err := f.Fetch(t.Context(), filepath.Join(t.TempDir(), "m"), r.Dir, []docstore.Branch{{Name: "gone"}}, nil)
	wantFailure(t, err, Moved, "was deleted")
	if Moved.Permanent() {
		t.Error("a branch that is deleted during a fetch stops the repository for ever")
	}
}

func TestFetchLimits(t *testing.T) {
	r := gitsourcetest.New(t)
	noise := make([]byte, 300_000)
	rnd := rand.New(rand.NewPCG(1, 2))
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	r.Files("main", "noise", string(noise))
	branches := []docstore.Branch{{Name: "main"}}
	mirror := filepath.Join(t.TempDir(), "m")

	tooLarge := func(words string, limit func(*FetchConfig)) {
		t.Helper()
		f := newFetcher(t, func(c *FetchConfig) { local(r)(c); limit(c) })
		_, err := f.Fetch(t.Context(), mirror, r.Dir, branches, nil)
		wantFailure(t, err, TooLarge, words)
		if _, err := os.Stat(mirror); err == nil {
			t.Errorf("%s: what is too large is kept", words)
		}
	}
	tooLarge("200000", func(c *FetchConfig) { c.MaxBytes = 200_000 })
	tooLarge("3 objects", func(c *FetchConfig) { c.MaxObjects = 2 })
}

// TestFetchPartialClone: a partial clone serves what it has; git fetches nothing into it.
func TestFetchPartialClone(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	r.Git("config", "uploadpack.allowFilter", "true")
	r.Git("clone", "-q", "--filter=blob:none", "--no-checkout", "file://"+r.Dir, filepath.Join(filepath.Dir(r.Dir), "partial"))
	r.Git("clone", "-q", "--filter=blob:none", "file://"+r.Dir, filepath.Join(filepath.Dir(r.Dir), "complete"))
	f := newFetcher(t, local(r))
	if got := fetchAll(t, f, filepath.Join(t.TempDir(), "m"), filepath.Dir(r.Dir)+"/complete"); got["a@main"] != "1" {
		t.Errorf("got %v", got)
	}
	_, err := f.Fetch(t.Context(), filepath.Join(t.TempDir(), "m"), filepath.Dir(r.Dir)+"/partial", []docstore.Branch{{Name: "main"}}, nil)
	wantFailure(t, err, Refused, "partial clone")
}

// TestFetchOddDefaultBranch has a default branch that no record can name.
func TestFetchOddDefaultBranch(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	r.Git("branch", "\xff", "main")
	r.Git("symbolic-ref", "HEAD", "refs/heads/\xff")
	f := newFetcher(t, local(r))
	_, err := f.Branches(t.Context(), r.Dir, nil)
	wantFailure(t, err, Refused, "UTF-8")
	if got := fetchAll(t, f, filepath.Join(t.TempDir(), "m"), r.Dir, "main"); got["a@main"] != "1" {
		t.Errorf("got %v", got)
	}
}

// TestBrokenRefs: a ref whose file a crash left empty is no branch, and one without its object, or with one that is no commit, is
// named as what is wrong. It costs no mirror.
func TestBrokenRefs(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	refs := filepath.Join(r.Git("rev-parse", "--absolute-git-dir"), "refs", "heads")
	broken := func(branch, content string) {
		if err := os.WriteFile(filepath.Join(refs, branch), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	broken("empty", "")
	broken("garbage", "x\n")
	f, mirror := newFetcher(t, local(r)), filepath.Join(t.TempDir(), "m")
	for _, want := range [][]string{nil, {"**"}, {"empty", "main"}} {
		if got := fetchAll(t, f, mirror, r.Dir, want...); !maps.Equal(got, map[string]string{"a@main": "1"}) {
			t.Errorf("%q: %v", want, got)
		}
	}
	_, err := f.Branches(t.Context(), r.Dir, []string{"empty"})
	wantFailure(t, err, NoBranch, `no branch "empty"`)
	broken("blob", r.Git("rev-parse", "main:a")+"\n")
	_, err = f.Fetch(t.Context(), mirror, r.Dir, []docstore.Branch{{Name: "blob"}, {Name: "main"}}, nil)
	wantFailure(t, err, Refused, "not a commit")
	broken("missing", strings.Repeat("1", 40)+"\n")
	broken("other", strings.Repeat("1", 40)+"\n")
	fetch := func(want ...string) ([]docstore.Branch, error) {
		all, err := f.Branches(t.Context(), r.Dir, want)
		if err != nil {
			return nil, err
		}
		return f.Fetch(t.Context(), mirror, r.Dir, all, nil)
	}
	if got, err := fetch("**"); err != nil || len(got) != 1 || got[0].Name != "main" {
		t.Errorf("beside broken branches: %v, %v", got, err)
	}
	r.Git("tag", "-a", "-m", "t", "t", "main")
	broken("tag", r.Git("rev-parse", "t")+"\n")
	for i := range 30 { // git says more than a reason repeats
		broken(fmt.Sprintf("good%d", i), r.Git("rev-parse", "main")+"\n")
		r.Git("update-ref", fmt.Sprintf("refs/tags/blob%d", i), r.Git("rev-parse", "main:a"))
		broken(fmt.Sprintf("bad%d", i), r.Git("rev-parse", "main:a")+"\n")
	}
	if got, err := fetch("main", "**"); err != nil || len(got) != 31 {
		t.Errorf("beside very many broken branches: %v, %v", got, err)
	}
	_, err = fetch("missing", "main")
	wantFailure(t, err, Moved, "names an object") // it is the first branch
	before, err := os.Stat(mirror)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.Fetch(t.Context(), mirror, r.Dir, []docstore.Branch{{Name: "missing"}}, nil)
	wantFailure(t, err, Moved, "names an object")
	if after, err := os.Stat(mirror); err != nil || !os.SameFile(before, after) {
		t.Errorf("the mirror, in which nothing was wrong, was made anew: %v", err)
	}
}

func TestFetchEndsWithItsContext(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	cause := errors.New("lease lost")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	if _, err := newFetcher(t, local(r)).Branches(ctx, r.Dir, nil); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause", err)
	}
}

// TestFetchSSH replaces ssh by a program that checks its arguments and runs git's command.
// The program and the repository are in the folder of the host's credentials, since git and
// ssh can read no other.
func TestFetchSSH(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1")
	bin, credentials := filepath.Dir(r.Dir), filepath.Join(t.TempDir(), "trawl's")
	var script strings.Builder
	script.WriteString("#!/bin/sh\nall=$*\nfor last; do :; done\n")
	for _, want := range []string{
		"BatchMode=yes", "StrictHostKeyChecking=yes", "HostName=127.0.0.1", "HostKeyAlias=[127.0.0.1]:2222",
		"UserKnownHostsFile=" + credentials + "/known_hosts", "IdentityFile=" + credentials + "/127.0.0.1:2222/ssh_key", "git@127.0.0.1",
	} {
		fmt.Fprintf(&script, "case \"$all\" in *\"%s\"*) ;; *) echo \"without %s: $all\" >&2; exit 1 ;; esac\n", want, want)
	}
	script.WriteString("exec sh -c \"$last\"\n")
	err := errors.Join(
		os.WriteFile(filepath.Join(bin, "ssh"), []byte(script.String()), 0o755),
		os.Mkdir(credentials, 0o755),
		os.Symlink(bin, filepath.Join(credentials, "127.0.0.1:2222")))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	f := newFetcher(t, func(c *FetchConfig) {
		c.PrivateNetworks = []string{"127.0.0.0/8"}
		c.Credentials = credentials
	})
	got := fetchAll(t, f, filepath.Join(t.TempDir(), "m"), "ssh://git@127.0.0.1:2222"+r.Dir)
	if got["a@main"] != "1" {
		t.Errorf("got %v", got)
	}
}
