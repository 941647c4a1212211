package serving_test

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/RoaringBitmap/roaring/v2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

func (c *cluster) webserver() webserverv1.WebserverServiceClient {
	return webserverv1.NewWebserverServiceClient(c.conn)
}

// zoektNode returns the message for a query, as zoekt's clients build it.
func zoektNode(t *testing.T, q query.Q) *webserverv1.Q {
	t.Helper()
	children := func(list []query.Q) (nodes []*webserverv1.Q) {
		for _, child := range list {
			nodes = append(nodes, zoektNode(t, child))
		}
		return nodes
	}
	switch q := q.(type) {
	case *query.And:
		return &webserverv1.Q{Query: &webserverv1.Q_And{And: &webserverv1.And{Children: children(q.Children)}}}
	case *query.Or:
		return &webserverv1.Q{Query: &webserverv1.Q_Or{Or: &webserverv1.Or{Children: children(q.Children)}}}
	case *query.Not:
		return &webserverv1.Q{Query: &webserverv1.Q_Not{Not: &webserverv1.Not{Child: zoektNode(t, q.Child)}}}
	case *query.Const:
		return &webserverv1.Q{Query: &webserverv1.Q_Const{Const: q.Value}}
	case *query.Type:
		kind := []webserverv1.Type_Kind{webserverv1.Type_KIND_FILE_MATCH, webserverv1.Type_KIND_FILE_NAME, webserverv1.Type_KIND_REPO}[q.Kind]
		return &webserverv1.Q{Query: &webserverv1.Q_Type{Type: &webserverv1.Type{Type: kind, Child: zoektNode(t, q.Child)}}}
	case *query.Symbol:
		return &webserverv1.Q{Query: &webserverv1.Q_Symbol{Symbol: &webserverv1.Symbol{Expr: zoektNode(t, q.Child)}}}
	}
	return zoektAtom(t, q)
}

func zoektAtom(t *testing.T, q query.Q) *webserverv1.Q {
	t.Helper()
	switch q := q.(type) {
	case *query.Substring:
		return &webserverv1.Q{Query: &webserverv1.Q_Substring{Substring: &webserverv1.Substring{
			Pattern: q.Pattern, CaseSensitive: q.CaseSensitive, FileName: q.Scope == query.FileName, Content: q.Scope == query.Content,
		}}}
	case *query.Regexp:
		return &webserverv1.Q{Query: &webserverv1.Q_Regexp{Regexp: &webserverv1.Regexp{
			Regexp: q.Tree.String(), CaseSensitive: q.CaseSensitive, FileName: q.Scope == query.FileName, Content: q.Scope == query.Content,
		}}}
	case *query.Repo:
		return &webserverv1.Q{Query: &webserverv1.Q_Repo{Repo: &webserverv1.Repo{Regexp: q.Tree.String()}}}
	case *query.Branch:
		return &webserverv1.Q{Query: &webserverv1.Q_Branch{Branch: &webserverv1.Branch{Pattern: q.Pattern, Exact: q.Exact}}}
	case *query.Language:
		return &webserverv1.Q{Query: &webserverv1.Q_Language{Language: &webserverv1.Language{Language: q.Name}}}
	case *query.Meta:
		return &webserverv1.Q{Query: &webserverv1.Q_Meta{Meta: &webserverv1.Meta{Key: q.Key, Value: q.Tree.String()}}}
	case *query.RepoFact:
		flags := map[query.Fact][2]webserverv1.RawConfig_Flag{
			query.Archived: {webserverv1.RawConfig_FLAG_NO_ARCHIVED, webserverv1.RawConfig_FLAG_ONLY_ARCHIVED},
			query.Fork:     {webserverv1.RawConfig_FLAG_NO_FORKS, webserverv1.RawConfig_FLAG_ONLY_FORKS},
			query.Public:   {webserverv1.RawConfig_FLAG_ONLY_PRIVATE, webserverv1.RawConfig_FLAG_ONLY_PUBLIC},
		}[q.Fact]
		flag := flags[0]
		if q.Value {
			flag = flags[1]
		}
		return &webserverv1.Q{Query: &webserverv1.Q_RawConfig{RawConfig: &webserverv1.RawConfig{Flags: []webserverv1.RawConfig_Flag{flag}}}}
	}
	t.Fatalf("no message for %T", q)
	return nil
}

