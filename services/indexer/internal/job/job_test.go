package job

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func newRepo(t *testing.T, steps func(string)) (*gitsourcetest.Repo, *env) {
	r := gitsourcetest.New(t)
	return r, newEnv(t, filepath.Dir(r.Dir), steps)
}

func TestPublish(t *testing.T) {
	r, e := newRepo(t, nil)
	commit := r.Files("main", "a.go", "package needle", "b.txt", "needle too", "bin", "needle\x00")
	r.Files("dev", "a.go", "package needle")
	d := e.want(r.Dir, "main", "dev")
	root := e.done(d)
	if got, want := e.found(root, "needle"), []string{"a.go@main,dev", "b.txt@main"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
	if got := e.found(root, "file:bin"); !slices.Equal(got, []string{"bin@main"}) {
		t.Errorf("by name found %v", got)
	}
	if root.GetGeneration() != 1 || root.GetEpoch() != d.Epoch || root.GetFence() == 0 || root.GetBranches()[0].GetCommit() != commit {
		t.Errorf("root %v", root)
	}
	if s := e.status(); s.GetState() != ingestv1.State_STATE_PUBLISHED || s.GetEpoch() != d.Epoch {
		t.Errorf("status %v", s)
	}
	if leased, err := e.Store.Leased(t.Context(), repoName); leased || err != nil {
		t.Errorf("still leased: %v, %v", leased, err)
	}
	shard := root.GetShards()[0]
	if len(root.GetShards()) != 1 || shard.GetDocuments() != 3 || shard.GetContentBytes() != 24 || !slices.Equal(shard.GetLanguages(), []string{"Go", "Text"}) {
		t.Errorf("shards %v", root.GetShards())
	}
	e.checkManifest(root, 1)

	// The same job again, as after a crash before the acknowledgement.
	puts := len(e.bucket.puts)
	if again := e.done(d); !proto.Equal(again, root) || len(e.bucket.puts) != puts {
		t.Errorf("a job that was done is done again: %v", again)
	}
}

func (e *env) checkManifest(root *catalogv1.Root, skipped uint64) {
	e.t.Helper()
	r, info, err := e.bucket.Get(e.t.Context(), root.GetManifestKey())
	if err != nil {
		e.t.Fatal(err)
	}
	defer r.Close()
	data := make([]byte, info.Size)
	if _, err := r.Read(data); err != nil {
		e.t.Fatal(err)
	}
	var m catalogv1.Manifest
	if err := proto.Unmarshal(data, &m); err != nil {
		e.t.Fatal(err)
	}
	want := proto.CloneOf(root)
	want.ManifestKey, want.ManifestDigest, want.Fence = "", nil, 0
	if m.GetDesired().GetName() != root.GetRepo() || m.GetDesired().GetEpoch() != root.GetEpoch() {
		e.t.Errorf("the manifest is of the request %v", m.GetDesired())
	}
	if !proto.Equal(m.GetRoot(), want) || m.GetSkippedDocuments() != skipped {
		e.t.Errorf("manifest %v, want root %v", &m, want)
	}
}

// TestBrokenBranch: a branch that names no commit is left out and named, as is a tag of a single file, and a request that finds it again
// publishes nothing new.
func TestBrokenBranch(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "text")
	done := func(built string) {
		t.Helper()
		root := e.done(e.want(r.Dir, "**", "refs/tags/*"))
		status, err := e.Store.RepoStatus(t.Context(), repoName)
		if err != nil || len(root.GetBranches()) != 1 || root.GetGeneration() != 1 || status.GetBuilt() != "full: first build"+built {
			t.Errorf("%s, %v: published %v", status.GetBuilt(), err, root)
		}
	}
	ref := filepath.Join(r.Git("rev-parse", "--absolute-git-dir"), "refs", "heads", "broken")
	testrun.Must(t, os.WriteFile(ref, []byte(strings.Repeat("1", 40)+"\n"), 0o600))
	const why = "; left out, as it names no commit of the repository: "
	for range 2 {
		done(why + `"broken"`)
	}
	testrun.Must(t, os.Remove(ref))
	done("")
	r.Git("tag", "file", "main:a")
	testrun.Must(t, os.WriteFile(ref, []byte(strings.Repeat("2", 40)+"\n"), 0o600))
	done(why + `"broken", "refs/tags/file"`)
}

