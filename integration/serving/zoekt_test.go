package serving_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// zoektResult has the fields of an answer that programs made for zoekt read.
type zoektResult struct {
	FileCount, MatchCount, Crashes, ShardsScanned, ShardsSkipped, ShardsSkippedFilter int
	Files                                                                             []zoektFile
	Trawl                                                                             struct{ Complete bool }
}

type zoektFile struct {
	FileName, Repository, Version, Language string
	RepositoryID                            uint32
	Branches                                []string
	TrawlPath, Content                      []byte
	LineMatches                             []struct {
		Line, Before, After            []byte
		LineStart, LineEnd, LineNumber int
		FileName                       bool
		LineFragments                  []struct{ LineOffset, Offset, MatchLength int }
	}
	ChunkMatches []struct {
		Content      []byte
		FileName     bool
		ContentStart struct{ ByteOffset int }
		Ranges       []struct {
			Start, End struct{ ByteOffset, LineNumber, Column int }
		}
	}
}

// post sends a request to the router's HTTP address, with a token unless it is empty.
func (c *cluster) post(token access.Text, path, body string) (code int, answer []byte) {
	c.t.Helper()
	client := http.Client{Transport: bearer{token, &http.Transport{DisableKeepAlives: true}}}
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, "http://"+c.routerHTTP+path, strings.NewReader(body))
	c.must(err)
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	c.must(err)
	defer resp.Body.Close()
	answer, err = io.ReadAll(resp.Body)
	c.must(err)
	return resp.StatusCode, answer
}

// zoekt asks /api/search with a query and options, and fails the test on an error.
func (c *cluster) zoekt(query, opts string) (result zoektResult) {
	c.t.Helper()
	q, err := json.Marshal(query)
	c.must(err)
	code, answer := c.post("", "/api/search", fmt.Sprintf(`{"q":%s,"opts":%s}`, q, opts))
	if code != http.StatusOK {
		c.t.Fatalf("query %q: status %d, %s", query, code, answer)
	}
	c.must(json.Unmarshal(answer, &struct{ Result *zoektResult }{&result}))
	return result
}

// TestZoektGolden compares whole answers with golden files. Values that differ from run to
// run are replaced by their names.
func TestZoektGolden(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/one", map[string]string{"a.go": "package one\n\n// needle\nvar needle = 1"})
	c.publish("host/two", map[string]string{"needle\xff.md": "hay\n"})
	for name, ask := range map[string]struct{ path, body string }{
		"lines":    {"/api/search", `{"Q":"needle","Opts":{"NumContextLines":1}}`},
		"chunks":   {"/api/search", `{"Q":"needle","Opts":{"ChunkMatches":true,"Whole":true,"MaxDocDisplayCount":50}}`},
		"nothing":  {"/api/search", `{"Q":"needle r:nowhere"}`},
		"error":    {"/api/search", `{"Q":"needle or"}`},
		"list":     {"/api/list", `{"Q":"needle"}`},
		"reposmap": {"/api/list", `{"Q":"r:one","Opts":{"Field":2}}`},
	} {
		code, answer := c.post("", ask.path, ask.body)
		var tree map[string]any
		c.must(json.Unmarshal(bytes.ReplaceAll(answer, []byte(c.routerHTTP), []byte("router")), &tree))
		tree["status"] = code
		conceal(tree)
		got, err := json.MarshalIndent(tree, "", "  ")
		c.must(err)
		testrun.Golden(t, filepath.Join("testdata", "zoekt-"+name+".json"), append(got, '\n'))
	}
}

// conceal replaces all values in the tree that differ from run to run or depend on how
// documents are ranked and stored.
func conceal(tree any) {
	switch v := tree.(type) {
	case []any:
		for _, e := range v {
			conceal(e)
		}
	case map[string]any:
		for key, e := range v {
			if _, number := e.(float64); number && slices.Contains([]string{
				"Duration", "IndexTimeUnix", "IndexBytes", "ContentBytesLoaded", "FilesConsidered", "FilesLoaded", "NgramLookups",
			}, key) || slices.Contains([]string{"Score", "Version", "IndexTime", "Checksum"}, key) && e != 0.0 {
				v[key] = "(" + key + ")"
			}
			conceal(e)
		}
	}
}

