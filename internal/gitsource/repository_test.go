package gitsource

import (
	"bytes"
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"

	"github.com/trawl-search/trawl/integration/hostile"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/testrun"
)

func openRepository(t testing.TB, dir string, limits Limits, want ...string) *Repository {
	t.Helper()
	r, err := OpenRepository(t.Context(), dir, want, limits)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestRepositoryOddEntries(t *testing.T) {
	r := gitsourcetest.New(t)
	text, empty, binary := r.Blob("package x\n"), r.Blob(""), r.Blob("a\x00b")
	huge := r.Blob(strings.Repeat("x", 1001))
	limit := r.Blob(strings.Repeat("y", 1000))
	deep := strings.Repeat("d/", 10) + "f.go"
	commit := r.Commit("main",
		[3]string{"100644", text, "a.go"},
		[3]string{"100755", text, "a b/with space.py"},
		[3]string{"100644", text, "-dash"},
		[3]string{"100644", text, "new\nline.c"},
		[3]string{"100644", text, "tab\tand\"quote"},
		[3]string{"100644", text, "bad\xff\xfeutf8.go"},
		[3]string{"100644", text, "größe.txt"},
		[3]string{"100644", text, "x/y"},
		[3]string{"100644", text, "x.y"},
		[3]string{"100644", empty, "empty"},
		[3]string{"100644", binary, "binary.bin"},
		[3]string{"100644", huge, "huge"},
		[3]string{"100644", limit, "just-not-huge"},
		[3]string{"120000", text, "link"},
		[3]string{"160000", strings.Repeat("1", 40), "sub"},
		[3]string{"100644", text, deep},
	)
	repo := openRepository(t, r.Dir, Limits{MaxFileSize: 1000, MaxDepth: 10})
	if got, want := repo.Branches(), []docstore.Branch{{Name: "main", Commit: commit}}; !slices.Equal(got, want) {
		t.Errorf("branches %v, want %v", got, want)
	}
	docs := collect(t, repo)
	if repo.Total() != len(docs) || repo.Omitted() != 0 {
		t.Errorf("total %d, omitted %d of %d", repo.Total(), repo.Omitted(), len(docs))
	}
	want := map[string]docstore.SkipReason{
		"binary.bin": docstore.Binary, "huge": docstore.TooLarge,
		"sub": docstore.Submodule, deep: docstore.TooDeep,
	}
	if len(docs) != 16 {
		t.Errorf("%d documents, want 16", len(docs))
	}
	if !slices.IsSortedFunc(docs, func(a, b build.Document) int { return bytes.Compare(a.Path, b.Path) }) {
		t.Error("documents are not in path order")
	}
	for _, d := range docs {
		if d.Skip != want[string(d.Path)] || (d.Content != nil) != (d.Skip == docstore.NotSkipped) {
			t.Errorf("%q: skipped as %v with %d bytes, want %v", d.Path, d.Skip, len(d.Content), want[string(d.Path)])
		}
		if got := names(repo, d); got != "main" {
			t.Errorf("%q: branches %v", d.Path, got)
		}
		switch string(d.Path) {
		case "bad\xff\xfeutf8.go":
			if string(d.Content) != "package x\n" || d.Language != "Go" || hex.EncodeToString(d.OID) != text {
				t.Errorf("%q: %q %s %x", d.Path, d.Content, d.Language, d.OID)
			}
		case "link":
			if string(d.Content) != "package x\n" || d.Size != 10 {
				t.Errorf("link: %q, size %d", d.Content, d.Size)
			}
		case "huge":
			if d.Size != 1001 {
				t.Errorf("huge: size %d", d.Size)
			}
		}
	}
}

func TestRepositoryUnionOfBranches(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "same", "1", "changed", "main", "only-main", "m", "z/x", "1")
	r.Files("dev", "same", "1", "changed", "dev", "only-dev", "d", "z", "1")
	r.Files("old", "same", "1", "changed", "main")
	r.Git("update-ref", "refs/heads/twin", "refs/heads/old")

	got := make(map[string]string)
	var order []string
	repo := openRepository(t, r.Dir, Limits{}, "dev", "main", "HEAD", "old", "twin")
	for _, d := range collect(t, repo) {
		key := string(d.Path) + "=" + string(d.Content)
		got[key] = names(repo, d)
		order = append(order, key)
	}
	want := map[string]string{
		"same=1": "dev,main,old,twin", "changed=dev": "dev", "changed=main": "main,old,twin",
		"only-main=m": "main", "only-dev=d": "dev", "z/x=1": "main", "z=1": "dev",
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	wantOrder := []string{"changed=main", "changed=dev", "only-dev=d", "only-main=m", "same=1", "z=1", "z/x=1"}
	if !slices.Equal(order, wantOrder) {
		t.Errorf("order %v, want %v", order, wantOrder)
	}
}

// TestRepositoryUnionProperty compares the union of random branches with one
// made by maps.
func TestRepositoryUnionProperty(t *testing.T) {
	rnd := testrun.Rand(t)
	r := gitsourcetest.New(t)
	contents := []string{"a", "b", "c"}
	want := make(map[string]string)
	var branches []string
	for b := range 5 {
		branch := fmt.Sprintf("b%d", b)
		var pairs []string
		for _, p := range []string{"a", "a.b", "b/a", "b/c/d", "b-", "c0", "\xffx", "d/\n"} {
			if c := rnd.IntN(5); c < len(contents) {
				pairs = append(pairs, p, contents[c])
				key := p + "=" + contents[c]
				want[key] = strings.TrimPrefix(want[key]+","+branch, ",")
			}
		}
		r.Files(branch, pairs...)
		branches = append(branches, branch)
	}
	got := make(map[string]string)
	repo := openRepository(t, r.Dir, Limits{}, branches...)
	docs := collect(t, repo)
	for _, d := range docs {
		got[string(d.Path)+"="+string(d.Content)] = names(repo, d)
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || len(docs) != len(want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if !slices.IsSortedFunc(docs, func(a, b build.Document) int {
		return cmp.Or(bytes.Compare(a.Path, b.Path), bytes.Compare(a.OID, b.OID))
	}) {
		t.Error("documents are not in the order of path and object")
	}
}

// TestRepositoryLinkHereFileThere has one object at one path as a symbolic link
// on one branch and as a file on another.
func TestRepositoryLinkHereFileThere(t *testing.T) {
	r := gitsourcetest.New(t)
	oid := r.Blob("target")
	r.Commit("a", [3]string{"120000", oid, "x"})
	r.Commit("b", [3]string{"100644", oid, "x"})
	for _, order := range [][]string{{"a", "b"}, {"b", "a"}} {
		docs := collect(t, openRepository(t, r.Dir, Limits{}, order...))
		if len(docs) != 1 || docs[0].Skip != docstore.NotSkipped || len(docs[0].Branches) != 2 {
			t.Errorf("%v: documents %+v", order, docs)
		}
	}
}

// TestTreeBomb lists trees that hold each other: 10,000 million paths of ten small objects.
// The listing fails at the limit on documents or on the bytes of their paths, and git ends
// there.
func TestTreeBomb(t *testing.T) {
	for name, part := range map[string]string{"many paths": "", "long paths": strings.Repeat("long", 50)} {
		t.Run(name, func(t *testing.T) {
			r := gitsourcetest.New(t)
			hostile.TreeBomb(r, part)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			_, err := OpenRepository(t.Context(), r.Dir, []string{"main"}, Limits{MaxDocuments: 1000, MaxDepth: 100})
			runtime.ReadMemStats(&after)
			var fail *Failure
			if !errors.As(err, &fail) || fail.Kind != TooLarge {
				t.Errorf("got %v", err)
			}
			// It is 5 MB at most; a name alone of each of the 10,000 million paths would be gigabytes.
			if taken := after.TotalAlloc - before.TotalAlloc; taken > 64<<20 {
				t.Errorf("%d bytes were allocated for it", taken)
			}
		})
	}
}

// TestAnswersAreBounded: git's output is bounded while it is read.
func TestAnswersAreBounded(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", strings.Repeat("a", 1<<20))
	g := gitRun{box: reading(0, r.Dir), env: gitEnv(nil), maxOutput: 1 << 20}
	for limit, fits := range map[int]bool{1 << 20: true, 1<<20 - 1: false, 100: false} {
		g.maxOutput = limit
		out, err := g.run(t.Context(), strings.NewReader(""), "-C", r.Dir, "cat-file", "blob", "main:a")
		fail, tooLarge := errors.AsType[*Failure](err)
		if tooLarge = tooLarge && fail.Kind == TooLarge; tooLarge == fits || fits && len(out) != 1<<20 {
			t.Errorf("limit %d: %d bytes, %v", limit, len(out), err)
		}
	}
}

// TestLongPaths lists a path that is too long to be indexed, and a short one.
func TestLongPaths(t *testing.T) {
	r := gitsourcetest.New(t)
	blob := r.Blob("x")
	entry := "100644 blob " + blob
	for range 3 * MaxPath / 4096 {
		entry = "040000 tree " + strings.TrimSpace(r.GitIn(entry+"\t"+strings.Repeat("d", 4095)+"\n", "mktree"))
	}
	root := strings.TrimSpace(r.GitIn(entry+"\tlong\n100644 blob "+blob+"\tshort\n", "mktree"))
	commit := strings.TrimSpace(r.Git("commit-tree", "-m", "long", root))
	r.Git("update-ref", "refs/heads/main", commit)
	docs := collect(t, openRepository(t, r.Dir, Limits{}, "main"))
	if len(docs) != 1 || string(docs[0].Path) != "short" {
		t.Errorf("%d documents", len(docs))
	}
}

func TestRepositoryFailures(t *testing.T) {
	r := gitsourcetest.New(t)
	check := func(name string, kind Kind, want ...string) {
		t.Helper()
		_, err := OpenRepository(t.Context(), r.Dir, want, Limits{MaxDocuments: 2})
		var fail *Failure
		if !errors.As(err, &fail) || fail.Kind != kind {
			t.Errorf("%s: got %v", name, err)
		}
	}
	check("empty", Empty)
	check("empty, branch", Empty, "main")
	r.Files("main", "a", "a", "b", "b", "c", "c")
	check("missing branch", NoBranch, "other")
	check("option", Refused, "--all")
	r.Git("checkout", "-q", "--detach", "main")
	r.Git("update-ref", "-d", "refs/heads/main")
	check("missing branch of a repository without refs", NoBranch, "other")
	r.Git("checkout", "-q", "-b", "main")
	check("too many", TooLarge)
	_, err := OpenRepository(t.Context(), t.TempDir(), nil, Limits{})
	if fail := (*Failure)(nil); !errors.As(err, &fail) {
		t.Errorf("no repository: got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := OpenRepository(ctx, r.Dir, nil, Limits{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v", err)
	}
}

func TestRepositoryDetachedAndEmptyTree(t *testing.T) {
	r := gitsourcetest.New(t)
	commit := r.Commit("main")
	r.Git("update-ref", "--no-deref", "HEAD", commit)
	r.Git("checkout", "-q", "--detach", commit)
	repo := openRepository(t, r.Dir, Limits{})
	if got := repo.Branches(); len(got) != 1 || got[0].Name != "HEAD" || got[0].Commit != commit {
		t.Errorf("branches %v", got)
	}
	if docs := collect(t, repo); len(docs) != 0 {
		t.Errorf("documents %v", docs)
	}
}

// TestRepositoryBrokenObjects removes one object and damages another: only
// their documents suffer.
func TestRepositoryBrokenObjects(t *testing.T) {
	r := gitsourcetest.New(t)
	var pairs []string
	for i := range 20 {
		pairs = append(pairs, fmt.Sprintf("f%02d", i), fmt.Sprintf("content %d", i))
	}
	r.Files("main", pairs...)
	object := func(content string) string {
		oid := r.Blob(content)
		return filepath.Join(r.Dir, ".git", "objects", oid[:2], oid[2:])
	}
	if err := os.Remove(object("content 3")); err != nil {
		t.Fatal(err)
	}
	damaged := object("content 7")
	data, _ := os.ReadFile(damaged)
	os.Chmod(damaged, 0o644)
	if err := os.WriteFile(damaged, append(data[:len(data)-6], 1, 2, 3, 4, 5, 6), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, d := range collect(t, openRepository(t, r.Dir, Limits{})) {
		want := docstore.NotSkipped
		if p := string(d.Path); p == "f03" || p == "f07" {
			want = docstore.Unreadable
		}
		if d.Skip != want {
			t.Errorf("%s: skipped as %v, want %v", d.Path, d.Skip, want)
		}
	}
}

func TestRepositoryTreeOutOfOrder(t *testing.T) {
	r := gitsourcetest.New(t)
	oid, _ := hex.DecodeString(r.Blob("x"))
	tree := "100644 b\x00" + string(oid) + "100644 a\x00" + string(oid) + "100644 a\x00" + string(oid)
	hash := r.GitIn(tree, "hash-object", "-w", "-t", "tree", "--literally", "--stdin")
	r.Git("update-ref", "refs/heads/main", r.Git("commit-tree", "-m", "x", hash))
	docs := collect(t, openRepository(t, r.Dir, Limits{}))
	if len(docs) != 2 || string(docs[0].Path) != "a" || string(docs[1].Path) != "b" {
		t.Errorf("documents %v", docs)
	}
}

func TestRepositorySHA256(t *testing.T) {
	r := gitsourcetest.NewSHA256(t)
	r.Files("main", "a.go", "package a")
	docs := collect(t, openRepository(t, r.Dir, Limits{}))
	if len(docs) != 1 || len(docs[0].OID) != 32 || string(docs[0].Content) != "package a" {
		t.Errorf("documents %v", docs)
	}
}

func TestRepositoryEarlyStop(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "1", "b", "2", "c", "3")
	repo := openRepository(t, r.Dir, Limits{})
	for range repo.Documents(t.Context()) {
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	cause := errors.New("enough")
	n := 0
	for _, err := range repo.Documents(ctx) {
		if n++; n == 2 && !errors.Is(err, cause) {
			t.Errorf("got %v, want the cause", err)
		}
		cancel(cause)
	}
	if n != 2 {
		t.Errorf("%d steps, want 2", n)
	}
}

func TestOpen(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "in/a", "1")
	if err := os.MkdirAll(filepath.Join(r.Dir, "in"), 0o755); err != nil {
		t.Fatal(err)
	}
	linked := filepath.Join(t.TempDir(), "linked.git") // old versions of git make HEAD a link, here to a branch that is packed
	r.Git("clone", "-q", "--bare", r.Dir, linked)
	r.Git("--git-dir="+linked, "pack-refs", "--all")
	must(t, os.Remove(filepath.Join(linked, "HEAD")))
	must(t, os.Symlink("refs/heads/main", filepath.Join(linked, "HEAD")))
	for dir, isRepo := range map[string]bool{r.Dir: true, filepath.Join(r.Dir, ".git"): true, filepath.Join(r.Dir, "in"): false, linked: true} {
		s, err := Open(t.Context(), dir, nil, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		if _, got := s.(*Repository); got != isRepo {
			t.Errorf("%s: repository %v, want %v", dir, got, isRepo)
		}
		s.Close()
	}
	if _, err := Open(t.Context(), t.TempDir(), []string{"main"}, Limits{}); err == nil {
		t.Error("a branch of a plain folder is accepted")
	}
}
