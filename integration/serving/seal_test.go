package serving_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// startGuarded starts a cluster of one searcher that requires tokens.
func startGuarded(t *testing.T) *cluster {
	t.Helper()
	return startGuardedIn(t, false)
}

// startGuardedIn is startGuarded, as one process or as several.
func startGuardedIn(t *testing.T, oneProcess bool) *cluster {
	t.Helper()
	tel, spans := telemetrytest.New(t)
	return startWith(t, &cluster{oneProcess: oneProcess, replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
}

// sealed returns a context with the seal of a request, made with the key in etcd as
// docs/adr/0016 describes.
func (c *cluster) sealed(method string, until time.Time, req proto.Message) context.Context {
	c.t.Helper()
	stored, err := c.servers.Client().Get(c.t.Context(), "/trawl/v1/access.key")
	c.must(err)
	if len(stored.Kvs) != 1 {
		c.t.Fatal("there is no key")
	}
	raw, err := proto.MarshalOptions{Deterministic: true}.Marshal(req)
	c.must(err)
	expiry := binary.BigEndian.AppendUint64(nil, uint64(until.UnixMilli()))
	h := hmac.New(sha256.New, stored.Kvs[0].Value)
	h.Write(slices.Concat([]byte("trawl plan 1\x00"+method+"\x00"), expiry, raw))
	return metadata.AppendToOutgoingContext(c.t.Context(), "trawl-seal-bin", string(expiry)+string(h.Sum(nil)))
}

// TestSearchersObeySealsOnly calls a searcher directly: with a router's seal, with a seal for
// other repos, with an expired one, with one for another method, and without a seal.
func TestSearchersObeySealsOnly(t *testing.T) { inOneAndInSeveral(t, testSearchersObeySealsOnly) }

func testSearchersObeySealsOnly(t *testing.T, oneProcess bool) {
	c := startGuardedIn(t, oneProcess)
	c.publish("seen", map[string]string{"a.go": "heron"})
	all, _ := c.token(admin())
	c.eventually("the repo is found", func() bool { return len(paths(c.as(all).find("heron", nil))) == 1 })
	root, err := c.store.GetRoot(t.Context(), "seen")
	c.must(err)
	plan := func(repos ...byte) *searchv1.Plan {
		return &searchv1.Plan{Revision: root.Revision, Shards: []*searchv1.PlannedShard{{
			Digest: root.Record.Shards[0].Digest, Repos: &searchv1.PlannedShard_Bitmap{Bitmap: repos},
		}}}
	}
	var conn grpc.ClientConnInterface = c.dial(c.searchers[0])
	if oneProcess {
		conn = c.local(c.searchers[0])
	}
	searcher := searchv1.NewSearchServiceClient(conn)
	// ask returns the paths that a stream names, and how many files it counts.
	ask := func(ctx context.Context, req *searchv1.SearchRequest) (files, matched int, err error) {
		take := func(part *searchv1.StreamSearchResponse) error {
			files += len(part.Files)
			matched += int(part.GetStatistics().GetFilesMatched() + part.GetStatistics().GetFilesConsidered())
			return nil
		}
		stream, err := searcher.StreamSearch(ctx, &searchv1.StreamSearchRequest{Search: req}, server.To(take))
		for err == nil {
			var part *searchv1.StreamSearchResponse
			if part, err = stream.Recv(); err == nil {
				err = take(part)
			}
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		return files, matched, err
	}
	seal := func(method string, until time.Time, req *searchv1.SearchRequest) context.Context {
		return c.sealed(method, until, &searchv1.StreamSearchRequest{Search: req})
	}
	const method = searchv1.SearchService_StreamSearch_FullMethodName
	none, one := &searchv1.SearchRequest{Query: "heron", Plan: plan()}, &searchv1.SearchRequest{Query: "heron", Plan: plan(1)}
	later := time.Now().Add(time.Minute)
	for what, try := range map[string]struct {
		ctx   context.Context
		code  codes.Code
		files int
	}{
		"sealed":                       {seal(method, later, one), codes.OK, 1},
		"sealed for no repo":           {seal(method, later, none), codes.Unauthenticated, 0},
		"sealed long ago":              {seal(method, time.Now().Add(-time.Second), one), codes.Unauthenticated, 0},
		"sealed for another method":    {seal(searchv1.SearchService_List_FullMethodName, later, one), codes.Unauthenticated, 0},
		"not sealed":                   {t.Context(), codes.Unauthenticated, 0},
		"not sealed, by a good caller": {showing(t.Context(), "Bearer "+string(all)), codes.Unauthenticated, 0},
	} {
		if files, matched, err := ask(try.ctx, one); status.Code(err) != try.code || files != try.files || (matched > 0) != (files > 0) {
			t.Errorf("%s: %d files, %d counted, %v", what, files, matched, err)
		}
	}
	// Repos that a plan leaves out are neither found nor counted.
	if files, matched, err := ask(seal(method, later, none), none); err != nil || files != 0 || matched != 0 {
		t.Errorf("a plan without repos: %d files, %d counted, %v", files, matched, err)
	}
}

// TestHiddenShardsAreNotMissed: missing shards are reported only to callers that may see a
// repo in them.
func TestHiddenShardsAreNotMissed(t *testing.T) { inOneAndInSeveral(t, testHiddenShardsAreNotMissed) }

func testHiddenShardsAreNotMissed(t *testing.T, oneProcess bool) {
	c := startGuardedIn(t, oneProcess)
	c.publish("seen", map[string]string{"a.go": "heron"})
	c.publish("hidden", map[string]string{"a.go": "heron hidden"})
	all, _ := c.token(admin())
	some, _ := c.token(access.Spec{Allow: []string{"seen"}, Scopes: []access.Scope{access.ScopeSearch}})
	whole, part := c.as(all), c.as(some)
	c.eventually("all is found", func() bool { return len(whole.find("heron", nil).Files) == 2 })
	c.lose("hidden")
	within := func(c *cluster) *searchv1.Coverage {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		resp, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: "heron"})
		c.must(err)
		return resp.Coverage
	}
	if got := within(whole); got.Complete || got.Requested != 2 || len(got.Uncovered) != 1 || !slices.Equal(got.Uncovered[0].Repos, []string{"hidden"}) {
		t.Errorf("a caller that sees all gets %v", got)
	}
	if got := within(part); !proto.Equal(got, &searchv1.Coverage{Complete: true, Requested: 1, Searched: 1}) {
		t.Errorf("a caller that does not see it gets %v", got)
	}
	_, err := part.search.Search(t.Context(), &searchv1.SearchRequest{Query: "r:hidden", Options: &searchv1.SearchOptions{RequireComplete: true}})
	c.must(err)
}

// lose makes the root of a repo name a shard that is not in the bucket.
func (c *cluster) lose(repo string) {
	c.t.Helper()
	_, _, err := c.store.PutDesired(c.t.Context(), &catalogv1.Desired{Name: repo})
	c.must(err)
	lease, err := c.store.AcquireLease(c.t.Context(), repo, time.Minute)
	c.must(err)
	old := lease.Root()
	root := proto.CloneOf(old.Record)
	root.Generation, root.Epoch = lease.NextGeneration(), lease.Desired().Epoch
	ref := c.upload(lease.Fence(), root, map[string]string{"b.go": "lost"})
	c.must(c.bucket.Delete(c.t.Context(), ref.Key))
	root.Shards = []*catalogv1.ShardRef{ref}
	_, err = c.store.Publish(c.t.Context(), lease, old, root)
	c.must(err)
	c.must(lease.Release(c.t.Context()))
}

// TestIngestIsForItsRepos: a caller may change only the repos that it may see, and does not
// learn whether others exist.
func TestIngestIsForItsRepos(t *testing.T) {
	c := startGuarded(t)
	c.publish("other/there", map[string]string{"a.go": "heron"})
	text, _ := c.token(access.Spec{
		Allow: []string{"example.org/mine/*", "mine/*"}, Deny: []string{"example.org/mine/not"}, Scopes: []access.Scope{access.ScopeIngest},
	})
	own := c.as(text)
	for name, want := range map[string]codes.Code{
		"example.org/mine/new": codes.OK, "example.org/mine/not": codes.PermissionDenied, "example.org/mine/Not": codes.PermissionDenied,
		"other/there": codes.PermissionDenied, "other/never": codes.PermissionDenied,
	} {
		_, err := own.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://" + name + ".git", Name: name})
		if status.Code(err) != want {
			t.Errorf("put %s: %v", name, err)
		}
	}
	// The indexer's credentials would fetch another team's repository.
	_, theirs := own.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://example.org/theirs/x.git", Name: "mine/x"})
	_, moved := own.ingest.PutRepo(t.Context(), &ingestv1.PutRepoRequest{Url: "https://example.org/mine/a", Name: "example.org/mine/new"})
	if status.Code(theirs) != codes.PermissionDenied || status.Code(moved) != codes.PermissionDenied {
		t.Errorf("another team's repository under one's own name: %v; under the name of another repo: %v", theirs, moved)
	}
	_, missing := own.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: "mine/never"})
	_, hidden := own.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: "other/there"})
	if status.Code(hidden) != codes.NotFound || !proto.Equal(status.Convert(hidden).Proto(), status.Convert(missing).Proto()) {
		t.Errorf("deleting a hidden repo %v, one that is not there %v", hidden, missing)
	}
	if _, err := c.store.GetDesired(t.Context(), "other/there"); err != nil {
		t.Errorf("it was deleted: %v", err)
	}
	deleted, err := own.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: "example.org/mine/new"})
	if err != nil {
		t.Errorf("deleting one's own: %v", err)
	}
	if _, err := own.ingest.GetDeletion(t.Context(), &ingestv1.GetDeletionRequest{Name: "example.org/mine/new"}); err != nil {
		t.Errorf("how far the deletion of one's own is: %v", err)
	}
	_, err = c.store.DeleteRepo(t.Context(), "other/there")
	c.must(err)
	for _, token := range [][]byte{nil, deleted.GetRevisionToken()} {
		_, missing := own.ingest.GetDeletion(t.Context(), &ingestv1.GetDeletionRequest{Name: "mine/never"})
		_, hidden := own.ingest.GetDeletion(t.Context(), &ingestv1.GetDeletionRequest{Name: "other/there", RevisionToken: token})
		if status.Code(hidden) != codes.NotFound || !proto.Equal(status.Convert(hidden).Proto(), status.Convert(missing).Proto()) {
			t.Errorf("the deletion of a hidden repo %v, of one that was never there %v", hidden, missing)
		}
	}
}