func TestUpdate(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "old")
	first := e.done(e.want(r.Dir))

	// Nothing changed: only the epoch advances, nothing is built.
	puts := len(e.bucket.puts)
	second := e.done(e.want(r.Dir))
	if second.GetGeneration() != 1 || second.GetEpoch() != first.GetEpoch()+1 || len(e.bucket.puts) != puts {
		t.Errorf("after a request without change: %v", second)
	}
	want := &ingestv1.Freshness{Branch: "main", SeenCommit: first.GetBranches()[0].GetCommit(), IndexedCommit: first.GetBranches()[0].GetCommit(), SeenBy: ingestv1.SeenBy_SEEN_BY_REQUEST}
	status, err := e.Store.RepoStatus(t.Context(), repoName)
	got := status.GetFreshness()
	got.SeenAt, got.IndexedAt = nil, nil
	if err != nil || !proto.Equal(got, want) {
		t.Errorf("the status shows %v, %v", got, err)
	}
	if fresh, known := e.waited("new"), e.waited("known"); fresh != 1 || known != 1 {
		t.Errorf("counted are %d publications of a new repo and %d of a known one", fresh, known)
	}
	// The facts changed.
	third := e.done(e.wantWith(&catalogv1.Desired{Name: repoName, Url: r.Dir, Facts: &ingestv1.RepoFacts{Archived: true}}))
	if third.GetGeneration() != 2 || len(e.found(third, "archived:yes old")) != 1 {
		t.Errorf("after a change of facts: %v", third)
	}
	// The content changed.
	r.Files("main", "a", "new")
	fourth := e.done(e.want(r.Dir))
	if fourth.GetGeneration() != 3 || len(e.found(fourth, "new")) != 1 || len(e.found(fourth, "old")) != 0 {
		t.Errorf("after a change of content: %v", fourth)
	}
	// A shard is cut short in the bucket: it is built anew, though nothing changed.
	testrun.Must(t, e.bucket.Put(t.Context(), fourth.GetShards()[0].GetKey(), strings.NewReader("cut"), bucket.PutOptions{Size: 3}))
	fourth = e.done(e.want(r.Dir))
	if fourth.GetGeneration() != 4 || len(e.found(fourth, "new")) != 1 {
		t.Errorf("after a shard was cut short: %v", fourth)
	}
	// A shard is gone from the bucket: likewise.
	if err := e.bucket.Delete(t.Context(), fourth.GetShards()[0].GetKey()); err != nil {
		t.Fatal(err)
	}
	fourth = e.done(e.want(r.Dir))
	if fourth.GetGeneration() != 5 || len(e.found(fourth, "new")) != 1 {
		t.Errorf("after a loss of the bucket: %v", fourth)
	}
	// An old wake-up comes late.
	if late := e.done(&queue.Delivery{Job: queue.Job{Repo: repoName, Epoch: 1}, NumDelivered: 1}); !proto.Equal(late, fourth) {
		t.Errorf("a late job changed the root: %v", late)
	}
}

func TestSeveralShards(t *testing.T) {
	r, e := newRepo(t, nil)
	e.Build = smallShards
	var pairs, want []string
	for i := range 10 {
		pairs = append(pairs, fmt.Sprintf("f%d", i), fmt.Sprintf("needle %d %s", i, strings.Repeat("x", 60)))
		want = append(want, fmt.Sprintf("f%d@main", i))
	}
	r.Files("main", pairs...)
	root := e.done(e.want(r.Dir))
	if len(root.GetShards()) != 5 || !slices.Equal(e.found(root, "needle"), want) {
		t.Errorf("%d shards, found %v", len(root.GetShards()), e.found(root, "needle"))
	}
}

func TestRepoWithoutFiles(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Commit("main")
	if root := e.done(e.want(r.Dir)); len(root.GetShards()) != 1 || len(e.found(root, "x")) != 0 {
		t.Errorf("root %v", root)
	}
}

// TestFailures: each failure of a request has a reason in plain words.
func TestFailures(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	empty := gitsourcetest.New(t)
	_ = empty
	for _, c := range []struct {
		name, url string
		branches  []string
		words     string
	}{
		{"option", "--upload-pack=x", nil, "leading-dash"},
		{"scheme", "ftp://example.com/x", nil, "scheme"},
		{"private address", "https://127.0.0.1/x", nil, "private"},
		{"folder not allowed", empty.Dir, nil, "folder"},
		{"missing", filepath.Join(filepath.Dir(r.Dir), "none"), nil, "no such folder"},
		{"no repository", filepath.Dir(r.Dir), nil, "does not exist"},
		{"branch", r.Dir, []string{"other"}, `no branch "other"`},
		{"branch as option", r.Dir, []string{"-x"}, "dash"},
	} {
		d := e.want(c.url, c.branches...)
		err := e.Handle(t.Context(), d)
		if !queue.IsPermanent(err) {
			t.Errorf("%s: got %v, want a permanent failure", c.name, err)
		}
		s := e.status()
		if s.GetState() != ingestv1.State_STATE_FAILED || s.GetEpoch() != d.Epoch || !strings.Contains(s.GetReason(), c.words) {
			t.Errorf("%s: status %v, want failed with %q", c.name, s, c.words)
		}
	}
	// None of that affects the next request.
	if root := e.done(e.want(r.Dir)); root.GetGeneration() != 1 {
		t.Errorf("root %v", root)
	}
	e2 := newEnv(t, filepath.Dir(empty.Dir), nil)
	if err := e2.Handle(t.Context(), e2.want(empty.Dir)); !queue.IsPermanent(err) || !strings.Contains(e2.status().GetReason(), "empty") {
		t.Errorf("empty repository: %v, %v", err, e2.status())
	}
	if root := e2.root(); root.GetGeneration() != 1 {
		t.Errorf("a failure takes the earlier generation away: %v", root)
	}
}

