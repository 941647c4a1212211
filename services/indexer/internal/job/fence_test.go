package job

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/queue"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// garbage reports for every object whether it is garbage.
func (e *env) garbage() map[string]bool {
	e.t.Helper()
	reach, err := e.Store.Reach(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	found := map[string]bool{}
	for _, key := range e.bucket.keys("") {
		found[key] = reach.Garbage(key)
	}
	return found
}

// TestZombieBetweenUploadAndTransaction pauses a worker that has uploaded all, until its lease has
// ended and another worker has published. Both upload the same bytes as different objects. Only the
// objects of the zombie are garbage.
func TestZombieBetweenUploadAndTransaction(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	d := e.want(r.Dir)
	var other *catalogv1.Root
	paused := false
	e.bucket.hold = func(ctx context.Context, key string) {
		if paused || !strings.HasPrefix(key, "manifests/") {
			return
		}
		paused = true
		if _, err := servers.Client().Delete(context.WithoutCancel(ctx), "/"+t.Name()+"/leases/"+repoName); err != nil {
			t.Error(err)
		}
		other = e.done(d)
	}
	if err := e.Handle(t.Context(), d); err == nil || queue.IsPermanent(err) {
		t.Errorf("a zombie's job ends with %v", err)
	}
	if root := e.root(); other == nil || !proto.Equal(root, other) || root.GetGeneration() != 1 {
		t.Fatalf("root %v, the other worker's was %v", root, other)
	}
	used := map[string]bool{other.GetManifestKey(): true, other.GetShards()[0].GetKey(): true}
	for key, garbage := range e.garbage() {
		if garbage == used[key] {
			t.Errorf("%s: garbage is %v, used is %v", key, garbage, used[key])
		}
	}
	if objects := len(e.garbage()); objects < 3 {
		t.Errorf("%d objects: the zombie uploaded nothing of its own", objects)
	}
}

// TestJobsInAnyOrder delivers the jobs of three requests in every order, each
// twice: the first one builds what is newest, and the others have nothing to do.
func TestJobsInAnyOrder(t *testing.T) {
	for _, order := range [][]uint64{{1, 2, 3}, {1, 3, 2}, {2, 1, 3}, {2, 3, 1}, {3, 1, 2}, {3, 2, 1}} {
		r := gitsourcetest.New(t)
		e := newEnv(t, filepath.Dir(r.Dir), nil)
		e.Store = catalog.New(etcdClient(t, nil), "/"+t.Name()+"/"+r.Dir+"/")
		for _, content := range []string{"one", "two", "three"} {
			r.Files("main", "a", content)
			e.want(r.Dir)
		}
		var first *catalogv1.Root
		for _, epoch := range append(order, order...) {
			root := e.done(&queue.Delivery{Job: queue.Job{Repo: repoName, Epoch: epoch}, NumDelivered: 1})
			if first == nil {
				first = root
			}
			if !proto.Equal(root, first) || root.GetGeneration() != 1 || root.GetEpoch() != 3 || len(e.found(root, "three")) != 1 {
				t.Errorf("order %v, at request %d: root %v", order, epoch, root)
			}
		}
	}
}

// TestSecondDelivery: a published request is done, whatever has changed since: later pushes have
// requests of their own. A repeated delivery, and one with the epoch of another etcd, leave the
// root and the bucket as they are.
func TestSecondDelivery(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "one")
	d := e.want(r.Dir)
	first, entry := e.done(d), e.rootRevision()
	puts := len(e.bucket.puts)
	r.Files("main", "a", "two")
	for _, epoch := range []uint64{d.Epoch, d.Epoch - 1, d.Epoch + 1, d.Epoch + 1000} {
		for delivery := range 2 {
			again := &queue.Delivery{Job: queue.Job{Repo: repoName, Epoch: epoch}, NumDelivered: 1 + delivery}
			if root := e.done(again); !proto.Equal(root, first) || e.rootRevision() != entry || len(e.bucket.puts) != puts {
				t.Errorf("request %d, which is done, delivered as %d: root %v at %d, was %v at %d; %d objects were put",
					d.Epoch, epoch, root, e.rootRevision(), first, entry, len(e.bucket.puts)-puts)
			}
		}
	}
	next := e.done(e.want(r.Dir))
	if next.GetGeneration() != 2 || len(e.found(next, "two")) != 1 {
		t.Errorf("the request of the push: root %v", next)
	}
}

func (e *env) rootRevision() int64 {
	e.t.Helper()
	root, err := e.Store.GetRoot(e.t.Context(), repoName)
	if err != nil {
		e.t.Fatal(err)
	}
	return root.Revision
}

// awayKV refuses transactions while etcd is away, as a client without connection.
type awayKV struct {
	clientv3.KV

	away *atomic.Bool
}

func (k awayKV) Txn(ctx context.Context) clientv3.Txn {
	if k.away.Load() {
		return refusingTxn{}
	}
	return k.KV.Txn(ctx)
}

type refusingTxn struct{}

func (t refusingTxn) If(...clientv3.Cmp) clientv3.Txn  { return t }
func (t refusingTxn) Then(...clientv3.Op) clientv3.Txn { return t }
func (t refusingTxn) Else(...clientv3.Op) clientv3.Txn { return t }
func (refusingTxn) Commit() (*clientv3.TxnResponse, error) {
	return nil, status.Error(codes.Unavailable, "etcdserver: no leader")
}

// TestEtcdAwayWhilePublishing: a finished build waits for etcd for as long as the job may run.
func TestEtcdAwayWhilePublishing(t *testing.T) {
	r, e := newRepo(t, nil)
	r.Files("main", "a", "1")
	var away atomic.Bool
	client := etcdClient(t, nil)
	client.KV = awayKV{client.KV, &away}
	e.Store = catalog.New(client, "/"+t.Name()+"/")
	built := make(chan struct{}, 1)
	e.bucket.hold = func(_ context.Context, key string) {
		if strings.HasPrefix(key, "manifests/") {
			away.Store(true)
			built <- struct{}{}
		}
	}
	d := e.want(r.Dir)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Handle(ctx, d) }()
	<-built
	select {
	case err := <-ended:
		t.Fatalf("it did not wait: %v", err)
	case <-time.After(500 * time.Millisecond): // several tries
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
	away.Store(false)
	if e.root() != nil {
		t.Error("published while etcd was away")
	}

	go func() { ended <- e.Handle(t.Context(), d) }()
	<-built
	puts := len(e.bucket.puts)
	time.Sleep(500 * time.Millisecond)
	away.Store(false)
	if err := <-ended; err != nil {
		t.Errorf("after etcd came back: %v", err)
	}
	if root := e.root(); root.GetGeneration() != 1 || len(e.bucket.puts) != puts {
		t.Errorf("root %v, %d objects were put again", root, len(e.bucket.puts)-puts)
	}
}
