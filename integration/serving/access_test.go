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

// guarded are the settings of a cluster that asks who calls.
func guarded() access.Config { return access.Config{Mode: access.Tokens, Staleness: time.Minute} }

// token makes a token.
func (c *cluster) token(spec access.Spec) (access.Text, string) {
	c.t.Helper()
	spec.Name = "test"
	text, record, err := access.NewStore(c.servers.Client(), "").Create(c.t.Context(), spec)
	c.must(err)
	return text, record.Id
}

// as is the cluster as its caller with a token sees it.
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

// large is a random corpus with enough repos to see some of.
func large(seed uint64) (*indextest.Corpus, uint64) {
	for ; ; seed++ {
		if c := indextest.Random(seed); len(c.Repos) >= 4 {
			return c, seed
		}
	}
}

// TestCallersSeeTheirReposOnly: a caller with any token gets, in a cluster of all
// repos, what it would get in one that holds only those it may see: files, ranges,
// scores, counts, statistics, coverage, lists, statuses and errors, whether
// repos have shards of their own or share them. The files are also what brute
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

// randomSight is a token for some of the repos, never all: named one by one, or
// all but the denied ones; the last sees none.
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

// publishSome publishes the repos that keep holds for, each in two shards of its
// own or all in the same two: the same documents whatever is kept.
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
		_, _, err := c.store.PutDesired(c.t.Context(), &catalogv1.Desired{Name: repo.Name})
		c.must(err)
		lease, err := c.store.AcquireLease(c.t.Context(), repo.Name, 10*time.Second)
		c.must(err)
		root := &catalogv1.Root{Repo: repo.Name, Generation: lease.NextGeneration(), Epoch: lease.Desired().Epoch}
		for _, b := range repo.Branches {
			root.Branches = append(root.Branches, &catalogv1.Branch{Name: b})
		}
		for i := range parts {
			if !shared {
				root.Shards = append(root.Shards, c.uploadDocuments(lease.Fence(), parts[i][n]))
				continue
			}
			ref := c.uploadDocuments(lease.Fence(), parts[i]...) // one shard, under as many names
			ref.Languages = nil                                  // a caller is not told those of others
			root.Shards = append(root.Shards, ref)
		}
		_, err = c.store.Publish(c.t.Context(), lease, lease.Root(), root)
		c.must(err)
		c.must(lease.Release(c.t.Context()))
	}
}

// half are the repo's documents of one of its two shards: those at one path
// stay together.
func half(repo indextest.Repo, which int) (docs []build.Document) {
	for _, d := range documents(repo) {
		if len(d.Path)%2 == which {
			docs = append(docs, d)
		}
	}
	return docs
}

// compareSights asks both clusters the same.
func compareSights(t *testing.T, restricted, only *cluster, corpus *indextest.Corpus, sees func(string) bool, seed uint64, shared bool) {
	t.Helper()
	visible := &indextest.Corpus{Name: corpus.Name}
	for _, repo := range corpus.Repos {
		if sees(repo.Name) {
			visible.Repos = append(visible.Repos, repo)
		}
	}
	for _, repo := range corpus.Repos { // what is not there gets hints, which name what is visible
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

// sameAnswers holds Search, StreamSearch and List against another cluster's.
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
		// Plans have times, and say nothing where the caller may not read all of a shard.
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

// effort leaves out of statistics what depends on which searcher was faster.
func effort(s *searchv1.Statistics) { s.Duration, s.BytesDecoded, s.UnitsDecoded = nil, 0, 0 }

// untold leaves out what is not told of shards that hold others' repos too.
func untold(s *searchv1.Statistics) {
	s.FilesConsidered, s.BytesDecoded, s.UnitsDecoded, s.PostingListsRead, s.ShardsScanned = 0, 0, 0, 0, 0
}

// sameOfRepo holds everything that is asked by the name of a repo against
// another cluster's: a hidden repo is one that is not there.
func (c *cluster) sameOfRepo(t *testing.T, other *cluster, repo indextest.Repo) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
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

// statusOf is a status without what no two clusters have in common.
func statusOf(s *ingestv1.RepoStatus) *ingestv1.RepoStatus {
	if s != nil {
		s.UpdatedAt, s.RevisionToken = nil, nil
		s.Freshness.SeenAt, s.Freshness.IndexedAt, s.Freshness.BehindSince = nil, nil, nil
	}
	return s
}