// restriction returns a random node that restricts a search to some repos, as a message and as
// the query that it must mean.
func restriction(t *testing.T, corpus *indextest.Corpus, rng *rand.Rand) (*webserverv1.Q, query.Q) {
	t.Helper()
	set, names := make(map[string]bool), []string{}
	for _, repo := range corpus.Repos {
		if set[repo.Name] = rng.IntN(2) == 0; set[repo.Name] {
			names = append(names, repo.Name)
		}
	}
	switch rng.IntN(4) {
	case 0:
		return &webserverv1.Q{Query: &webserverv1.Q_RepoSet{RepoSet: &webserverv1.RepoSet{Set: set}}}, query.NewRepoSet(names...)
	case 1:
		return repoIDs(t, names...), query.NewRepoSet(names...)
	case 2:
		return &webserverv1.Q{Query: &webserverv1.Q_Boost{Boost: &webserverv1.Boost{Boost: 20, Child: repoIDs(t, names...)}}}, query.NewRepoSet(names...)
	}
	var list []*webserverv1.BranchRepos
	means := &query.Or{}
	for _, name := range names {
		i := slices.IndexFunc(corpus.Repos, func(r indextest.Repo) bool { return r.Name == name })
		branch := corpus.Repos[i].Branches[rng.IntN(len(corpus.Repos[i].Branches))]
		if rng.IntN(3) == 0 {
			branch = "HEAD"
		}
		list = append(list, &webserverv1.BranchRepos{Branch: branch, Repos: repoIDs(t, name).GetRepoIds().Repos})
		means.Children = append(means.Children, &query.And{Children: []query.Q{&query.Branch{Pattern: branch, Exact: true}, query.NewRepoSet(name)}})
	}
	return &webserverv1.Q{Query: &webserverv1.Q_BranchesRepos{BranchesRepos: &webserverv1.BranchesRepos{List: list}}}, means
}

func repoIDs(t *testing.T, names ...string) *webserverv1.Q {
	t.Helper()
	set := roaring.New()
	for _, name := range names {
		set.Add(zoektID(name))
	}
	b, err := set.ToBytes()
	if err != nil {
		t.Fatal(err)
	}
	return &webserverv1.Q{Query: &webserverv1.Q_RepoIds{RepoIds: &webserverv1.RepoIds{Repos: b}}}
}

func both(a, b *webserverv1.Q) *webserverv1.Q {
	return &webserverv1.Q{Query: &webserverv1.Q_And{And: &webserverv1.And{Children: []*webserverv1.Q{a, b}}}}
}

// streamed collects the files of a stream. The statistics must be in its last message.
func (c *cluster) streamed(req *webserverv1.SearchRequest) (files []*webserverv1.FileMatch, stats *webserverv1.Stats) {
	c.t.Helper()
	stream, err := c.webserver().StreamSearch(c.t.Context(), &webserverv1.StreamSearchRequest{Request: req})
	c.must(err)
	for {
		piece, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return files, stats
		}
		c.must(err)
		stats = piece.ResponseChunk.Stats
		files = append(files, piece.ResponseChunk.Files...)
	}
}

// describeZoekt writes each file with its ranges as one line, in order of the lines.
func describeZoekt(files []*webserverv1.FileMatch) (lines []string) {
	for _, f := range files {
		var ranges []string
		slices.SortFunc(f.ChunkMatches, func(a, b *webserverv1.ChunkMatch) int { // they come best first
			return cmp.Compare(a.ContentStart.ByteOffset, b.ContentStart.ByteOffset)
		})
		for _, chunk := range f.ChunkMatches {
			for _, r := range chunk.Ranges {
				ranges = append(ranges, fmt.Sprintf("%v:%d-%d", chunk.FileName, r.Start.ByteOffset, r.End.ByteOffset))
			}
		}
		lines = append(lines, fmt.Sprintf("%s %q %v", f.Repository, f.FileName, ranges))
	}
	slices.Sort(lines)
	return lines
}

