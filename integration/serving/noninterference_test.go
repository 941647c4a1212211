package serving_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestHiddenContentsDoNotShow is noninterference: two clusters have the same visible repos, and
// hidden and deleted repos of other contents in the same shards. A caller gets the same answers
// from both, times aside, whatever it asks at whichever interface.
func TestHiddenContentsDoNotShow(t *testing.T) {
	asked, found := 0, 0
	for first, seed := testrun.Seed(t), uint64(0); seed < testrun.Rounds[uint64](1, 10); seed++ {
		seed := first + seed
		t.Run(fmt.Sprint(seed), func(t *testing.T) { // whose clusters end with it
			n, some := sameWhateverIsHidden(t, seed)
			asked, found = asked+n, found+some
		})
	}
	t.Logf("%d questions, %d with files", asked, found)
	if found < asked/10 {
		t.Errorf("only %d of %d answers had files", found, asked)
	}
}

// sameWhateverIsHidden asks two clusters, and returns the number of questions, and how many found files.
func sameWhateverIsHidden(t *testing.T, seed uint64) (asked, found int) {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 1))
	corpus, _ := large(seed)
	hidden := make(map[string]bool)
	for i, repo := range corpus.Repos {
		hidden[repo.Name] = i%2 == 1
	}
	changed := &indextest.Corpus{Name: corpus.Name}
	others := indextest.Random(seed + 5000)
	for i, repo := range corpus.Repos {
		if hidden[repo.Name] {
			repo.Documents = inBranches(others.Repos[i%len(others.Repos)].Documents, repo.Branches)
		}
		changed.Repos = append(changed.Repos, repo)
	}
	deleted := corpus.Repos[1].Name
	var as [2]*cluster
	var tokens [2]access.Text
	for i, corpus := range []*indextest.Corpus{corpus, changed} {
		tel, spans := telemetrytest.New(t)
		c := startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
		c.publishExcept(corpus, deleted)
		spec := access.Spec{Scopes: []access.Scope{access.ScopeSearch}, Allow: []string{"**"}}
		for _, repo := range corpus.Repos {
			if hidden[repo.Name] {
				spec.Deny = append(spec.Deny, repo.Name)
			}
		}
		tokens[i], _ = c.token(spec)
		as[i] = c.as(tokens[i])
	}
	queries := slices.Concat(indextest.Queries(corpus, seed, 120), indextest.Queries(changed, seed+1, 60))
	for _, q := range queries {
		for _, mode := range []searchv1.Mode{searchv1.Mode_MODE_TOP_K, searchv1.Mode_MODE_EXHAUSTIVE} {
			req := &searchv1.SearchRequest{Query: q.Text, Options: &searchv1.SearchOptions{
				Mode: mode, MaxFiles: 1 + rng.Uint32N(5), MaxMatchesPerFile: 1 + rng.Uint32N(5), ContextLines: rng.Uint32N(2), Explain: rng.IntN(4) == 0,
			}}
			if rng.IntN(4) == 0 && !req.Options.Explain { // which times make larger
				req.Options.MaxBytes = 1 + rng.Uint64N(4<<10)
			}
			if rng.IntN(4) == 0 {
				req.Options.Facets, req.Options.MaxFacetValues = everyFacet, 10
			}
			if rng.IntN(8) == 0 {
				req.Options.CountOnly = true
			}
			for name, ask := range doors {
				var got [2]string
				for i := range as {
					got[i] = ask(as[i], tokens[i], req)
				}
				if asked++; strings.Contains(got[0], "path") || strings.Contains(got[0], "FileName") {
					found++
				}
				if got[0] != got[1] {
					one, other := difference(got[0], got[1])
					t.Errorf("seed %d, %s, %v: other hidden contents show:\n%s\n%s", seed, name, req, one, other)
				}
			}
		}
	}
	return asked, found
}

// difference are both texts from a little before where they differ.
func difference(a, b string) (string, string) {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	part := func(s string) string { return s[max(n-200, 0):min(n+200, len(s))] }
	return part(a), part(b)
}

// publishExcept publishes all repos in the same two shards, and then names one in no root.
func (c *cluster) publishExcept(corpus *indextest.Corpus, deleted string) {
	c.t.Helper()
	var parts [2][]part
	for _, repo := range corpus.Repos {
		for i := range parts {
			parts[i] = append(parts[i], part{repo, half(repo, i)})
		}
	}
	for n, p := range parts[0] {
		if p.repo.Name == deleted {
			continue
		}
		c.publishShards(p.repo, func(fence int64) (refs []*catalogv1.ShardRef) {
			for i := range parts {
				ref := c.uploadDocuments(fence, parts[i]...)
				ref.Languages, ref.RepoNumber = nil, uint32(n)
				refs = append(refs, ref)
			}
			return refs
		})
	}
}

// inBranches gives documents of another repo the branches of this one.
func inBranches(docs []indextest.Document, branches []string) []indextest.Document {
	docs = slices.Clone(docs)
	for i := range docs {
		docs[i].Branches = branches[:1]
	}
	return docs
}

