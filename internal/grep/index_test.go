package grep_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/grep"
	"github.com/trawl-search/trawl/internal/grep/localindex"
)

func write(t *testing.T, path, content string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

// pond makes a folder with enough files that Update indexes them.
func pond(t *testing.T) *searcher {
	t.Helper()
	s := &searcher{tree: filepath.Join(t.TempDir(), "\xff"), cache: t.TempDir(), now: long}
	for i := range 100 {
		write(t, filepath.Join(s.tree, fmt.Sprintf("d%d/f%d.txt", i%7, i)), fmt.Sprintf("fish %d\nwater\n", i))
	}
	return s
}

func ask(patterns ...string) question {
	return question{patterns: patterns, show: grep.Show{LineNumbers: true}}
}

// lines searches for valid patterns.
func (s *searcher) lines(t *testing.T, patterns ...string) string {
	t.Helper()
	out, err := s.search(t, ask(patterns...))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// indexFiles are the files of the only index.
func (s *searcher) indexFiles(t *testing.T, glob string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join(s.cache, "*", glob))
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// TestChangesAreSeen changes a folder at random between searches, and compares each with one without an index.
func TestChangesAreSeen(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 3))
		s := pond(t)
		s.now = []func() time.Time{long, time.Now}[seed%2] // with time.Now nothing has settled
		for step := range 15 {
			tick(t, s.cache)
			for range []int{0, 1, 3, 90}[rng.IntN(4)] {
				change(t, rng, s.tree)
			}
			q := ask([]string{"fish 1", `\bfish [0-9]$`, "whale", "^water$"}[rng.IntN(4)])
			got, err := s.search(t, q)
			if err != nil {
				t.Fatal(err)
			}
			plain := &searcher{tree: s.tree, cache: t.TempDir(), now: long}
			if want, _ := plain.search(t, q); got != want {
				t.Fatalf("seed %d, step %d, %q: %s", seed, step, q.patterns, difference(got, want))
			}
		}
	}
}

// TestFoldersShareAnIndex: searches of a folder and of folders in it, between random changes, answer as without an index, and make one
// index in all.
func TestFoldersShareAnIndex(t *testing.T) {
	for seed := range uint64(4) {
		rng := rand.New(rand.NewPCG(seed, 5))
		whole := pond(t)
		first := &searcher{tree: whole.tree + "/d3", cache: whole.cache, now: long}
		first.lines(t, "fish") // has an index of its own until there is one above
		whole.lines(t, "fish")
		for step := range 25 {
			tick(t, whole.cache)
			for range []int{0, 1, 3, 90}[rng.IntN(4)] {
				change(t, rng, whole.tree)
			}
			s := &searcher{tree: whole.tree, cache: whole.cache, now: []func() time.Time{long, time.Now}[seed%2]}
			if below := fmt.Sprintf("%s/d%d", whole.tree, rng.IntN(9)); rng.IntN(4) > 0 {
				write(t, below+"/deeper/f.txt", "fish 1\nwater\n")
				s.tree = below + []string{"", "/deeper"}[rng.IntN(2)]
			}
			q := ask([]string{"fish 1", `\bfish [0-9]$`, "whale", "^water$"}[rng.IntN(4)])
			got, err := s.search(t, q)
			if err != nil {
				t.Fatal(err)
			}
			plain := &searcher{tree: s.tree, cache: t.TempDir(), now: long}
			if want, _ := plain.search(t, q); got != want {
				t.Fatalf("seed %d, step %d, %q in %s: %s", seed, step, q.patterns, s.tree, difference(got, want))
			}
		}
		write(t, whole.tree+"/.ignore", "") // folders that were passed over had an index of their own
		tick(t, whole.cache)
		whole.lines(t, "fish")
		for n := range 9 {
			for _, below := range []string{"", "/deeper"} {
				write(t, fmt.Sprintf("%s/d%d%s/f.txt", whole.tree, n, below), "fish 1\n")
				(&searcher{tree: fmt.Sprintf("%s/d%d%s", whole.tree, n, below), cache: whole.cache, now: long}).lines(t, "fish")
			}
		}
		if n := len(whole.indexFiles(t, "files")); n != 1 {
			t.Errorf("seed %d: %d indexes", seed, n)
		}
	}
}