// describeShown writes the oracle's results as describeZoekt does. A file without a match in its
// content is shown by its name.
func describeShown(results []indextest.Result) (lines []string) {
	for _, r := range results {
		shown, fileName := r.Content, false
		if len(shown) == 0 {
			shown, fileName = r.Name, true
		}
		if len(shown) == 0 {
			shown = []indextest.Range{{Start: 0, End: len(r.Path)}}
		}
		var ranges []string
		for _, s := range shown {
			ranges = append(ranges, fmt.Sprintf("%v:%d-%d", fileName, s.Start, s.End))
		}
		lines = append(lines, fmt.Sprintf("%s %q %v", r.Repo, r.Path, ranges))
	}
	slices.Sort(lines)
	return lines
}

// TestZoektMessagesSameAsBruteForce runs queries of every kind over gRPC as zoekt's clients do, many
// of them restricted to some repos, and compares files, ranges and repos with those of brute force.
func TestZoektMessagesSameAsBruteForce(t *testing.T) {
	c := startCluster(t, 2, 1)
	const seed = 23
	corpus := indextest.Random(seed)
	rng := rand.New(rand.NewPCG(seed, 1))
	c.publishCorpus(corpus, rng)
	found := 0
	for i, q := range indextest.Queries(corpus, seed, 200) {
		parsed, err := searchapi.Parse(q.Text, 1)
		c.must(err)
		node := zoektNode(t, parsed)
		if i%2 == 0 {
			only, means := restriction(t, corpus, rng)
			node, parsed = both(only, node), query.Simplify(&query.And{Children: []query.Q{means, parsed}})
		}
		resolved, err := indextest.Resolve(corpus, parsed)
		c.must(err)
		want, err := indextest.Eval(corpus, resolved)
		c.must(err)
		req := &webserverv1.SearchRequest{Query: node, Opts: &webserverv1.SearchOptions{ChunkMatches: true}}
		got, err := c.webserver().Search(t.Context(), req)
		c.must(err)
		if a, b := describeZoekt(got.Files), describeShown(want); !slices.Equal(a, b) || got.Stats.Crashes+got.Stats.ShardsSkipped > 0 {
			t.Errorf("%s (%s):\n got %q\nwant %q\n%v", parsed, q.Kind, a, b, got.Stats)
		}
		found += len(got.Files)
		if i%5 > 0 {
			continue
		}
		files, stats := c.streamed(req)
		if len(files) != len(got.Files) || stats.GetFileCount() != got.Stats.FileCount {
			t.Errorf("%s: %d files in a stream, %d at once; %v", parsed, len(files), len(got.Files), stats)
		}
		list, err := c.webserver().List(t.Context(), &webserverv1.ListRequest{Query: node})
		c.must(err)
		repos := make(map[string]bool)
		for _, r := range want {
			repos[r.Repo] = true
		}
		listed := make(map[string]bool)
		for _, e := range list.Repos {
			listed[e.Repository.Name] = true
		}
		if !maps.Equal(listed, repos) || list.Stats.Repos != int64(len(repos)) {
			t.Errorf("%s: repos %v, want %v", parsed, listed, repos)
		}
	}
	if found < 300 {
		t.Errorf("only %d files were found", found)
	}
}