// TestZoektNamesWhatGRPCNames: for queries of every kind both interfaces return the same files
// with the same ranges in the same order, as chunks and, newlines aside, as lines.
func TestZoektNamesWhatGRPCNames(t *testing.T) {
	c := startCluster(t, 1, 1)
	const seed = 11
	corpus := indextest.Random(seed)
	c.publishCorpus(corpus, rand.New(rand.NewPCG(seed, 1)))
	asked, found := 0, 0
	for _, q := range indextest.Queries(corpus, seed, 120) {
		resp, err := c.search.Search(t.Context(), &searchv1.SearchRequest{Query: q.Text, Options: &searchv1.SearchOptions{
			MaxFiles: 10_000, MaxMatchesPerFile: 100_000, RequireComplete: true,
		}})
		if q.Text == "" {
			continue // an empty query, which zoekt's interface does not answer
		}
		c.must(err)
		asked, found = asked+1, found+len(resp.Files)
		chunks, lines := c.zoekt(q.Text, `{"chunkMatches":true}`), c.zoekt(q.Text, `{}`)
		if len(chunks.Files) != len(resp.Files) || len(lines.Files) != len(resp.Files) || !chunks.Trawl.Complete {
			t.Fatalf("query %q: %d files as chunks, %d as lines, want %d", q.Text, len(chunks.Files), len(lines.Files), len(resp.Files))
		}
		for i, f := range resp.Files {
			want := namedBytes(f)
			if got := chunks.Files[i].chunkBytes(); !slices.Equal(got, want) || !chunks.Files[i].is(f) {
				t.Errorf("query %q, %s %q: chunks name %v, want %v", q.Text, f.Repo, f.Path, got, want)
			}
			if got := lines.Files[i].lineBytes(); !slices.Equal(got, withoutNewlines(f, want)) || !lines.Files[i].is(f) {
				t.Errorf("query %q, %s %q: lines name %v, want %v", q.Text, f.Repo, f.Path, got, withoutNewlines(f, want))
			}
		}
	}
	if asked < 60 || found < 100 {
		t.Errorf("only %d queries, which found %d files", asked, found)
	}
}

func (f *zoektFile) is(want *searchv1.FileMatch) bool {
	path := f.TrawlPath
	if path == nil {
		path = []byte(f.FileName)
	}
	return bytes.Equal(path, want.Path) && f.Repository == want.Repo && f.RepositoryID == zoektID(want.Repo) &&
		slices.Equal(f.Branches, want.Branches) && f.Version == want.Commit && f.Language == want.Language
}

// namedBytes returns the offsets of all bytes in the ranges of a file; for a file without
// ranges, those of its path.
func namedBytes(f *searchv1.FileMatch) (offsets []int) {
	for _, c := range f.Chunks {
		for _, r := range c.Ranges {
			offsets = appendRange(offsets, int(r.Start.ByteOffset), int(r.End.ByteOffset))
		}
	}
	if len(f.Chunks) == 0 {
		offsets = appendRange(nil, 0, len(f.Path))
	}
	return offsets
}

// withoutNewlines drops the offsets of newlines in the content. File names may have newlines,
// so their offsets stay.
func withoutNewlines(f *searchv1.FileMatch, offsets []int) (kept []int) {
	newline := make(map[int]bool)
	for _, c := range f.Chunks {
		for i, b := range c.Content {
			newline[int(c.ContentStart.ByteOffset)+i] = b == '\n' && !c.FileName
		}
	}
	for _, at := range offsets {
		if !newline[at] {
			kept = append(kept, at)
		}
	}
	return kept
}

// chunkBytes are the offsets of the bytes that match, ascending.
func (f *zoektFile) chunkBytes() (offsets []int) {
	for _, c := range f.ChunkMatches {
		for _, r := range c.Ranges {
			if r.Start.ByteOffset < c.ContentStart.ByteOffset || r.End.ByteOffset > c.ContentStart.ByteOffset+len(c.Content) {
				return nil
			}
			offsets = appendRange(offsets, r.Start.ByteOffset, r.End.ByteOffset)
		}
	}
	slices.Sort(offsets) // they come best first
	return offsets
}