func TestBucketAwayIsRetried(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	for i, broken := range []error{errors.New("bucket unreachable"), fmt.Errorf("write: %w", syscall.ENOSPC)} {
		e.bucket.fail = broken
		d.NumDelivered = i + 100 // however often
		err := e.Handle(t.Context(), d)
		if err == nil || queue.IsPermanent(err) {
			t.Errorf("got %v, want another try", err)
		}
		if s := e.status(); s.GetState() != ingestv1.State_STATE_QUEUED || !strings.Contains(s.GetReason(), "tried again") {
			t.Errorf("status %v", s)
		}
	}
	e.bucket.fail = nil
	if root := e.done(d); root.GetGeneration() != 1 || len(e.found(root, "1")) != 1 {
		t.Errorf("root %v", root)
	}
}

func TestUnreachableHostFailsInTheEnd(t *testing.T) {
	_, e := newRepo(t, nil)
	d := e.want("https://no-such-host.invalid/x")
	for attempt := 1; attempt <= e.Attempts; attempt++ {
		d.NumDelivered = attempt
		err := e.Handle(t.Context(), d)
		if err == nil || queue.IsPermanent(err) != (attempt == e.Attempts) {
			t.Errorf("attempt %d: %v", attempt, err)
		}
	}
	if s := e.status(); s.GetState() != ingestv1.State_STATE_FAILED || !strings.Contains(s.GetReason(), "cannot be reached") {
		t.Errorf("status %v", s)
	}
}

func TestJobTimeLimit(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	e.Timeout = 200 * time.Millisecond
	e.bucket.hold = func(ctx context.Context, _ string) { <-ctx.Done() }
	e.bucket.fail = context.DeadlineExceeded
	d := e.want(r.Dir)
	d.NumDelivered = e.Attempts
	if err := e.Handle(t.Context(), d); !queue.IsPermanent(err) || !strings.Contains(e.status().GetReason(), "time limit") {
		t.Errorf("got %v, status %v", err, e.status())
	}
}