// TestPassedOverFolders: a folder that the index above passes over has one of its own.
func TestPassedOverFolders(t *testing.T) {
	s := pond(t)
	write(t, s.tree+"/.ignore", "d3\n")
	s.lines(t, "fish")
	passed := &searcher{tree: s.tree + "/d3", cache: s.cache, now: long}
	for i := range 70 {
		write(t, fmt.Sprintf("%s/g%d.txt", passed.tree, i), "heron\n")
	}
	for i := range 3 {
		write(t, fmt.Sprintf("%s/new%d.txt", s.tree, i), "") // the index above may have the folder, until it is listed
		if got := passed.lines(t, "heron"); strings.Count(got, "heron") != 70 {
			t.Errorf("found %q", got)
		}
	}
	if n := len(s.indexFiles(t, "files")); n != 2 {
		t.Errorf("%d indexes", n)
	}
	write(t, s.tree+"/.ignore", "")
	s.lines(t, "heron")
	passed.lines(t, "heron")
	if n := len(s.indexFiles(t, "files")); n != 1 {
		t.Errorf("%d indexes once it is not passed over", n)
	}
}

// tick waits until the clock of files has advanced: with a clock by which everything has settled, two changes
// at the same time would look alike.
func tick(t *testing.T, dir string) {
	t.Helper()
	var first time.Time
	for {
		path := filepath.Join(dir, "tick")
		write(t, path, "")
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = info.ModTime()
		} else if info.ModTime().After(first) {
			return
		}
	}
}

// change changes one thing in a tree.
func change(t *testing.T, rng *rand.Rand, tree string) {
	t.Helper()
	dir := fmt.Sprintf("%s/d%d", tree, rng.IntN(9))
	path := fmt.Sprintf("%s/f%d.txt", dir, rng.IntN(120))
	content := []string{"fish 1\n", "whale\n", "water\n", "fish 2\nwhale\x00"}[rng.IntN(4)]
	switch rng.IntN(13) {
	case 12:
		write(t, tree+"/.ignore", []string{fmt.Sprintf("d%d\n", rng.IntN(9)), "deeper\n", ""}[rng.IntN(3)])
	case 0:
		_ = os.Remove(path) // which may not be there
	case 1:
		_ = os.Rename(dir, tree+"/e") // as above
	case 2:
		write(t, dir+"/.ignore", []string{"f1*\n", "", "!f1*\n*1.txt"}[rng.IntN(3)])
	case 3:
		if before, err := os.Stat(path); err == nil { // the same size and time
			write(t, path, strings.Repeat("w", int(before.Size())))
			if err := os.Chtimes(path, before.ModTime(), before.ModTime()); err != nil {
				t.Fatal(err)
			}
		}
	case 4:
		write(t, path+".new", content)
		if err := os.Rename(path+".new", path); err != nil {
			t.Fatal(err)
		}
	default:
		write(t, path, content)
	}
}

func TestIndexIsUsed(t *testing.T) {
	s := pond(t)
	want := s.lines(t, "fish 17")
	if !strings.HasSuffix(want, "f17.txt:1:fish 17\n") || len(s.indexFiles(t, "*.trawl")) != 1 {
		t.Fatalf("%q with the shards %q", want, s.indexFiles(t, "*"))
	}
	index := s.open(t)
	p, err := grep.NewPattern([]string{"fish 17"}, grep.PatternOptions{})
	if err != nil {
		t.Fatal(err)
	}
	paths, warnings, err := index.Candidates(t.Context(), p.Needs())
	if len(paths) != 1 || warnings != nil || err != nil {
		t.Errorf("%d candidates, %v, %v", len(paths), warnings, err)
	}
}

func (s *searcher) open(t *testing.T) *localindex.Index {
	t.Helper()
	index, err := localindex.Open(s.tree, localindex.Options{Cache: s.cache, Now: s.now})
	if err != nil {
		t.Fatal(err)
	}
	return index
}

// TestDamage damages each file of an index at every place: answers stay the same, and the index is
// rebuilt.
func TestDamage(t *testing.T) {
	s := pond(t)
	want := s.lines(t, "fish 1")
	for _, glob := range []string{"files", "*.trawl"} {
		for step := range 9 {
			path := s.indexFiles(t, glob)[0]
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			at := len(content) * step / 9
			content[at] ^= 0x55
			if step%3 == 2 {
				content = content[:at]
			}
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
			if got := s.linesDamaged(t, "fish 1"); got != want {
				t.Fatalf("%s damaged at %d: %s", path, at, difference(got, want))
			}
			if got := s.lines(t, "fish 1"); got != want {
				t.Fatalf("%s was damaged at %d: %s", path, at, difference(got, want))
			}
		}
	}
}

