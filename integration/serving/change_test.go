package serving_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/catalog"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// generation returns the files of one generation, in two shards. Each file has its token.
func generation(n int) []map[string]string {
	first, second := make(map[string]string), make(map[string]string)
	for i := range 4 {
		first[fmt.Sprintf("a%d", i)] = fmt.Sprintf("token generation%04d end\n", n)
		second[fmt.Sprintf("b%d", i)] = fmt.Sprintf("token generation%04d end\n", n)
	}
	return []map[string]string{first, second}
}

// TestGenerationsNeverMix publishes one generation after another while queries run. Each
// complete answer is from a single generation, and never from one older than the generation
// that was published before the query began.
func TestGenerationsNeverMix(t *testing.T) {
	c := startCluster(t, 2, 2)
	var published atomic.Int64
	c.publish("host/flip", generation(1)...)
	published.Store(1)
	done := make(chan struct{})
	var queries sync.WaitGroup
	var answers atomic.Int64
	for range 3 {
		queries.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				least := published.Load()
				resp, err := c.search.Search(t.Context(), &searchv1.SearchRequest{Query: "token"})
				if err != nil {
					t.Error(err)
					return
				}
				checkGeneration(t, resp, least)
				answers.Add(1)
			}
		})
	}
	for n := 2; n <= 25; n++ {
		c.publish("host/flip", generation(n)...)
		published.Store(int64(n))
	}
	close(done)
	queries.Wait()
	if answers.Load() == 0 {
		t.Error("no query was answered")
	}
	t.Logf("%d answers over 25 generations", answers.Load())
}

func checkGeneration(t *testing.T, resp *searchv1.SearchResponse, least int64) {
	t.Helper()
	if !resp.Coverage.Complete || len(resp.Files) != 8 {
		t.Errorf("%d files, coverage %v", len(resp.Files), resp.Coverage)
		return
	}
	seen := make(map[string]bool)
	for _, f := range resp.Files {
		seen[strings.Fields(string(f.Chunks[0].Content))[1]] = true
	}
	for token := range seen {
		var n int64
		if _, err := fmt.Sscanf(token, "generation%d", &n); err != nil || len(seen) != 1 || n < least {
			t.Errorf("generations %v after %d was published", seen, least)
		}
	}
}

// plain encodes bytes in characters that have no special meaning in a query.
var plain = base64.NewEncoding("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_~").WithPadding(base64.NoPadding)

// TestDamagedShard flips one byte of a shard in a searcher's cache. The query that meets it
// reports CORRUPT, the file goes to quarantine, and soon the same process gives complete
// answers again.
func TestDamagedShard(t *testing.T) {
	var logs record
	tel, spans := loggedTo(t, &logs)
	c := startWith(t, &cluster{replication: 1, tel: tel, spans: spans}, 1)
	// Text that does not compress is stored as it is, so the test can find it in the file.
	// There is much of it, so that the damage is in a block that nothing has read before.
	files := make(map[string]string)
	var text string
	for i := range 20 {
		noise := make([]byte, 12_000)
		rand.Read(noise)
		content := plain.EncodeToString(noise)
		files[fmt.Sprintf("%02d", i)] = content
		if i == 10 {
			text = content
		}
	}
	c.publish("host/one", files)
	c.publish("host/two", map[string]string{"a": "other text\n"})
	file := c.cachedFile(text[10_000:10_020])
	c.flip(file, text[10_000:10_020])

	resp := c.find(text[10_040:10_080], nil)
	cov := resp.Coverage
	if cov.Complete || cov.Failed != 1 || cov.Uncovered[0].Reason != searchv1.UncoveredReason_UNCOVERED_REASON_CORRUPT || cov.Uncovered[0].Repos[0] != "host/one" {
		t.Fatalf("coverage %v", cov)
	}
	if m := cov.Uncovered[0].Message; !strings.Contains(m, "damaged") || strings.Contains(m, "/") || !strings.Contains(m, "trace id") {
		t.Errorf("the message does not say where the cause is, or has a path: %s", m)
	}
	if text := logs.String(); !strings.Contains(text, filepath.Base(file)) {
		t.Errorf("the log does not name the file")
	}
	if resp = c.find("other", nil); len(resp.Files) != 1 {
		t.Errorf("the sound shard gives %v", paths(resp))
	}
	c.eventually("the shard is back", func() bool {
		resp := c.find(text[10_040:10_080], nil)
		return resp.Coverage.Complete && len(resp.Files) == 1
	})
	aside, err := os.ReadDir(filepath.Join(c.cache(0), "quarantine"))
	if err != nil || len(aside) != 1 {
		t.Errorf("put aside: %v, %v", aside, err)
	}
}

// cachedFile waits for the shard file with this text in the cache.
func (c *cluster) cachedFile(text string) (name string) {
	c.t.Helper()
	c.eventually("the shard is in the cache", func() bool {
		files, err := filepath.Glob(filepath.Join(c.cache(0), "*.trawl"))
		c.must(err)
		for _, name = range files {
			if content, err := os.ReadFile(name); err == nil && bytes.Contains(content, []byte(text)) {
				return true
			}
		}
		return false
	})
	return name
}

