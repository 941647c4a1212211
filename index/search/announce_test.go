package search_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/search"
)

// TestSearchesAnnounceWhatTheyRead: a search of a shard in a bucket waits a few times, not once for
// each part that it reads, and it announces little that it does not read.
func TestSearchesAnnounceWhatTheyRead(t *testing.T) {
	corpus, err := indextest.FromFolder(filepath.Join(goSource(t), "net"))
	if err != nil {
		t.Fatal(err)
	}
	whole := buildShard(t, corpus)
	for _, c := range []struct {
		text  string
		files int
	}{
		{"ErrUnexpectedEOF", 50}, {"case:yes Completed", 50}, {"func.*Context.*error", 50}, {"content:strings", 50}, {"connection reset", 50},
		{`"return nil, err"`, 50}, {"[a-z]+_?helper[0-9A-Z]", 50}, {"conn", 50}, {"sym:Dial", 50}, {"content:conn content:error", 50},
		{`"return nil"`, 5}, {"return.*nil", 5}, {"content:return content:err", 5}, {"dial", 5}, {"[0-9][a-f]-", 50}, {"-content:return", 50}, {"q", 50},
	} {
		for mode, name := range map[search.Mode]string{search.Exhaustive: "exhaustive", search.TopK: "top k"} {
			t.Run(fmt.Sprintf("%s %d of %s", name, c.files, c.text), func(t *testing.T) {
				opts := search.Options{Mode: mode, MaxFiles: c.files, MaxMatchesPerFile: 100}
				without, read := waits(t, whole, c.text, opts, false)
				with, loaded := waits(t, whole, c.text, opts, true)
				t.Logf("%d and %d waits, %d and %d blocks", with, without, loaded, read)
				if with > 24 || with > without*2/3 {
					t.Errorf("it waits %d times, %d without announcements", with, without)
				}
				if loaded > read*3/2+16 {
					t.Errorf("%d blocks are loaded where %d are read", loaded, read)
				}
			})
		}
	}
}

// waits returns how often a search waits for parts of a shard, and how many it loads, in blocks of
// 16 KiB. While it waits for one, all that it has announced comes as well.
func waits(t *testing.T, whole []byte, text string, opts search.Options, announced bool) (waits, blocks int) {
	t.Helper()
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1)) // without helpers each run waits equally often
	var mu sync.Mutex
	loaded, underWay := map[int64]bool{}, map[int64]bool{}
	soon := func(off, n int64) {
		mu.Lock()
		defer mu.Unlock()
		for at := off / format.ChecksumBlock; at*format.ChecksumBlock < off+n; at++ {
			if !loaded[at] {
				loaded[at], underWay[at] = true, true
			}
		}
	}
	fill := func(off, n int64) error {
		mu.Lock()
		defer mu.Unlock()
		for at := off / format.ChecksumBlock; at*format.ChecksumBlock < off+n; at++ {
			if !loaded[at] || underWay[at] {
				waits++
				clear(underWay)
			}
			loaded[at] = true
		}
		return nil
	}
	if !announced {
		soon = nil
	}
	f, err := format.NewSparse("sparse", whole, fill, soon)
	if err != nil {
		t.Fatal(err)
	}
	s, err := search.OpenFile(f)
	if err != nil {
		t.Fatal(err)
	}
	mustSearch(t, s, parse(t, text), opts)
	return waits, len(loaded)
}

// TestOpaqueTextIsAnnounced: where words are unknown the text is read, all of it at once, and what is shown of large files comes at once, too.
func TestOpaqueTextIsAnnounced(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	filler := func(n int) (text []byte) { // takes as many bytes in a shard
		for len(text) < n {
			text = fmt.Appendf(text, "%x\n", random.Uint64())
		}
		return text
	}
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	for i := range 40 {
		content := slices.Concat([]byte("needle\n"), filler(40_000), bytes.Repeat([]byte("y"), 300), []byte(" needle\n"), filler(10_000))
		if i%2 == 1 {
			content = filler(600_000)
			for at := 1000; at < len(content); at += 50_000 {
				copy(content[at:], "\npin\n")
			}
		}
		repo.Documents = append(repo.Documents, indextest.Document{Path: fmt.Sprintf("%02d.txt", i), Branches: repo.Branches, Content: content})
	}
	whole := buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}})
	for text, most := range map[string]int{"content:needle": 10, "content:pin": 10} {
		opts := search.Options{Mode: search.TopK, MaxFiles: 50, MaxMatchesPerFile: 10}
		without, _ := waits(t, whole, text, opts, false)
		with, _ := waits(t, whole, text, opts, true)
		if with > most {
			t.Errorf("%s waits %d times, %d without announcements", text, with, without)
		}
	}
}

// TestWholeContentsAreAnnounced: contents that are read whole come at once, also large ones.
func TestWholeContentsAreAnnounced(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	repo := indextest.Repo{Name: "r", Branches: []string{"main"}}
	for i := range 30 {
		var content []byte
		for len(content) < 300_000 {
			content = fmt.Appendf(content, "// %x\n", random.Uint64())
		}
		content = fmt.Appendf(content, "func needle() {}\n")
		repo.Documents = append(repo.Documents, indextest.Document{Path: fmt.Sprintf("%02d.go", i), Branches: repo.Branches, Language: "Go", Content: content})
	}
	whole := buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{repo}})
	opts := search.Options{Mode: search.TopK, MaxFiles: 50, MaxMatchesPerFile: 10}
	without, _ := waits(t, whole, "sym:needle", opts, false)
	if with, _ := waits(t, whole, "sym:needle", opts, true); with > 10 {
		t.Errorf("it waits %d times, %d without announcements", with, without)
	}
}