// TestZoektClients sends requests as Sourcegraph and Sourcebot do.
func TestZoektClients(t *testing.T) {
	c := startCluster(t, 1, 1)
	for _, name := range []string{"host/one", "host/two", "host/three"} {
		c.publish(name, map[string]string{"a.go": "package a\n\nfunc needle() {}\n", "b.md": "hay\n"})
	}
	text := &webserverv1.Q{Query: &webserverv1.Q_Substring{Substring: &webserverv1.Substring{Pattern: "needle", Content: true}}}
	sourcegraph := &webserverv1.SearchRequest{
		Query: both(&webserverv1.Q{Query: &webserverv1.Q_BranchesRepos{BranchesRepos: &webserverv1.BranchesRepos{List: []*webserverv1.BranchRepos{
			{Branch: "HEAD", Repos: repoIDs(t, "host/one", "host/two").GetRepoIds().Repos},
		}}}}, text),
		Opts: &webserverv1.SearchOptions{
			ShardMaxMatchCount: 10_000, TotalMaxMatchCount: 100_000, MaxWallTime: durationpb.New(20 * time.Second),
			FlushWallTime: durationpb.New(500 * time.Millisecond), MaxDocDisplayCount: 500, ChunkMatches: true, UseBm25Scoring: true,
		},
	}
	files, stats := c.streamed(sourcegraph)
	if len(files) != 2 || stats.MatchCount != 2 || stats.Crashes+stats.FilesSkipped+stats.ShardsSkipped != 0 || string(files[0].ChunkMatches[0].Content) != "func needle() {}\n" {
		t.Errorf("Sourcegraph: %v, %v", files, stats)
	}
	list, err := c.webserver().List(t.Context(), &webserverv1.ListRequest{
		Query: &webserverv1.Q{Query: &webserverv1.Q_Const{Const: true}},
		Opts:  &webserverv1.ListOptions{Field: webserverv1.ListOptions_REPO_LIST_FIELD_REPOS_MAP},
	})
	c.must(err)
	if len(list.ReposMap) != 3 || list.ReposMap[zoektID("host/two")].GetBranches()[0].Name != "main" || list.Stats.Documents != 6 {
		t.Errorf("Sourcegraph's list: %v", list)
	}
	paths := &webserverv1.Q{Query: &webserverv1.Q_FileNameSet{FileNameSet: &webserverv1.FileNameSet{Set: []string{"a.go", "b"}}}}
	set := &webserverv1.Q{Query: &webserverv1.Q_RepoSet{RepoSet: &webserverv1.RepoSet{Set: map[string]bool{"host/one": true, "host/two": false}}}}
	symbol := &webserverv1.Q{Query: &webserverv1.Q_Symbol{Symbol: &webserverv1.Symbol{Expr: text}}}
	sourcebot, err := c.webserver().Search(t.Context(), &webserverv1.SearchRequest{
		Query: both(both(symbol, paths), set),
		Opts: &webserverv1.SearchOptions{
			ChunkMatches: true, NumContextLines: 3, MaxMatchDisplayCount: 100, TotalMaxMatchCount: 101, ShardMaxMatchCount: -1, MaxWallTime: durationpb.New(10 * time.Second), Whole: true,
		},
	})
	c.must(err)
	if f := sourcebot.Files; len(f) != 1 || f[0].Repository != "host/one" || string(f[0].Content) != "package a\n\nfunc needle() {}\n" || string(f[0].ChunkMatches[0].Content) != string(f[0].Content) {
		t.Errorf("Sourcebot: %v", sourcebot)
	}
	c.replaySourcebot(text, 3, "host/one", "host/two", "host/three")
	c.replaySourcebot(text, 1, "host/one")
	c.replaySourcebot(&webserverv1.Q{Query: &webserverv1.Q_Language{Language: &webserverv1.Language{Language: "Go"}}}, 3, "host/one", "host/two", "host/three")
}

// replaySourcebot searches as createZoektSearchRequest in Sourcebot's zoektSearcher.ts (7f7be84f) does, in the repos, and reads the answers
// as transformZoektSearchResponse there does: a file counts if its repo has an id that Sourcebot knows, and an answer is exhaustive if it
// shows as many matches as it counts.
func (c *cluster) replaySourcebot(q *webserverv1.Q, files int, repos ...string) {
	c.t.Helper()
	known, set := map[uint32]string{}, map[string]bool{}
	for _, name := range repos {
		known[zoektID(name)], set[name] = name, true
	}
	query := &webserverv1.Q{Query: &webserverv1.Q_And{And: &webserverv1.And{Children: []*webserverv1.Q{
		q,
		{Query: &webserverv1.Q_Branch{Branch: &webserverv1.Branch{Pattern: "HEAD", Exact: true}}},
		{Query: &webserverv1.Q_RepoSet{RepoSet: &webserverv1.RepoSet{Set: set}}},
	}}}}
	for _, most := range []int64{1, 2, 100} {
		resp, err := c.webserver().Search(c.t.Context(), &webserverv1.SearchRequest{Query: query, Opts: &webserverv1.SearchOptions{
			ChunkMatches: true, MaxMatchDisplayCount: most, TotalMaxMatchCount: most + 1, NumContextLines: 5, ShardMaxMatchCount: -1, MaxWallTime: &durationpb.Duration{},
		}})
		c.must(err)
		found, matches := 0, 0
		for _, f := range resp.Files {
			if known[f.RepositoryId] != f.Repository || f.Branches[0] != "main" {
				c.t.Errorf("%s has the id %d and the branches %v", f.Repository, f.RepositoryId, f.Branches)
			}
			found++
			for _, chunk := range f.ChunkMatches {
				matches += len(chunk.Ranges)
			}
		}
		exhaustive := int(resp.Stats.MatchCount) <= matches
		if found != min(int(most), files) || exhaustive != (files <= int(most)) {
			c.t.Errorf("up to %d matches of %v: %d files with %d of %d matches", most, q, found, matches, resp.Stats.MatchCount)
		}
	}
}

