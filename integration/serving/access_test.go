package serving_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// guarded returns the settings of a cluster that requires tokens.
func guarded() access.Config { return access.Config{Mode: access.Tokens, Staleness: time.Minute} }

// token makes a token.
func (c *cluster) token(spec access.Spec) (access.Text, string) {
	c.t.Helper()
	spec.Name = "test"
	text, record, err := access.NewStore(c.servers.Client(), "").Create(c.t.Context(), spec)
	c.must(err)
	return text, record.Id
}

// as returns the cluster with clients that use a token.
func (c *cluster) as(text access.Text) *cluster {
	c.t.Helper()
	own := *c
	own.conn = c.dial(c.routerGRPC, grpc.WithPerRPCCredentials(text))
	own.search, own.ingest = searchv1.NewSearchServiceClient(own.conn), ingestv1.NewIngestServiceClient(own.conn)
	c.eventually("the token is known", func() bool {
		_, err := own.search.List(c.t.Context(), &searchv1.ListRequest{})
		return status.Code(err) != codes.Unauthenticated
	})
	return &own
}

// large returns a random corpus with enough repos to allow only some of them, and its seed.
func large(seed uint64) (*indextest.Corpus, uint64) {
	for ; ; seed++ {
		if c := indextest.Random(seed); len(c.Repos) >= 4 {
			return c, seed
		}
	}
}

// TestCallersSeeTheirReposOnly: in a cluster of all repos a caller gets what it would get
// in a cluster of only the repos that its token allows: the same files, ranges, scores,
// counts, statistics, coverage, lists, statuses and errors. This holds both for repos with
// shards of their own and for repos that share shards. The files are also those that brute
// force finds.
func TestCallersSeeTheirReposOnly(t *testing.T) {
	for _, shared := range []bool{false, true} {
		t.Run(fmt.Sprintf("shared=%v", shared), func(t *testing.T) {
			corpus, seed := large(5)
			tel, spans := telemetrytest.New(t)
			whole := startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 2)
			whole.publishSome(corpus, func(string) bool { return true }, shared)
			rng := rand.New(rand.NewPCG(seed, 3))
			for i := range 3 {
				spec, sees := randomSight(corpus, rng, i)
				t.Logf("allow %q, deny %q", spec.Allow, spec.Deny)
				text, _ := whole.token(spec)
				only := startCluster(t, 1, 1)
				only.publishSome(corpus, sees, shared)
				compareSights(t, whole.as(text), only, corpus, sees, seed, shared)
			}
		})
	}
}

// randomSight returns a token for some of the repos, never all: by name for i = 0, by
// denying the others for i = 1, and for no repo otherwise.
func randomSight(corpus *indextest.Corpus, rng *rand.Rand, i int) (access.Spec, func(string) bool) {
	spec := access.Spec{Scopes: []access.Scope{access.ScopeSearch, access.ScopeIngest}}
	var seen, hidden []string
	for n, j := range rng.Perm(len(corpus.Repos)) {
		if name := corpus.Repos[j].Name; i < 2 && n <= len(corpus.Repos)/2-i {
			seen = append(seen, name)
		} else {
			hidden = append(hidden, name)
		}
	}
	switch i {
	case 0:
		spec.Allow = append(seen, "nobody/*")
	default:
		spec.Allow, spec.Deny = []string{"**"}, hidden
	}
	return spec, func(name string) bool { return slices.Contains(seen, name) }
}

// publishSome publishes the repos for which keep returns true, each in two shards of its
// own or all in the same two. The documents do not depend on which repos are kept.
func (c *cluster) publishSome(corpus *indextest.Corpus, keep func(string) bool, shared bool) {
	c.t.Helper()
	var parts [2][]part
	for _, repo := range corpus.Repos {
		if keep(repo.Name) {
			for i := range parts {
				parts[i] = append(parts[i], part{repo, half(repo, i)})
			}
		}
	}
	for n := range len(parts[0]) {
		repo := parts[0][n].repo
		c.publishShards(repo, func(fence int64) (refs []*catalogv1.ShardRef) {
			for i := range parts {
				if !shared {
					refs = append(refs, c.uploadDocuments(fence, parts[i][n]))
					continue
				}
				ref := c.uploadDocuments(fence, parts[i]...) // one shard, under as many names
				ref.RepoNumber = uint32(n)
				ref.Languages = nil // a caller is not told those of others
				refs = append(refs, ref)
			}
			return refs
		})
	}
}