func TestLeasedByAnother(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	lease, err := e.Store.AcquireLease(t.Context(), repoName, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Handle(t.Context(), d); err == nil || queue.IsPermanent(err) || !errors.Is(err, catalog.ErrLeased) {
		t.Errorf("got %v, want another try", err)
	}
	if len(e.bucket.puts) != 0 {
		t.Error("it worked without the lease")
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	e.done(d)
}

func TestDeleted(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	deleted := make(chan error, 1)
	e.bucket.hold = func(ctx context.Context, key string) {
		if strings.HasPrefix(key, "manifests/") {
			_, err := e.Store.DeleteRepo(context.WithoutCancel(ctx), repoName)
			deleted <- err
		}
	}
	err := e.Handle(t.Context(), d) // the lease is gone with the repo
	if err := <-deleted; err != nil {
		t.Fatal(err)
	}
	if queue.IsPermanent(err) || e.root() != nil {
		t.Errorf("got %v, root %v", err, e.root())
	}
	if err := e.Handle(t.Context(), d); err != nil {
		t.Errorf("the job of a deleted repo: %v", err)
	}
}

// TestLostLeaseStopsTheJob takes the lease away while a shard is uploaded.
func TestLostLeaseStopsTheJob(t *testing.T) {
	r, e := newRepo(t, nil)
	e.LeaseTTL = time.Second // the loss is noticed in a part of it
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	e.bucket.hold = func(ctx context.Context, _ string) {
		if _, err := servers.Client().Delete(context.WithoutCancel(ctx), "/"+t.Name()+"/leases/"+repoName); err != nil {
			t.Error(err)
		}
		<-ctx.Done() // the loss ends the job
	}
	e.bucket.fail = errors.New("cut off")
	if err := e.Handle(t.Context(), d); !errors.Is(err, catalog.ErrLeaseLost) || queue.IsPermanent(err) {
		t.Errorf("got %v, want the lost lease", err)
	}
	if e.root() != nil {
		t.Errorf("published without a lease: %v", e.root())
	}
	e.bucket.hold, e.bucket.fail, e.LeaseTTL = nil, nil, time.Minute
	e.done(d)
}

// TestConcurrentJobs gives one request to several workers at once.
func TestConcurrentJobs(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	var running sync.WaitGroup
	for range 4 {
		running.Go(func() {
			for e.Handle(t.Context(), d) != nil {
				time.Sleep(time.Millisecond)
			}
		})
	}
	running.Wait()
	if root := e.root(); root.GetGeneration() != 1 || len(e.bucket.keys("manifests/")) != 1 {
		t.Errorf("root %v, manifests %v", root, e.bucket.keys("manifests/"))
	}
}

// TestStoppedAtEveryStep ends a job before and after every operation on etcd and the bucket, as a
// crash would, and does it again. The result is one generation with nothing missing.
func TestStoppedAtEveryStep(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", "needle 1", "b", "needle 2")
	stoppedSomewhere := 0
	for step := 1; ; step++ {
		ctx, cancel := context.WithCancel(t.Context())
		var mu sync.Mutex
		counting, seen := false, 0
		var point string
		e := newEnv(t, filepath.Dir(r.Dir), func(p string) {
			mu.Lock()
			defer mu.Unlock()
			if !counting {
				return
			}
			if seen++; seen == step {
				point = p
				cancel()
			}
		})
		e.Build = smallShards
		name := fmt.Sprintf("%s/%d", repoName, step)
		d := e.wantWith(&catalogv1.Desired{Name: name, Url: r.Dir})
		mu.Lock()
		counting = true
		mu.Unlock()
		first := e.Handle(ctx, d)
		mu.Lock()
		counting = false
		finished := seen < step
		mu.Unlock()
		cancel()
		if queue.IsPermanent(first) {
			t.Errorf("step %d (%s): a stop counts as a failure: %v", step, point, first)
		}
		if first != nil {
			stoppedSomewhere++
		}
		if err := e.Handle(t.Context(), d); err != nil {
			t.Errorf("step %d (%s): second try: %v", step, point, err)
		}
		root, err := e.Store.GetRoot(t.Context(), name)
		if err != nil || root.Record.GetGeneration() != 1 || root.Record.GetEpoch() != d.Epoch || len(e.found(root.Record, "needle")) != 2 {
			t.Errorf("step %d (%s): root %v, %v", step, point, root.Record, err)
		}
		if finished {
			break
		}
	}
	t.Logf("%d jobs were stopped", stoppedSomewhere)
	if stoppedSomewhere < 5 {
		t.Errorf("only %d jobs were stopped: the steps are not seen", stoppedSomewhere)
	}
}

// TestNothingIsReadBeforeTheLease: the transaction that takes the lease reads the
// repo, so a job reads nothing before it, and a job that is published already reads
// nothing after it.
func TestNothingIsReadBeforeTheLease(t *testing.T) {
	var mu sync.Mutex
	var points []string
	r, e := newRepo(t, func(point string) {
		mu.Lock()
		defer mu.Unlock()
		points = append(points, point)
	})
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	for _, name := range []string{"published", "superseded"} {
		points = nil
		if err := e.Handle(t.Context(), d); err != nil {
			t.Fatal(err)
		}
		if len(points) == 0 || points[0] != "before txn" {
			t.Errorf("%s: the job starts with %v, want the lease's transaction", name, points)
		}
		if name == "superseded" && slices.Contains(points, "before get") {
			t.Errorf("a superseded job reads: %v", points)
		}
	}
}

// TestRequestsWaitForTheirTurn: a repo that is pushed to again and again is built only when its
// next build is due.
func TestRequestsWaitForTheirTurn(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	e.done(e.want(r.Dir))
	push := func(now time.Time, apart time.Duration) *queue.Delivery {
		epoch, _, err := e.Store.Refresh(t.Context(), repoName, nil, now, apart)
		if err != nil || epoch == 0 {
			t.Fatalf("epoch %d, %v", epoch, err)
		}
		return &queue.Delivery{Job: queue.Job{Repo: repoName, Epoch: epoch}, NumDelivered: 1}
	}
	e.done(push(time.Now(), time.Hour))
	d := push(time.Now(), time.Hour)
	if err := e.Handle(t.Context(), d); !errors.Is(err, errEarly) || queue.IsPermanent(err) {
		t.Errorf("got %v, want it to come again", err)
	}
	e.done(e.want(r.Dir))              // a request by hand does not wait
	ahead := time.Now().Add(time.Hour) // by the clock of a router
	e.done(push(ahead, time.Minute))
	e.done(push(ahead, time.Minute))
}