// TestListReposPages: pages are full and name only repos that the caller may see, however
// many hidden ones lie between.
func TestListReposPages(t *testing.T) {
	c := startGuarded(t)
	var want []string
	for i := range 40 {
		name := "hidden/" + string(rune('a'+i%26)) + string(rune('a'+i/26))
		if i%7 == 3 {
			name = "mine/" + string(rune('a'+i/7))
			want = append(want, name)
		}
		if i%3 == 0 {
			name += "-x"
			if i%7 == 3 {
				want[len(want)-1] = name
			}
		}
		_, _, err := c.store.PutDesired(t.Context(), &catalogv1.Desired{Name: name})
		c.must(err)
	}
	slices.Sort(want)
	text, _ := c.token(access.Spec{Allow: []string{"mine/*"}, Scopes: []access.Scope{access.ScopeIngest}})
	own := c.as(text)
	for size := range uint32(8) {
		var got []string
		for after, first := "", true; first || after != ""; first = false {
			resp, err := own.ingest.ListRepos(t.Context(), &ingestv1.ListReposRequest{PageSize: size, After: after})
			c.must(err)
			if after = resp.NextAfter; after != "" && (len(resp.Repos) != int(size) || after != resp.Repos[size-1].Name) {
				t.Errorf("a page of %d of %d, and then %q", len(resp.Repos), size, after)
			}
			for _, r := range resp.Repos {
				got = append(got, r.Name)
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("pages of %d: %q, want %q", size, got, want)
		}
	}
}

// TestRevokedStreamsEnd: an endless stream ends when its caller's token is revoked.
func TestRevokedStreamsEnd(t *testing.T) {
	c := startGuarded(t)
	c.publish("r", map[string]string{"a.go": "heron"})
	text, id := c.token(admin())
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	stream, err := c.as(text).ingest.WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: "r"})
	c.must(err)
	if _, err := stream.Recv(); err != nil {
		t.Fatal(err)
	}
	c.must(access.NewStore(c.servers.Client(), "").Revoke(ctx, id))
	for err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Unauthenticated {
		t.Errorf("the stream ended with %v", err)
	}
}