// linesDamaged is lines for a damaged index.
func (s *searcher) linesDamaged(t *testing.T, text string) string {
	t.Helper()
	p, err := grep.NewPattern([]string{text}, grep.PatternOptions{})
	if err != nil {
		t.Fatal(err)
	}
	index := s.open(t)
	var out bytes.Buffer
	search := grep.Search{Roots: []grep.Root{{Path: s.tree, Index: index}}, Pattern: p, Show: grep.Show{LineNumbers: true}, Out: &out, Warn: func(err error) { t.Error(err) }}
	if _, err := search.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := index.Update(t.Context(), func(int, int64) {}); err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(out.String(), s.tree+"/", "")
}

func TestStoppedUpdateIsNoDamage(t *testing.T) {
	s := pond(t)
	ctx, cancel := context.WithCancel(t.Context())
	index := s.open(t)
	if _, _, err := index.Candidates(ctx, nil); err != nil {
		t.Fatal(err)
	}
	if err := index.Update(ctx, func(int, int64) { cancel() }); !errors.Is(err, context.Canceled) {
		t.Errorf("a stopped update: %v", err)
	}
	if left := s.indexFiles(t, "*.trawl*"); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	write(t, filepath.Join(filepath.Dir(s.indexFiles(t, "lock")[0]), "00000001.trawl"), "of a process that died")
	if got := s.lines(t, "fish 17"); !strings.HasSuffix(got, "f17.txt:1:fish 17\n") {
		t.Errorf("afterwards: %q", got)
	}
	if left := s.indexFiles(t, "*.trawl*"); len(left) != 1 || strings.HasSuffix(left[0], "00000001.trawl") {
		t.Errorf("shards: %q", left)
	}
}

// TestManyAtOnce searches one folder from several goroutines, as several processes would, while it changes.
func TestManyAtOnce(t *testing.T) {
	s := pond(t)
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			for round := range 6 {
				if i == 0 {
					for n := range 70 {
						write(t, fmt.Sprintf("%s/new%d/%d.txt", s.tree, round, n), "shrimp\n")
					}
				}
				if got := s.lines(t, "fish 17"); !strings.HasSuffix(got, "f17.txt:1:fish 17\n") {
					t.Errorf("%q", got)
				}
			}
		})
	}
	group.Wait()
	if got := strings.Count(s.lines(t, "shrimp"), "\n"); got != 6*70 {
		t.Errorf("%d of %d lines", got, 6*70)
	}
}

func TestSmallShardsBecomeOne(t *testing.T) {
	s := pond(t)
	for round := range 12 {
		s.lines(t, "shrimp")
		for n := range 70 {
			write(t, fmt.Sprintf("%s/new%d/%d.txt", s.tree, round, n), "shrimp\n")
		}
	}
	if got := strings.Count(s.lines(t, "shrimp"), "\n"); got != 12*70 {
		t.Errorf("%d of %d lines", got, 12*70)
	}
	if n := len(s.indexFiles(t, "*.trawl")); n > 9 {
		t.Errorf("%d shards", n)
	}
}

func TestForget(t *testing.T) {
	s := pond(t)
	s.lines(t, "fish")
	size, err := localindex.Forget(s.tree, s.cache)
	if left := s.indexFiles(t, "*"); err != nil || size == 0 || len(left) > 0 {
		t.Errorf("%d bytes forgotten, %v, left %q", size, err, left)
	}
	if _, err := localindex.Forget(filepath.Join(s.tree, "gone"), s.cache); err != nil {
		t.Error(err)
	}
}

// TestIndexesOfGoneFolders: a new index takes the place of those whose folders are gone, and of no others.
func TestIndexesOfGoneFolders(t *testing.T) {
	base, cache := t.TempDir(), t.TempDir()
	index := func(name string) {
		s := &searcher{tree: filepath.Join(base, name), cache: cache, now: long}
		write(t, filepath.Join(s.tree, "f"), "heron\n")
		s.lines(t, "heron")
	}
	for _, name := range []string{"stays", "below/gone", "replaced", strings.Repeat("long/", 700) + "gone", "gone"} {
		index(name)
	}
	for _, name := range []string{"below", "replaced", "long", "gone"} {
		if err := os.RemoveAll(filepath.Join(base, name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(base, "replaced"), "a file")
	write(t, filepath.Join(cache, "other/files"), "of another program")
	index("stays") // makes none
	if n := len(entries(t, cache)); n != 6 {
		t.Errorf("%d entries, want 6", n)
	}
	index("new")
	if got := entries(t, cache); len(got) != 3 {
		t.Errorf("%q are left, want those of two folders and what is not ours", got)
	}
}

func entries(t *testing.T, dir string) (names []string) {
	t.Helper()
	list, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range list {
		names = append(names, e.Name())
	}
	return names
}
