package serving_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// giteaOptions are the options of a search in Gitea's interface for code indexers.
type giteaOptions struct {
	repos    []string
	keyword  string
	mode     string // exact, words or regexp
	language string
	size     int
}

// giteaResult is a file as Gitea shows it.
type giteaResult struct {
	repo, path, language string
	start, end           int
}

// giteaAnswer has the fields of an answer that Gitea uses.
type giteaAnswer struct {
	Files []struct {
		Repo     string
		Path     []byte
		Language string
		Commit   string
		Chunks   []struct {
			Ranges []struct{ Start, End struct{ ByteOffset int } }
		}
	}
	NextPageToken []byte
	Statistics    struct{ FilesMatched string }
	Facets        []struct {
		Values []struct{ Name, Files string }
	}
}

// giteaTree returns the options as a query tree.
func giteaTree(o giteaOptions) map[string]any {
	text := func(pattern string) map[string]any {
		return map[string]any{"text": map[string]any{"pattern": pattern, "regexp": o.mode == "regexp", "scope": "TEXT_SCOPE_CONTENT"}}
	}
	queries := []any{map[string]any{"repos": map[string]any{"names": o.repos}}}
	if o.mode == "words" {
		for word := range strings.FieldsSeq(o.keyword) {
			queries = append(queries, text(word))
		}
	} else {
		queries = append(queries, text(o.keyword))
	}
	if o.language != "" {
		queries = append(queries, map[string]any{"language": o.language})
	}
	return map[string]any{"and": map[string]any{"queries": queries}}
}

// giteaAsk sends a search.
func (c *cluster) giteaAsk(o giteaOptions, options map[string]any, token []byte) (answer giteaAnswer) {
	c.t.Helper()
	body, err := json.Marshal(map[string]any{"tree": giteaTree(o), "options": options, "pageToken": token})
	c.must(err)
	code, _, text := c.request(http.MethodPost, "http://"+c.routerHTTP+"/api/v1/search", string(body), "")
	if code != http.StatusOK {
		c.t.Fatalf("%s: status %d, %s", body, code, text)
	}
	c.must(json.Unmarshal([]byte(text), &answer))
	return answer
}

// giteaSearch implements Search of Gitea's interface, page by page.
func (c *cluster) giteaSearch(o giteaOptions) (total int, results []giteaResult, languages map[string]int) {
	c.t.Helper()
	for token, first := []byte(nil), true; first || len(token) > 0; first = false {
		page := c.giteaAsk(o, map[string]any{"maxFiles": o.size, "maxMatchesPerFile": 1}, token)
		if len(page.Files) > o.size || !first && len(page.Files) == 0 {
			c.t.Errorf("%+v: a page of %d files", o, len(page.Files))
		}
		var err error
		total, err = strconv.Atoi(page.Statistics.FilesMatched)
		c.must(err)
		for _, f := range page.Files {
			at := f.Chunks[0].Ranges[0]
			results = append(results, giteaResult{f.Repo, string(f.Path), f.Language, at.Start.ByteOffset, at.End.ByteOffset})
		}
		token = page.NextPageToken
	}
	o.language = ""
	counts := c.giteaAsk(o, map[string]any{"countOnly": true, "facets": []string{"FACET_LANGUAGE"}, "maxFacetValues": 100}, nil)
	languages = make(map[string]int)
	for _, v := range counts.Facets[0].Values {
		n, err := strconv.Atoi(v.Files)
		c.must(err)
		languages[v.Name] = n
	}
	return total, results, languages
}

// giteaScan finds the same by brute force.
func giteaScan(trees map[string]map[string]string, o giteaOptions) (results []giteaResult, languages map[string]int) {
	languages = make(map[string]int)
	pattern := regexp.QuoteMeta(o.keyword)
	all := []string{pattern}
	switch o.mode {
	case "regexp":
		all = []string{o.keyword}
	case "words":
		all = nil
		for word := range strings.FieldsSeq(o.keyword) {
			all = append(all, regexp.QuoteMeta(word))
		}
	}
	for _, repo := range o.repos {
		for path, content := range trees[repo] {
			first := []int{len(content), 0}
			missing := false
			for _, p := range all {
				at := regexp.MustCompile("(?i)" + p).FindStringIndex(content)
				if missing = missing || at == nil; !missing && at[0] < first[0] {
					first = at
				}
			}
			if missing {
				continue
			}
			language := languageOf(path)
			languages[language]++
			if o.language == "" || o.language == language {
				results = append(results, giteaResult{repo, path, language, first[0], first[1]})
			}
		}
	}
	return results, languages
}

// TestGiteaIndexer searches as a code indexer of Gitea would: by repos, by keyword in each mode, and by language, in pages, with a
// total and counts by language.
func TestGiteaIndexer(t *testing.T) {
	c := startCluster(t, 2, 1)
	trees := map[string]map[string]string{"host/lake": {}, "host/pond": {}, "host/hidden": {}}
	for i := range 23 {
		trees["host/lake"][fmt.Sprintf("src/f%d.go", i)] = fmt.Sprintf("package lake\n\nfunc Fish%d() { needle(%d) }\n", i, i)
		trees["host/pond"][fmt.Sprintf("doc/f%d.txt", i)] = fmt.Sprintf("A Needle.\nfish %d in the pond", i%3)
		trees["host/hidden"][fmt.Sprintf("f%d.go", i)] = "package hidden // needle fish\n"
	}
	for repo, files := range trees {
		c.publish(repo, files)
	}
	both, order := []string{"host/lake", "host/pond"}, func(a, b giteaResult) int {
		return strings.Compare(a.repo+"/"+a.path, b.repo+"/"+b.path)
	}
	for _, o := range []giteaOptions{
		{both, "needle", "exact", "", 10}, {both, "needle", "exact", "Go", 7}, {both, "needle(1", "exact", "", 5}, {both[:1], "fish", "exact", "", 50},
		{both, "fish needle", "words", "", 6}, {both, `fish ?[12]\b`, "regexp", "", 4}, {both, "whale", "exact", "", 5}, {both, "func needle", "words", "Go", 1},
	} {
		total, got, languages := c.giteaSearch(o)
		want, wantLanguages := giteaScan(trees, o)
		slices.SortFunc(got, order)
		slices.SortFunc(want, order)
		if total != len(want) || !slices.Equal(got, want) || !maps.Equal(languages, wantLanguages) {
			t.Errorf("%+v: %d files, %v, %v\nwant %d, %v, %v", o, total, got, languages, len(want), want, wantLanguages)
		}
	}
}

// TestGiteaPage runs the examples of docs/gitea.md, and compares the answers with the page.
func TestGiteaPage(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/pond", pond)
	c.publish("host/lake", map[string]string{"c.txt": "a needle in the lake\n"})
	c.publish("host/hidden", pond)
	if run := c.runPage("../../docs/gitea.md"); run != 2 {
		t.Errorf("%d examples were run", run)
	}
}