// half returns the documents of one of the repo's two shards. Documents at one path stay
// together.
func half(repo indextest.Repo, which int) (docs []build.Document) {
	for _, d := range documents(repo) {
		if len(d.Path)%2 == which {
			docs = append(docs, d)
		}
	}
	return docs
}

// compareSights compares the answers of both clusters.
func compareSights(t *testing.T, restricted, only *cluster, corpus *indextest.Corpus, sees func(string) bool, seed uint64, shared bool) {
	t.Helper()
	visible := &indextest.Corpus{Name: corpus.Name}
	for _, repo := range corpus.Repos {
		if sees(repo.Name) {
			visible.Repos = append(visible.Repos, repo)
		}
	}
	for _, repo := range corpus.Repos { // a name that does not exist gets hints of visible names
		restricted.sameAnswers(t, only, "nowhere-to-be-found r:"+query.Quote(regexp.QuoteMeta(repo.Name)+"x"), shared)
		restricted.sameAnswers(t, only, "nowhere-to-be-found b:"+query.Quote(repo.Branches[0]+"x")+" lang:G", shared)
	}
	asked, found := 0, 0
	for _, q := range indextest.Queries(corpus, seed, 80) {
		want := restricted.oracle(visible, q.Text)
		got := restricted.sameAnswers(t, only, q.Text, shared)
		if a, b := describe(got), describeOracle(want); !slices.Equal(a, b) {
			t.Errorf("query %q:\n got %q\nwant %q", q.Text, a, b)
		}
		asked, found = asked+1, found+len(got)
	}
	if asked < 40 || len(visible.Repos) > 0 && found == 0 {
		t.Errorf("%d queries were asked, %d files found", asked, found)
	}
	for _, repo := range corpus.Repos {
		restricted.sameOfRepo(t, only, repo)
	}
	restricted.sameOfRepo(t, only, indextest.Repo{Name: "nobody/never"})
}

// sameAnswers compares Search and List with those of another cluster.
func (c *cluster) sameAnswers(t *testing.T, other *cluster, query string, shared bool) []*searchv1.FileMatch {
	t.Helper()
	search := func(c *cluster) *searchv1.SearchResponse {
		resp, err := c.search.Search(t.Context(), &searchv1.SearchRequest{Query: query, Options: &searchv1.SearchOptions{
			MaxFiles: 10_000, MaxMatchesPerFile: 100_000, RequireComplete: true, Explain: true,
			Facets: everyFacet, MaxFacetValues: 10_000,
		}})
		if err != nil {
			t.Fatalf("query %q: %v", query, err)
		}
		resp.RevisionToken = nil
		// Explanations contain times, and are empty for shards that the caller may not read in full.
		resp.Explanation = nil
		return resp
	}
	got, want := search(c), search(other)
	if shared {
		got.Statistics.Duration, want.Statistics.Duration = nil, nil
		untold(want.Statistics)
	} else {
		effort(got.Statistics)
		effort(want.Statistics)
	}
	if !proto.Equal(got, want) {
		t.Errorf("query %q:\n got %v\nwant %v", query, got, want)
	}
	list := func(c *cluster) *searchv1.ListResponse {
		resp, err := c.search.List(t.Context(), &searchv1.ListRequest{Query: query, MaxSkippedFiles: 100})
		if err != nil {
			t.Fatalf("list %q: %v", query, err)
		}
		resp.RevisionToken = nil
		for _, e := range resp.Repos {
			e.PublishedAt = nil
			if shared {
				e.IndexBytes = 0
			}
		}
		return resp
	}
	if got, want := list(c), list(other); !proto.Equal(got, want) {
		t.Errorf("list %q:\n got %v\nwant %v", query, got, want)
	}
	return got.Files
}

// effort clears the statistics that depend on which searcher was faster.
func effort(s *searchv1.Statistics) { s.Duration, s.BytesDecoded, s.UnitsDecoded = nil, 0, 0 }