// doors ask a question at each interface, and return what the caller can see of the answer.
var doors = map[string]func(c *cluster, token access.Text, req *searchv1.SearchRequest) string{
	"Search, page by page": func(c *cluster, _ access.Text, req *searchv1.SearchRequest) string {
		var all strings.Builder
		for range 4 {
			resp, err := c.search.Search(c.t.Context(), req)
			next := resp.GetNextPageToken()
			fmt.Fprintln(&all, seen(resp), err)
			if err != nil || len(next) == 0 {
				break
			}
			req = &searchv1.SearchRequest{Query: req.Query, Options: req.Options, PageToken: next}
		}
		return all.String()
	},
	"StreamSearch": func(c *cluster, _ access.Text, req *searchv1.SearchRequest) string {
		stream, err := c.search.StreamSearch(c.t.Context(), &searchv1.StreamSearchRequest{Search: req})
		c.must(err)
		var all strings.Builder
		for {
			resp, err := stream.Recv()
			if errors.Is(err, io.EOF) {
				return all.String()
			}
			if err != nil {
				return all.String() + err.Error()
			}
			whole := &searchv1.SearchResponse{
				Files: resp.Files, Statistics: resp.Statistics, Coverage: resp.Coverage, Cut: resp.Cut, Facets: resp.Facets,
				Selected: resp.Selected, Empty: resp.Empty, Explanation: resp.Explanation,
			}
			fmt.Fprintln(&all, seen(whole))
		}
	},
	"List": func(c *cluster, _ access.Text, req *searchv1.SearchRequest) string {
		resp, err := c.search.List(c.t.Context(), &searchv1.ListRequest{Query: req.Query, MaxSkippedFiles: 10})
		resp.RevisionToken = nil
		for _, e := range resp.GetRepos() {
			e.PublishedAt = nil
		}
		return fmt.Sprint(prototext.MarshalOptions{Multiline: true}.Format(resp), err)
	},
	"JSON": func(c *cluster, token access.Text, req *searchv1.SearchRequest) string {
		options := proto.CloneOf(req.Options)
		options.Explain = false // its times would have to be taken out of the text
		return c.untimed(token, "/api/v1/search", protojson.Format(&searchv1.SearchRequest{Query: req.Query, Options: options}))
	},
	"page": func(c *cluster, token access.Text, req *searchv1.SearchRequest) string {
		live := ""
		if req.Options.Mode == searchv1.Mode_MODE_TOP_K {
			live = "&live=1" // as while somebody types
		}
		address := "http://" + c.routerHTTP + "/?q=" + url.QueryEscape(req.Query) + live
		code, _, page := c.request(http.MethodGet, address, "", token)
		for strings.Contains(page, "Not counted yet.") { // while the machine is busy
			code, _, page = c.request(http.MethodGet, address, "", token)
		}
		return fmt.Sprint(code, " ", strings.ReplaceAll(timesOnPage.ReplaceAllString(page, ""), "</mark><mark>", "")) // colours cut marks
	},
	"MCP": func(c *cluster, token access.Text, req *searchv1.SearchRequest) string {
		agent, err := c.agent(token)
		c.must(err)
		defer func() { c.must(agent.Close()) }()
		name, args := "search", map[string]any{"query": req.Query, "max_tokens": 500 * (1 + req.Options.MaxFiles)}
		if req.Options.Mode == searchv1.Mode_MODE_EXHAUSTIVE {
			name, args = "grep", map[string]any{"patterns": []string{req.Query}, "max_tokens": 500 * (1 + req.Options.MaxFiles)}
		}
		result, err := agent.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		c.must(err)
		answer, err := json.Marshal(result)
		c.must(err)
		return cursorOfAgent.ReplaceAllString(string(answer), "")
	},
	"zoekt": func(c *cluster, token access.Text, req *searchv1.SearchRequest) string {
		return c.untimed(token, "/api/search", fmt.Sprintf(`{"Q":%q,"Opts":{"MaxDocDisplayCount":%d,"NumContextLines":%d}}`,
			req.Query, req.Options.MaxFiles, req.Options.ContextLines))
	},
}

// seen is an answer without times and revisions.
func seen(resp *searchv1.SearchResponse) string {
	if resp == nil {
		return "no answer"
	}
	resp.RevisionToken = nil
	if len(resp.NextPageToken) > 0 {
		resp.NextPageToken = []byte("more")
	}
	if resp.Statistics != nil {
		resp.Statistics.Duration = nil
	}
	if resp.Explanation != nil {
		resp.Explanation.RouterPhases = nil
	}
	return prototext.MarshalOptions{Multiline: true}.Format(resp)
}

// timely are the parts of a JSON answer that times, revisions and their encodings decide.
var timely = regexp.MustCompile(`"(duration|revisionToken|nextPageToken|Duration|Wait|MatchTreeConstruction|MatchTreeSearch|CrashTime)": ?("[^"]*"|[0-9]+)`)

// timesOnPage and cursorOfAgent match what times and revisions decide: code has no colours that take too long.
var (
	timesOnPage   = regexp.MustCompile(`[0-9.]+ ?(ns|µs|ms|s)\b|page=[^"&]*|rev(ision)?=[^"&]*|<time.*?</time>|</?span[^>]*>`)
	cursorOfAgent = regexp.MustCompile(`cursor\\?":\\?"[^"]*"|cursor [^ ]*`)
)

// untimed asks like post, and returns the status and the answer without times, and without the address of the router, which its links have.
func (c *cluster) untimed(token access.Text, path, body string) string {
	c.t.Helper()
	code, answer := c.post(token, path, body)
	text := strings.ReplaceAll(string(answer), `"http://`+c.routerHTTP, `"http://router`)
	return fmt.Sprint(code, " ", timely.ReplaceAllString(text, ""))
}