func (f *zoektFile) lineBytes() (offsets []int) {
	for _, l := range f.LineMatches {
		for _, m := range l.LineFragments {
			if m.LineOffset+m.MatchLength > len(l.Line) || l.LineStart+m.LineOffset != m.Offset {
				return nil
			}
			offsets = appendRange(offsets, m.Offset, m.Offset+m.MatchLength)
		}
	}
	slices.Sort(offsets)
	return offsets
}

func appendRange(to []int, start, end int) []int {
	for ; start < end; start++ {
		to = append(to, start)
	}
	return to
}

// TestZoektRepoIDs: a search can be restricted to ids from a list, even with type:repo.
func TestZoektRepoIDs(t *testing.T) {
	c := startCluster(t, 1, 1)
	for _, name := range []string{"host/one", "host/two", "host/three"} {
		c.publish(name, map[string]string{"a": "needle\n", "b": "hay\n"})
	}
	code, answer := c.post("", "/api/list", `{"Q":"r:one or r:two","Opts":{"Field":2}}`)
	var list struct {
		List struct{ ReposMap map[uint32]any }
	}
	c.must(json.Unmarshal(answer, &list))
	if code != http.StatusOK || len(list.List.ReposMap) != 2 {
		t.Fatalf("status %d, %s", code, answer)
	}
	ids, err := json.Marshal(slices.Collect(maps.Keys(list.List.ReposMap)))
	c.must(err)
	for query, want := range map[string]int{"needle": 2, "needle (type:repo hay)": 2, "needle -(type:repo r:one)": 1, "needle r:three": 0} {
		code, answer = c.post("", "/api/search", fmt.Sprintf(`{"Q":%q,"RepoIDs":%s,"Opts":{"Whole":true}}`, query, ids))
		var got struct{ Result zoektResult }
		c.must(json.Unmarshal(answer, &got))
		if code != http.StatusOK || len(got.Result.Files) != want || !got.Result.Trawl.Complete {
			t.Errorf("%s: status %d, %s", query, code, answer)
		}
		for _, f := range got.Result.Files {
			if string(f.Content) != "needle\n" {
				t.Errorf("%s: content of %s is %q", query, f.Repository, f.Content)
			}
		}
	}
}

// TestZoektUnderLoad: many concurrent callers, some with a very short deadline. Each gets a
// whole answer, one that says what is missing, or a deadline error.
func TestZoektUnderLoad(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/one", map[string]string{"a": strings.Repeat("needle\n", 1000)}, map[string]string{"b": "needle\n"})
	var asking sync.WaitGroup
	for i := range 24 {
		asking.Go(func() {
			opts := `{"MaxWallTime":1000}`
			if i%2 == 0 {
				opts = `{"MaxWallTime":30000000000,"ChunkMatches":true}`
			}
			code, answer := c.post("", "/api/search", `{"Q":"needle","Opts":`+opts+`}`)
			var got struct {
				Result zoektResult
				Error  string
			}
			if err := json.Unmarshal(answer, &got); err != nil {
				t.Errorf("%s: %v", answer, err)
			}
			whole := code == http.StatusOK && got.Result.Trawl.Complete && len(got.Result.Files) == 2
			partial := code == http.StatusOK && !got.Result.Trawl.Complete && got.Result.ShardsSkipped > 0
			late := code == http.StatusGatewayTimeout && got.Error != ""
			if !whole && (i%2 == 0 || !partial && !late) {
				t.Errorf("%s: status %d, %.300s", opts, code, answer)
			}
		})
	}
	asking.Wait()
}

// zoektID is the id that the tests, as operators, give a repo.
func zoektID(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return binary.BigEndian.Uint32(sum[:])
}

// TestZoektPage runs the examples of docs/zoekt-compat.md, and compares the answers with the page.
func TestZoektPage(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/pond", pond)
	if run := c.runPage("../../docs/zoekt-compat.md"); run != 2 {
		t.Errorf("%d examples were run", run)
	}
}
