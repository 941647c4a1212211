package serve_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
	"github.com/trawl-search/trawl/services/searcher/internal/shardcache"
)

// shardOf builds a shard with one repo.
func shardOf(t *testing.T, repo string) string {
	t.Helper()
	var out bytes.Buffer
	b, err := build.NewBuilder(&out, build.Options{})
	if err == nil {
		err = b.AddRepo(docstore.Repo{
			Name: repo, URL: "https://" + repo, Branches: []docstore.Branch{{Name: "main"}, {Name: "größe"}}, Meta: map[string]string{"team": "x"},
		})
	}
	for _, path := range []string{"a.go", "b.go", "c.txt"} {
		if err == nil {
			text := "package heron // " + repo + " " + path + "\n\nfunc Heron() {}\n"
			err = b.Add(build.Document{Path: []byte(path), Content: []byte(text), Branches: []uint32{0, 1}, Language: "Go"})
		}
	}
	if err == nil {
		_, err = b.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestDamageAfterTheFirstUse changes bytes of a shard on the disk that searches have read and
// verified. No answer fails, and the other shard is always searched. A scrub finds the damage:
// afterwards, no answer is wrong and the shard is fetched again.
func TestDamageAfterTheFirstUse(t *testing.T) {
	dir := t.TempDir()
	damaged, sound := shardOf(t, "example.com/damaged"), shardOf(t, "example.com/sound")
	open := func(path string) (shardcache.Shard, error) { return search.Open(path) }
	store := storeOf(t, dir, open, damaged, sound)
	s := serviceOf(serve.Config{}, store)
	plan := &searchv1.Plan{}
	for repo, content := range map[string]string{"example.com/damaged": damaged, "example.com/sound": sound} {
		plan.Shards = append(plan.Shards, planOf(repo, content).Shards...)
	}
	ask := func(text string) *searchv1.SearchResponse {
		resp, err := searchAll(t.Context(), s, &searchv1.SearchRequest{Query: text, Plan: plan, Options: &searchv1.SearchOptions{MaxFiles: 10}})
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if _, err := proto.Marshal(resp); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		resp.Statistics = nil
		return resp
	}
	queries := []string{"heron", "func Heron", "f:c.txt", "b:größe package", "lang:go", "r:damaged heron", "h.r.n"}
	want := map[string]*searchv1.SearchResponse{}
	for _, text := range queries {
		want[text] = ask(text)
		if !want[text].Coverage.Complete || len(want[text].Files) == 0 {
			t.Fatalf("%s: %v", text, want[text])
		}
	}
	rng := testrun.Rand(t)
	name := strings.Index(damaged, "größe") // a branch of each file
	for i := range 200 {
		at, bit := rng.IntN(len(damaged)), byte(1)<<rng.IntN(8)
		if i == 0 { // a name that is not UTF-8
			at, bit = name, 0x80
		}
		flip(t, filepath.Join(dir, digestOf(damaged).String()+".trawl"), at, bit)
		for _, text := range queries {
			if resp := ask(text); !hasFileOf(resp, "example.com/sound") && text != "r:damaged heron" {
				t.Fatalf("byte %d, %s: the sound shard has no file in %v", at, text, resp)
			}
		}
		store.Scrub(t.Context())
		for _, text := range queries {
			resp := ask(text)
			if resp.Coverage.Complete && !proto.Equal(resp, want[text]) {
				t.Fatalf("byte %d, %s: wrong after a scrub\n got %v\nwant %v", at, text, resp, want[text])
			}
		}
		for counts, changed := store.Counts(); counts.Ready < 2; counts, changed = store.Counts() {
			<-changed
		}
		if resp := ask("heron"); !proto.Equal(resp, want["heron"]) {
			t.Fatalf("byte %d: fetched again, the shard answers %v", at, resp)
		}
	}
}

func hasFileOf(resp *searchv1.SearchResponse, repo string) bool {
	for _, f := range resp.Files {
		if f.Repo == repo {
			return true
		}
	}
	return false
}

// flip changes a bit of a file in place, as a disk does.
func flip(t *testing.T, path string, at int, bit byte) {
	t.Helper()
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b := make([]byte, 1)
	if _, err := f.ReadAt(b, int64(at)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteAt([]byte{b[0] ^ bit}, int64(at)); err != nil {
		t.Fatal(err)
	}
}

// TestScrubGoesToTheEnd: a scrub reads a shard in pieces, and finds damage behind the first.
func TestScrubGoesToTheEnd(t *testing.T) {
	var out bytes.Buffer
	b, err := build.NewBuilder(&out, build.Options{})
	testrun.Must(t, err, b.AddRepo(docstore.Repo{Name: "example.com/large", Branches: []docstore.Branch{{Name: "main"}}}))
	rng := testrun.Rand(t)
	for i := range 64 {
		text := []byte("heron\n")
		for len(text) < 64<<10 {
			text = fmt.Appendf(text, "%016x\n", rng.Uint64())
		}
		testrun.Must(t, b.Add(build.Document{Path: fmt.Appendf(nil, "%03d.txt", i), Content: text, Branches: []uint32{0}}))
	}
	_, err = b.Close()
	testrun.Must(t, err)
	dir, content := t.TempDir(), out.String()
	store := storeOf(t, dir, func(path string) (shardcache.Shard, error) { return search.Open(path) }, content)
	s := serviceOf(serve.Config{}, store)
	if resp, err := searchAll(t.Context(), s, &searchv1.SearchRequest{Query: "heron", Plan: planOf("example.com/large", content)}); err != nil || len(resp.Files) != 50 {
		t.Fatalf("%v, %v", resp, err)
	}
	for at := len(content) / 2; at < len(content)*3/4; at += 1 << 14 {
		flip(t, filepath.Join(dir, digestOf(content).String()+".trawl"), at, 1)
	}
	store.Scrub(t.Context())
	if aside, err := os.ReadDir(filepath.Join(dir, "quarantine")); err != nil || len(aside) != 1 {
		t.Errorf("%d shards are set aside, %v", len(aside), err)
	}
}