// untold clears the statistics that are withheld for shards that also hold hidden repos.
func untold(s *searchv1.Statistics) {
	s.FilesConsidered, s.BytesDecoded, s.UnitsDecoded, s.PostingListsRead, s.ShardsScanned = 0, 0, 0, 0, 0
}

// sameOfRepo compares all answers about a named repo with those of another cluster: a hidden
// repo looks like one that does not exist.
func (c *cluster) sameOfRepo(t *testing.T, other *cluster, repo indextest.Repo) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	path := []byte("none")
	if len(repo.Documents) > 0 {
		path = []byte(repo.Documents[0].Path)
	}
	for what, ask := range map[string]func(c *cluster) (proto.Message, error){
		"GetFile": func(c *cluster) (proto.Message, error) {
			resp, err := c.search.GetFile(ctx, &searchv1.GetFileRequest{Repo: repo.Name, Path: path})
			if resp != nil {
				resp.RevisionToken = nil
			}
			return resp, err
		},
		"GetFiles": func(c *cluster) (proto.Message, error) {
			resp, err := c.search.GetFiles(ctx, &searchv1.GetFilesRequest{Files: []*searchv1.FileName{
				{Repo: repo.Name, Path: path}, {Repo: repo.Name, Path: append(path, 'x')}, {Repo: repo.Name + "x", Path: path},
			}})
			if resp != nil {
				resp.RevisionToken = nil
			}
			return resp, err
		},
		"ListTree": func(c *cluster) (proto.Message, error) {
			return listed(c.search.ListTree(ctx, &searchv1.ListTreeRequest{Repo: repo.Name, Depth: 2}))
		},
		"ListTree of no folder": func(c *cluster) (proto.Message, error) {
			return listed(c.search.ListTree(ctx, &searchv1.ListTreeRequest{Repo: repo.Name, Path: append([]byte("x"), path...)}))
		},
		"GetRepo": func(c *cluster) (proto.Message, error) {
			resp, err := c.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: repo.Name})
			return statusOf(resp.GetStatus()), err
		},
		"WatchRepo": func(c *cluster) (proto.Message, error) {
			ctx, cancel := context.WithCancel(ctx)
			defer cancel()
			stream, err := c.ingest.WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: repo.Name})
			if err != nil {
				return nil, err
			}
			resp, err := stream.Recv()
			return statusOf(resp.GetStatus()), err
		},
		"ListRepos": func(c *cluster) (proto.Message, error) {
			resp, err := c.ingest.ListRepos(ctx, &ingestv1.ListReposRequest{PageSize: 1, Prefix: repo.Name[:1]})
			for _, r := range resp.GetRepos() {
				statusOf(r)
			}
			return resp, err
		},
		"ListStaleRepos": func(c *cluster) (proto.Message, error) {
			return c.ingest.ListStaleRepos(ctx, &ingestv1.ListStaleReposRequest{Prefix: repo.Name[:1]})
		},
		"GetDeadLetter": func(c *cluster) (proto.Message, error) {
			return c.ingest.GetDeadLetter(ctx, &ingestv1.GetDeadLetterRequest{Name: repo.Name})
		},
		"RetryDeadLetter": func(c *cluster) (proto.Message, error) {
			return c.ingest.RetryDeadLetter(ctx, &ingestv1.RetryDeadLetterRequest{Name: repo.Name})
		},
	} {
		got, gotErr := ask(c)
		want, wantErr := ask(other)
		if !proto.Equal(got, want) || !proto.Equal(status.Convert(gotErr).Proto(), status.Convert(wantErr).Proto()) {
			t.Errorf("%s of %q:\n got %v, %v\nwant %v, %v", what, repo.Name, got, gotErr, want, wantErr)
		}
	}
}

// listed returns a tree without what differs between clusters.
func listed(resp *searchv1.ListTreeResponse, err error) (proto.Message, error) {
	if resp != nil {
		resp.RevisionToken = nil
	}
	return resp, err
}

// statusOf returns a status without the fields that differ between clusters.
func statusOf(s *ingestv1.RepoStatus) *ingestv1.RepoStatus {
	if s != nil {
		s.UpdatedAt, s.RevisionToken = nil, nil
		s.Freshness.SeenAt, s.Freshness.IndexedAt, s.Freshness.BehindSince = nil, nil, nil
	}
	return s
}
