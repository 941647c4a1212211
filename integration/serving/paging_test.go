package serving_test

import (
	"encoding/json"
	"fmt"
	"html"
	"math/rand/v2"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/trawl-search/trawl/internal/testrun"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestPagesReachEveryFile: at each interface that gives pages, whatever their limits, all pages
// together are the whole answer in its order, and no file is there twice.
func TestPagesReachEveryFile(t *testing.T) {
	rng := testrun.Rand(t)
	c := startCluster(t, 2, 1)
	for repo := range 3 {
		var shards []map[string]string
		for part := range 2 {
			files := make(map[string]string)
			for n := range 25 {
				id := fmt.Sprintf("file%d-%d-%d", repo, part, n)
				path := id + strings.Repeat("/folder", rng.IntN(20))
				if rng.IntN(5) == 0 {
					path += strings.Repeat("\xff<&", rng.IntN(200))
				}
				files[path+"/"+id+".go"] = strings.Repeat(strings.Repeat("x ", rng.IntN(300))+"needle\n", 1+rng.IntN(200))
			}
			shards = append(shards, files)
		}
		c.publish(fmt.Sprintf("host/repo%d", repo), shards...)
	}
	whole := c.find("needle", &searchv1.SearchOptions{MaxFiles: 1000, MaxMatchesPerFile: 1, RequireComplete: true})
	want := fileNames(whole.Files)
	if len(want) != 150 {
		t.Fatalf("%d files", len(want))
	}
	agent, err := c.agent("")
	c.must(err)
	defer func() { c.must(agent.Close()) }()
	first := 0 // of the next answer of zoekt's interface, which has a limit and no pages
	for name, pages := range map[string]func() []string{
		"events": func() []string { return filesOfEvents(c, rng) },
		"zoekt": func() []string {
			first = 1 + rng.IntN(2*len(want))
			return firstForZoekt(c, first)
		},
		"Search": func() []string { return pagesOfSearch(c, rng) }, "JSON": func() []string { return pagesOfJSON(c, rng) },
		"page": func() []string { return pagesForPeople(c) }, "MCP": func() []string { return pagesForAgents(c, agent, rng) },
	} {
		for range testrun.Rounds(3, 15) {
			got, want := pages(), want
			switch name {
			case "MCP", "events": // one groups files by repo, the other sends them as they are found
				got, want = slices.Sorted(slices.Values(got)), slices.Sorted(slices.Values(want))
			case "zoekt":
				want = want[:min(first, len(want))]
			}
			if !slices.Equal(got, want) {
				t.Errorf("%s: %d files of %d, or in another order:\n%q\n%q", name, len(got), len(want), got, want)
			}
		}
	}
}

// numbered is how the path of every file begins and ends: long ones are shown in part.
var numbered = regexp.MustCompile(`file\d+-\d+-\d+`)

func fileNames(files []*searchv1.FileMatch) (names []string) {
	for _, f := range files {
		names = append(names, numbered.FindString(string(f.Path)))
	}
	return names
}

// randomPage asks for pages of any size, in files, matches and bytes.
func randomPage(rng *rand.Rand) *searchv1.SearchOptions {
	return &searchv1.SearchOptions{
		MaxFiles: 1 + rng.Uint32N(40), MaxMatchesPerFile: 1 + rng.Uint32N(100), ContextLines: rng.Uint32N(3), MaxBytes: 2<<10 + rng.Uint64N(200<<10),
	}
}

func pagesOfSearch(c *cluster, rng *rand.Rand) (names []string) {
	for token := []byte(nil); ; {
		resp, err := c.search.Search(c.t.Context(), &searchv1.SearchRequest{Query: "needle", PageToken: token, Options: randomPage(rng)})
		c.must(err)
		names = append(names, fileNames(resp.Files)...)
		if token = resp.NextPageToken; len(token) == 0 {
			return names
		}
	}
}

func pagesOfJSON(c *cluster, rng *rand.Rand) (names []string) {
	for token := ""; ; {
		o := randomPage(rng)
		_, answer := c.post("", "/api/v1/search", fmt.Sprintf(`{"query":"needle","pageToken":%q,"options":{"maxFiles":%d,"maxMatchesPerFile":%d,"maxBytes":"%d"}}`,
			token, o.MaxFiles, o.MaxMatchesPerFile, o.MaxBytes))
		var page struct {
			Files         []struct{ Path []byte }
			NextPageToken string
		}
		c.must(json.Unmarshal(answer, &page))
		for _, f := range page.Files {
			names = append(names, numbered.FindString(string(f.Path)))
		}
		if token = page.NextPageToken; token == "" {
			return names
		}
	}
}

// filesOfEvents returns the files of a stream. A long file comes in several messages.
func filesOfEvents(c *cluster, rng *rand.Rand) (names []string) {
	o := randomPage(rng)
	_, answer := c.post("", "/api/v1/search/stream", fmt.Sprintf(`{"query":"needle","options":{"maxFiles":1000,"maxMatchesPerFile":%d,"contextLines":%d}}`,
		o.MaxMatchesPerFile, o.ContextLines))
	for line := range strings.Lines(string(answer)) {
		data, ok := strings.CutPrefix(line, "data: ")
		if !ok {
			continue
		}
		var message struct {
			Files []struct {
				Path      []byte
				Continued bool
			}
		}
		c.must(json.Unmarshal([]byte(data), &message))
		for _, f := range message.Files {
			if !f.Continued {
				names = append(names, numbered.FindString(string(f.Path)))
			}
		}
	}
	return names
}

func firstForZoekt(c *cluster, n int) (names []string) {
	for _, f := range c.zoekt("needle", fmt.Sprintf(`{"MaxDocDisplayCount":%d,"MaxMatchDisplayCount":1000000}`, n)).Files {
		names = append(names, numbered.FindString(f.FileName))
	}
	return names
}

// nextPage is the address of the next page of results.
var nextPage = regexp.MustCompile(`<a href="([^"]*)" rel="next">`)

func pagesForPeople(c *cluster) (names []string) {
	for next := "/?q=needle"; ; {
		code, _, page := c.reader().open(next, nil)
		if code != http.StatusOK {
			c.t.Fatalf("%s: %d", next, code)
		}
		for article := range strings.SplitSeq(page, "<article ") {
			if name := numbered.FindString(article); name != "" {
				names = append(names, name)
			}
		}
		link := nextPage.FindStringSubmatch(page)
		if link == nil {
			return names
		}
		next = html.UnescapeString(link[1])
	}
}

func pagesForAgents(c *cluster, agent *mcp.ClientSession, rng *rand.Rand) (names []string) {
	args := map[string]any{"patterns": []string{"needle"}, "detail": "files"}
	for {
		args["max_tokens"] = 500 + rng.IntN(2000)
		result, err := agent.CallTool(c.t.Context(), &mcp.CallToolParams{Name: "grep", Arguments: args})
		c.must(err)
		data, err := json.Marshal(result.StructuredContent)
		c.must(err)
		var page struct {
			Results []struct {
				Repos  []struct{ Files []struct{ Path string } }
				Cursor string
			}
		}
		c.must(json.Unmarshal(data, &page))
		if result.IsError || len(page.Results) != 1 {
			c.t.Fatalf("%s", data)
		}
		for _, repo := range page.Results[0].Repos {
			for _, f := range repo.Files {
				names = append(names, numbered.FindString(f.Path))
			}
		}
		if args["cursor"] = page.Results[0].Cursor; args["cursor"] == "" {
			return names
		}
	}
}

// TestPagesWhilePushesCome publishes a generation before each page: one with the same files, whose
// texts name it. Each page is of one generation, the newest, and the pages have each path. The last
// one of a page may come again with its new text.
func TestPagesWhilePushesCome(t *testing.T) {
	c := startCluster(t, 2, 1)
	for generations, rounds := 0, testrun.Rounds(5, 15); rounds > 0; rounds-- {
		var names []string
		for token := []byte(nil); ; {
			generations++
			c.publish("host/flip", generation(generations)...)
			resp, err := c.search.Search(t.Context(), &searchv1.SearchRequest{Query: "token", PageToken: token, Options: &searchv1.SearchOptions{MaxFiles: 3}})
			c.must(err)
			for _, f := range resp.Files {
				if want := fmt.Sprintf("generation%04d", generations); !strings.Contains(string(f.Chunks[0].Content), want) {
					t.Errorf("%s: %s, want %s", f.Path, f.Chunks[0].Content, want)
				}
				names = append(names, string(f.Path))
			}
			if token = resp.NextPageToken; len(token) == 0 {
				break
			}
		}
		if got := strings.Join(slices.Compact(names), " "); got != "a0 a1 a2 a3 b0 b1 b2 b3" {
			t.Errorf("the pages have %s", got)
		}
	}
}
