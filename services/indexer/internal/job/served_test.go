package job

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/searchapi"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// everything matches every document.
var everything = &query.Const{Value: true}

// served are the open shards of a root, asked as searchers and router do.
type served struct {
	t      *testing.T
	layers []servedShard
}

type servedShard struct {
	*search.Shard

	ref      *catalogv1.ShardRef
	overlays map[int]search.Overlay
}

// overlay is the overlay of a shard according to a root.
func (e *env) overlay(root *catalogv1.Root, ref *catalogv1.ShardRef) map[int]search.Overlay {
	e.t.Helper()
	var s searchapi.Shard
	if overlay, some := searchapi.OverlayOf(root, ref); some {
		s.Overlays = []searchapi.Overlay{overlay}
	}
	overlays, err := s.ShardOverlays()
	if err != nil {
		e.t.Fatal(err)
	}
	return overlays
}

// serve opens the shards of a root until the test ends.
func (e *env) serve(root *catalogv1.Root) served {
	e.t.Helper()
	s := served{t: e.t}
	for i, ref := range root.GetShards() {
		r, _, err := e.bucket.Get(e.t.Context(), ref.GetKey())
		if err != nil {
			e.t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		r.Close()
		name := filepath.Join(e.t.TempDir(), fmt.Sprint(i))
		if err = errors.Join(err, os.WriteFile(name, data, 0o644)); err != nil {
			e.t.Fatal(err)
		}
		opened, err := search.Open(name)
		if err != nil {
			e.t.Fatal(err)
		}
		e.t.Cleanup(func() { opened.Close() })
		s.layers = append(s.layers, servedShard{opened, ref, e.overlay(root, ref)})
	}
	return s
}

// search finds the best files of all shards.
func (s served) search(q *search.Query, opts search.Options) (files []search.FileMatch, stats search.Stats) {
	s.t.Helper()
	ranking := search.NewRanking(opts.MaxFiles, opts.MaxBytes)
	var all []*search.Found
	for _, l := range s.layers {
		opts.Overlays, opts.Floor = l.overlays, ranking.Floor()
		found, err := l.Find(s.t.Context(), q, opts)
		if err != nil || found.Incomplete != nil {
			s.t.Fatal(err, found.Incomplete)
		}
		ranking.Add(found)
		all = append(all, found)
	}
	for i, l := range s.layers {
		shown, err := l.Show(s.t.Context(), all[i], ranking.Count(i))
		if err != nil || shown.Incomplete != nil {
			s.t.Fatal(err, shown.Incomplete)
		}
		ranking.Shown(i, shown)
	}
	result := ranking.Result()
	for i := range result.Files {
		result.Files[i].Commit = "" // routers set it
	}
	return result.Files, result.Stats
}

// sameFiles compares all fields of the files. Two empty lists are the same.
func sameFiles(a, b []search.FileMatch) bool {
	return len(a) == 0 && len(b) == 0 || reflect.DeepEqual(a, b)
}

// list describes the repo.
func (s served) list(q *search.Query) *searchv1.RepoEntry {
	s.t.Helper()
	var entries []*searchv1.RepoEntry
	for _, l := range s.layers {
		r, err := l.List(s.t.Context(), q, search.ListOptions{MaxSkippedFiles: 5, Overlays: l.overlays})
		if err != nil || r.Incomplete != nil {
			s.t.Fatal(err, r.Incomplete)
		}
		for i := range r.Repos {
			entries = append(entries, searchapi.Entry(&r.Repos[i]))
			e := entries[len(entries)-1]
			if e.Documents != l.ref.GetLiveDocuments() || e.SkippedDocuments != l.ref.GetLiveSkippedDocuments() || e.ContentBytes < l.ref.GetLiveContentBytes() {
				s.t.Errorf("the root counts %d documents, %d by name, %d bytes: %v", l.ref.GetLiveDocuments(), l.ref.GetLiveSkippedDocuments(), l.ref.GetLiveContentBytes(), e)
			}
		}
	}
	merged := searchapi.MergeEntries(5, entries)
	if len(merged) == 0 {
		return nil
	}
	e := merged[0]
	e.Branches, e.Generation, e.Shards = nil, 0, 0 // routers set them
	return e
}

func compareList(t *testing.T, what string, got, want served) {
	t.Helper()
	all, err := search.Prepare(everything)
	if err != nil {
		t.Fatal(err)
	}
	if g, w := got.list(all), want.list(all); !proto.Equal(g, w) {
		t.Fatalf("%s: list\n%v\nwant\n%v", what, g, w)
	}
}

// compareContents asks for each document on each branch: one shard has it, and
// none has it on another branch.
func compareContents(t *testing.T, what string, got served, c *indextest.Corpus) {
	t.Helper()
	repo := c.Repos[0]
	at := map[[2]string]indextest.Document{}
	for _, d := range repo.Documents {
		for _, b := range d.Branches {
			at[[2]string{d.Path, b}] = d
		}
	}
	for _, d := range repo.Documents {
		for _, branch := range repo.Branches {
			want, there := at[[2]string{d.Path, branch}]
			found := 0
			for _, l := range got.layers {
				f, err := l.File(t.Context(), repoName, []byte(d.Path), branch, search.Options{Overlays: l.overlays}, search.Part{})
				if errors.Is(err, search.ErrNoFile) {
					continue
				}
				if err != nil || !bytes.Equal(f.Content, want.Content) || !slices.Equal(f.Branches, want.Branches) {
					t.Fatalf("%s: %q on %s: %+v, %v; want %+v", what, d.Path, branch, f, err, want)
				}
				found++
			}
			if there != (found == 1) || found > 1 {
				t.Fatalf("%s: %q on %s is in %d shards", what, d.Path, branch, found)
			}
		}
	}
}
