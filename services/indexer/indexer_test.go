package indexer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/owner"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// role is a running indexer on embedded servers.
type role struct {
	t       *testing.T
	servers *embedded.Embedded
	store   *catalog.Store
	queue   *queue.Queue
	bucket  *brokenBucket
	config  Config
	indexer *Indexer
}

// brokenBucket fails while broken is set.
type brokenBucket struct {
	bucket.Bucket
	broken atomic.Bool
}

var errBroken = errors.New("bucket is away")

func (b *brokenBucket) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	if b.broken.Load() {
		return errBroken
	}
	return b.Bucket.Put(ctx, key, r, opts)
}

func (b *brokenBucket) List(ctx context.Context, prefix string) iter.Seq2[bucket.Info, error] {
	if b.broken.Load() {
		return func(yield func(bucket.Info, error) bool) { yield(bucket.Info{}, errBroken) }
	}
	return b.Bucket.List(ctx, prefix)
}

func newRole(t *testing.T, folders ...string) *role {
	t.Helper()
	servers, err := embedded.Start(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    t.TempDir(), Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { servers.Close() })
	q, err := queue.New(servers.Conn(), queue.Config{
		AckWait: time.Second, RetryMin: 10 * time.Millisecond, RetryMax: 50 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &role{
		t: t, servers: servers, store: catalog.New(servers.Client(), ""), queue: q,
		bucket: &brokenBucket{Bucket: bucket.NewMemory(1 << 30)},
	}
	r.config.SetDefaults()
	r.config.GRPC, r.config.HTTP = "127.0.0.1:0", "127.0.0.1:0"
	r.config.DrainDelay = 0
	t.Chdir(t.TempDir())
	r.config.CacheDir = "cache" // git runs in another folder than this process
	r.config.Source.Folders = folders
	r.config.ReconcileEvery = time.Second
	return r
}

// run starts the indexer; the returned function stops it.
func (r *role) run() (stop func()) {
	r.t.Helper()
	tel, _ := telemetrytest.New(r.t)
	var err error
	r.indexer, err = New(r.config, Deps{Etcd: r.servers.Client(), Queue: r.queue, Bucket: r.bucket, Telemetry: tel})
	if err != nil {
		r.t.Fatal(err)
	}
	if err := r.indexer.Listen(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- r.indexer.Run(ctx) }()
	stopped := false
	stop = func() {
		if stopped {
			return
		}
		stopped = true
		cancel()
		if err := <-done; err != nil {
			r.t.Errorf("run ended: %v", err)
		}
	}
	r.t.Cleanup(stop)
	return stop
}

// put makes a repo desired, and wakes an indexer if wake is set.
func (r *role) put(name, url string, wake bool) uint64 {
	r.t.Helper()
	epoch, _, err := r.store.PutDesired(r.t.Context(), &catalogv1.Desired{Name: name, Url: url})
	if err != nil {
		r.t.Fatal(err)
	}
	if wake {
		if err := r.queue.Publish(r.t.Context(), queue.Job{Repo: name, Epoch: epoch}); err != nil {
			r.t.Fatal(err)
		}
	}
	return epoch
}

// wait waits until a repo is in a state and returns its status.
func (r *role) wait(name string, epoch uint64, state ingestv1.State) *ingestv1.RepoStatus {
	r.t.Helper()
	ctx, cancel := context.WithTimeout(r.t.Context(), testrun.Patience)
	defer cancel()
	var last *ingestv1.RepoStatus
	for status, err := range r.store.WatchRepo(ctx, name) {
		if err != nil {
			r.t.Fatalf("%s: %v; last %v", name, err, last)
		}
		if last = status; status.GetState() == state && status.GetEpoch() >= epoch {
			return status
		}
	}
	r.t.Fatalf("%s: last %v, want %v", name, last, state)
	return nil
}

// TestBadReposStopNothing indexes good and bad repos at the same time.
func TestBadReposStopNothing(t *testing.T) {
	good, empty, bomb := gitsourcetest.New(t), gitsourcetest.New(t), gitsourcetest.New(t)
	good.Files("main", "a", "1")
	bomb.CommitPackBomb(300 << 20)
	r := newRole(t, filepath.Dir(good.Dir), filepath.Dir(empty.Dir), filepath.Dir(bomb.Dir))
	r.config.Source.Memory = 128 * config.MiB
	r.run()
	bad := map[string]string{
		"bomb": bomb.Dir, "empty": empty.Dir, "missing": good.Dir + "-none", "scheme": "ext::sh -c x", "private": "https://127.0.0.1/x",
	}
	for name, url := range bad {
		r.put(name, url, true)
	}
	for i := range 3 {
		r.put(fmt.Sprintf("good/%d", i), good.Dir, true)
	}
	for name := range bad {
		s := r.wait(name, 1, ingestv1.State_STATE_FAILED)
		if s.GetReason() == "" || s.GetGeneration() != 0 {
			t.Errorf("%s: %v", name, s)
		}
		if limit := "source.git-memory"; name == "bomb" && !strings.Contains(s.GetReason(), limit) {
			t.Errorf("%s: %v does not name %s", name, s, limit)
		}
	}
	for i := range 3 {
		r.wait(fmt.Sprintf("good/%d", i), 1, ingestv1.State_STATE_PUBLISHED)
	}
	r.waitLetters(len(bad))

	// A repo that is repaired loses its dead letter.
	empty.Files("main", "a", "1")
	r.wait("empty", r.put("empty", empty.Dir, true), ingestv1.State_STATE_PUBLISHED)
	r.waitLetters(len(bad) - 1)
}

// waitLetters waits for the number of dead letters.
func (r *role) waitLetters(want int) {
	r.t.Helper()
	testrun.Until(r.t, fmt.Sprint(want, " dead letters"), func() bool {
		n := 0
		for letter, err := range r.queue.DeadLetters(r.t.Context(), 0) {
			if err != nil || letter.Reason == "" {
				r.t.Fatalf("%+v: %v", letter, err)
			}
			n++
		}
		return n == want
	})
}

// TestLostWakeUp puts a request into etcd alone, as if NATS had lost its data.
func TestLostWakeUp(t *testing.T) {
	repo := gitsourcetest.New(t)
	repo.Files("main", "a", "1")
	r := newRole(t, filepath.Dir(repo.Dir))
	r.run()
	r.wait("x/y", r.put("x/y", repo.Dir, false), ingestv1.State_STATE_PUBLISHED)
}

// TestDeletedRepoLeavesNothing: a running indexer collects what nobody needs.
func TestDeletedRepoLeavesNothing(t *testing.T) {
	repo := gitsourcetest.New(t)
	repo.Files("main", "a", "1")
	r := newRole(t, filepath.Dir(repo.Dir))
	r.config.GCEvery, r.config.GC.Hold = time.Second, time.Second
	r.run()
	for _, name := range []string{"stays", "goes"} {
		r.wait(name, r.put(name, repo.Dir, true), ingestv1.State_STATE_PUBLISHED)
	}
	if _, err := r.store.DeleteRepo(t.Context(), "goes"); err != nil {
		t.Fatal(err)
	}
	root, err := r.store.GetRoot(t.Context(), "stays")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{root.Record.GetManifestKey(), root.Record.GetShards()[0].GetKey()}
	testrun.Eventually(t, "nothing else is left", func(ctx context.Context) error {
		var left []string
		for info, err := range r.bucket.List(ctx, "") {
			if err != nil {
				t.Fatal(err)
			}
			if info.Key != owner.Key {
				left = append(left, info.Key)
			}
		}
		if !slices.Equal(left, want) {
			return fmt.Errorf("left are %q, want %q", left, want)
		}
		return nil
	})
}

// TestBucketAway: while the bucket is away readiness reports it. Nothing is lost, and work
// continues afterwards.
func TestBucketAway(t *testing.T) {
	repo := gitsourcetest.New(t)
	repo.Files("main", "a", "1")
	r := newRole(t, filepath.Dir(repo.Dir))
	r.bucket.broken.Store(true)
	r.run()
	r.waitReady("bucket is away")
	epoch := r.put("x/y", repo.Dir, true)
	r.wait("x/y", epoch, ingestv1.State_STATE_QUEUED)
	r.bucket.broken.Store(false)
	r.waitReady("ready")
	r.wait("x/y", epoch, ingestv1.State_STATE_PUBLISHED)
}

// waitReady waits until /readyz says some words.
func (r *role) waitReady(words string) {
	r.t.Helper()
	testrun.Eventually(r.t, "/readyz says "+words, func(context.Context) error {
		resp, err := http.Get("http://" + r.indexer.HTTPAddr().String() + "/readyz")
		if err != nil {
			return err
		}
		defer http.DefaultClient.CloseIdleConnections()
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err == nil && !strings.Contains(string(body), words) {
			err = fmt.Errorf("it says %s", body)
		}
		return err
	})
}

// TestStopAndStart stops an indexer in the middle of its work; the next one, on the same folder,
// finishes it.
func TestStopAndStart(t *testing.T) {
	repo := gitsourcetest.New(t)
	repo.Files("main", "a", "1")
	r := newRole(t, filepath.Dir(repo.Dir))
	stop := r.run()
	var epochs []uint64
	for i := range 10 {
		epochs = append(epochs, r.put(fmt.Sprintf("r/%d", i), repo.Dir, true))
	}
	r.wait("r/0", epochs[0], ingestv1.State_STATE_PUBLISHED)
	stop()
	r.run()
	for i, epoch := range epochs {
		if s := r.wait(fmt.Sprintf("r/%d", i), epoch, ingestv1.State_STATE_PUBLISHED); s.GetGeneration() != 1 {
			t.Errorf("r/%d: %v", i, s)
		}
	}
}

// TestCacheFolderInUse: a second indexer on the same folder waits, and says why.
func TestCacheFolderInUse(t *testing.T) {
	repo := gitsourcetest.New(t)
	repo.Files("main", "a", "1")
	r := newRole(t, filepath.Dir(repo.Dir))
	stop := r.run()
	r.waitReady("ready")
	first := r.indexer
	r.run()
	r.waitReady("in use by another process")
	if first == r.indexer {
		t.Fatal("the second indexer is the first")
	}
	stop()
	r.waitReady("ready")
}

func TestConfig(t *testing.T) {
	var c Config
	c.SetDefaults()
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
	c.Workers, c.MaxFiles, c.Source.Schemes = 0, 0, []string{"ext"}
	err := c.Validate()
	for _, key := range []string{"workers", "max-files", "source.schemes"} {
		if err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s is not complained about: %v", key, err)
		}
	}
}