// TestNeogrok searches and lists as neogrok's search-api.ts and zoekt-list-repositories.ts (938f5a6) do, which refuse an answer that lacks a
// field, and follows the links that it makes of the answers.
func TestNeogrok(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/one", map[string]string{"a b.go": "package a\n\nfunc needle() {}\n", "needle.md": "hay\n"})
	ask := func(path, body string, required ...string) map[string]any {
		t.Helper()
		code, answer := c.post("", path, body)
		var got map[string]any
		c.must(json.Unmarshal(answer, &got))
		if code != http.StatusOK {
			t.Fatalf("%s: %d, %s", body, code, answer)
		}
		for _, field := range required {
			var at any = got
			for key := range strings.SplitSeq(field, ".") {
				if list, ok := at.([]any); ok && len(list) > 0 {
					at = list[0]
				}
				object, _ := at.(map[string]any)
				if at = object[key]; at == nil {
					t.Errorf("%s: %s is missing at %s: %s", body, field, key, answer)
				}
			}
		}
		return got
	}
	options := `"ChunkMatches":true,"NumContextLines":1,"MaxDocDisplayCount":50,"MaxMatchDisplayCount":500,"ShardMaxMatchCount":10000,"TotalMaxMatchCount":100000`
	found := ask("/api/search", `{"q":"needle","opts":{`+options+`}}`,
		"Result.Duration", "Result.FileCount", "Result.MatchCount", "Result.FilesSkipped", "Result.Files.Repository", "Result.Files.FileName", "Result.Files.Language",
		"Result.Files.ChunkMatches.Content", "Result.Files.ChunkMatches.FileName", "Result.Files.ChunkMatches.ContentStart.ByteOffset", "Result.Files.ChunkMatches.ContentStart.LineNumber",
		"Result.Files.ChunkMatches.Ranges.Start.ByteOffset", "Result.Files.ChunkMatches.Ranges.End.LineNumber", "Result.RepoURLs", "Result.LineFragments")["Result"].(map[string]any)
	files := found["Files"].([]any)
	if len(files) != 2 || found["LineFragments"].(map[string]any)["host/one"] != "#L{{.LineNumber}}" {
		t.Errorf("found %v", found)
	}
	for _, f := range files {
		f := f.(map[string]any)
		template, _ := found["RepoURLs"].(map[string]any)[f["Repository"].(string)].(string)
		link := strings.NewReplacer("{{.Version}}", f["Version"].(string), "{{.Path}}", strings.ReplaceAll(f["FileName"].(string), " ", "%20")).Replace(template)
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, link, nil)
		c.must(err)
		resp, err := http.DefaultClient.Do(req)
		c.must(err)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", link, resp.Status)
		}
	}
	ask("/api/search", `{"q":"nothing","opts":{`+options+`}}`, "Result.FileCount", "Result.RepoURLs", "Result.LineFragments")
	ask("/api/list", `{}`, "List.Stats.Shards", "List.Stats.Documents", "List.Stats.IndexBytes", "List.Stats.ContentBytes", "List.Repos.Repository.Name", "List.Repos.Repository.ID",
		"List.Repos.Repository.Rank", "List.Repos.Repository.LatestCommitDate", "List.Repos.Repository.Branches.Version", "List.Repos.IndexMetadata.IndexTime", "List.Repos.Stats.Documents")
	if code, answer := c.post("", "/api/search", `{"q":"(","opts":{`+options+`}}`); code != http.StatusBadRequest || !strings.Contains(string(answer), `"Error":`) {
		t.Errorf("a wrong query: %d, %s", code, answer)
	}
}