func (c *cluster) flip(file, text string) {
	c.t.Helper()
	content, err := os.ReadFile(file)
	c.must(err)
	at := int64(bytes.Index(content, []byte(text)))
	f, err := os.OpenFile(file, os.O_WRONLY, 0)
	c.must(err)
	_, err = f.WriteAt([]byte{content[at] ^ 1}, at)
	c.must(err)
	c.must(f.Close())
}

// TestDelete: once a delete is acknowledged no linearizable query returns the repo.
func TestDelete(t *testing.T) {
	c := startCluster(t, 1, 1)
	for range 10 {
		c.publish("host/gone", map[string]string{"a": "needle\n"})
		if resp := c.find("needle", &searchv1.SearchOptions{RequireComplete: true}); len(resp.Files) != 1 {
			t.Fatalf("before: %v", paths(resp))
		}
		deleted, err := c.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: "host/gone"})
		c.must(err)
		resp := c.find("needle", nil)
		if len(resp.Files) != 0 || resp.Coverage.Requested != 0 {
			t.Fatalf("after: %v, %v", paths(resp), resp.Coverage)
		}
		least := &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: deleted.RevisionToken}}
		if resp = c.find("needle", &searchv1.SearchOptions{Consistency: least}); len(resp.Files) != 0 {
			t.Fatalf("with the token of the delete: %v", paths(resp))
		}
	}
	if _, err := c.ingest.DeleteRepo(t.Context(), &ingestv1.DeleteRepoRequest{Name: "host/gone"}); status.Code(err) != codes.NotFound {
		t.Errorf("deleted again: %v", err)
	}
}

// TestRollingRestart: at replication 2, no answer is incomplete while searchers restart one
// after the other.
func TestRollingRestart(t *testing.T) {
	c := startCluster(t, 1, 2)
	stops := []func(){nil, c.startSearcher(1), c.startSearcher(2)}
	stop := c.keepFinding(6)
	for i := 1; i < len(stops); i++ { // s0 shares its telemetry with the router
		stops[i]()
		stops[i] = c.startSearcher(i)
	}
	stop()
}

// keepFinding publishes some repos and asks for all of them, again and again until stop: each
// answer must be complete.
func (c *cluster) keepFinding(repos int) (stop func()) {
	c.t.Helper()
	for i := range repos {
		c.publish(fmt.Sprint("host/r", i), map[string]string{"a": fmt.Sprintf("needle %d\n", i)})
	}
	c.find("needle", &searchv1.SearchOptions{RequireComplete: true})
	done := make(chan struct{})
	var queries sync.WaitGroup
	queries.Go(func() {
		for n := 0; ; n++ {
			select {
			case <-done:
				c.t.Logf("%d complete answers", n)
				return
			default:
			}
			resp, err := c.search.Search(c.t.Context(), &searchv1.SearchRequest{Query: "needle"})
			if err != nil || !resp.Coverage.Complete || len(resp.Files) != repos {
				c.t.Errorf("%v, %v", resp.GetCoverage(), err)
				return
			}
		}
	})
	return func() { close(done); queries.Wait() }
}

// TestConsistency: an answer reflects the requested consistency, and a token of a future
// revision is refused.
func TestConsistency(t *testing.T) {
	c := startCluster(t, 1, 1)
	revision := c.publish("host/one", map[string]string{"a": "needle\n"})
	for name, level := range map[string]*searchv1.Consistency{
		"linearizable": {Level: &searchv1.Consistency_Linearizable{Linearizable: true}},
		"at least":     {Level: &searchv1.Consistency_AtLeast{AtLeast: catalog.EncodeToken(revision)}},
		"bounded by 0": {Level: &searchv1.Consistency_Bounded{Bounded: durationpb.New(0)}},
	} {
		resp := c.find("needle", &searchv1.SearchOptions{Consistency: level, RequireComplete: true})
		if len(resp.Files) != 1 {
			t.Errorf("%s: %v", name, paths(resp))
		}
		if got, err := catalog.DecodeToken(resp.RevisionToken); err != nil || got < revision {
			t.Errorf("%s: revision %d, %v", name, got, err)
		}
	}
	for name, cs := range map[string]struct {
		token []byte
		want  codes.Code
	}{"of the future": {catalog.EncodeToken(1 << 40), codes.FailedPrecondition}, "that is none": {[]byte("x"), codes.InvalidArgument}} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		_, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: "needle", Options: &searchv1.SearchOptions{
			Consistency: &searchv1.Consistency{Level: &searchv1.Consistency_AtLeast{AtLeast: cs.token}},
		}})
		cancel()
		if status.Code(err) != cs.want {
			t.Errorf("a token %s: %v", name, err)
		}
	}
}