// TestZoektMessagesKeepToTokens: a token searches only the repos that it allows, whatever repos the
// query names.
func TestZoektMessagesKeepToTokens(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
	c.publish("host/one", map[string]string{"a": "needle\n"})
	c.publish("host/secret", map[string]string{"a": "needle\n"})
	everything := &webserverv1.Q{Query: &webserverv1.Q_Const{Const: true}}
	if _, err := c.webserver().Search(t.Context(), &webserverv1.SearchRequest{Query: everything}); status.Code(err) != codes.Unauthenticated {
		t.Errorf("without a token: %v", err)
	}
	text, _ := c.token(access.Spec{Allow: []string{"host/one"}, Scopes: []access.Scope{access.ScopeSearch}})
	own := c.as(text)
	for name, q := range map[string]*webserverv1.Q{
		"all":  everything,
		"ids":  repoIDs(t, "host/one", "host/secret"),
		"set":  {Query: &webserverv1.Q_RepoSet{RepoSet: &webserverv1.RepoSet{Set: map[string]bool{"host/one": true, "host/secret": true}}}},
		"type": {Query: &webserverv1.Q_Type{Type: &webserverv1.Type{Type: webserverv1.Type_KIND_REPO, Child: everything}}},
	} {
		resp, err := own.webserver().Search(t.Context(), &webserverv1.SearchRequest{Query: q})
		c.must(err)
		list, err := own.webserver().List(t.Context(), &webserverv1.ListRequest{Query: q})
		c.must(err)
		if len(resp.Files) != 1 || resp.Files[0].Repository != "host/one" || resp.Stats.FileCount != 1 || len(list.Repos) != 1 || list.Stats.Repos != 1 {
			t.Errorf("%s: %v, %v", name, resp, list)
		}
	}
	text, _ = c.token(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeIngest}})
	own = c.as(text)
	if _, err := own.webserver().List(t.Context(), &webserverv1.ListRequest{Query: everything}); status.Code(err) != codes.PermissionDenied {
		t.Errorf("a token that may not search: %v", err)
	}
}

// TestZoektMessagesGolden compares whole messages with golden files, except for values that differ
// from run to run.
func TestZoektMessagesGolden(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/one", map[string]string{"a.go": "package one\n\n// needle\nvar needle = 1"})
	c.publish("host/two", map[string]string{"needle\xff.md": "hay\n"})
	needle := &webserverv1.Q{Query: &webserverv1.Q_Substring{Substring: &webserverv1.Substring{Pattern: "needle"}}}
	search := func(o *webserverv1.SearchOptions) proto.Message {
		resp, err := c.webserver().Search(t.Context(), &webserverv1.SearchRequest{Query: needle, Opts: o})
		c.must(err)
		for _, f := range resp.Files {
			f.Score = 0
		}
		if s := resp.Stats; s.Duration.AsDuration() > 0 {
			s.Duration, s.ContentBytesLoaded, s.FilesConsidered, s.FilesLoaded, s.NgramLookups = nil, 0, 0, 0, 0
		}
		return resp
	}
	list := func(field webserverv1.ListOptions_RepoListField) proto.Message {
		resp, err := c.webserver().List(t.Context(), &webserverv1.ListRequest{Query: needle, Opts: &webserverv1.ListOptions{Field: field}})
		c.must(err)
		slices.SortFunc(resp.Repos, func(a, b *webserverv1.RepoListEntry) int {
			return strings.Compare(a.Repository.Name, b.Repository.Name)
		})
		for _, e := range resp.Repos {
			e.IndexMetadata.IndexTime, e.Stats.IndexBytes = nil, 0
		}
		resp.Stats.IndexBytes = 0
		return resp
	}
	for name, message := range map[string]proto.Message{
		"lines":    search(&webserverv1.SearchOptions{NumContextLines: 1}),
		"chunks":   search(&webserverv1.SearchOptions{ChunkMatches: true, Whole: true, MaxDocDisplayCount: 50}),
		"list":     list(webserverv1.ListOptions_REPO_LIST_FIELD_REPOS),
		"reposmap": list(webserverv1.ListOptions_REPO_LIST_FIELD_REPOS_MAP),
	} {
		written, err := protojson.Marshal(message)
		c.must(err)
		var got bytes.Buffer
		c.must(json.Indent(&got, written, "", "  "))
		got.WriteByte('\n')
		testrun.Golden(t, filepath.Join("testdata", "zoekt-grpc-"+name+".json"), got.Bytes())
	}
}
