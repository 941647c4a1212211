package discover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/restore"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

var errDead = errors.New("the process is dead")

// kept is a bucket with copies of sources, and an etcd.
type kept struct {
	t      *testing.T
	etcd   *etcdtest.Server
	truth  *catalog.Store
	bucket bucket.Bucket
}

func newKept(t *testing.T) *kept {
	k := &kept{t: t, bucket: bucket.NewMemory(1 << 24)}
	k.anew()
	return k
}

// anew starts with an empty etcd.
func (k *kept) anew() {
	k.etcd = etcdtest.New()
	k.truth = catalog.New(k.etcd.Client(nil), "")
}

// leader returns the copies of an indexer that has just become the leader. It calls step before and
// after each operation.
func (k *kept) leader(step func() error) *copies {
	metrics := NewMetrics(prometheus.NewRegistry())
	store := catalog.New(k.etcd.Client(func(context.Context) error { return step() }), "")
	return &copies{Discoverer: &Discoverer{
		Store: store, Bucket: onlyNew{k.bucket, k.t, step}, Metrics: metrics, Log: slog.New(slog.DiscardHandler),
	}}
}

// onlyNew is a bucket in which nothing may be replaced or deleted.
type onlyNew struct {
	bucket.Bucket

	t    *testing.T
	step func() error
}

func (b onlyNew) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	if !opts.IfAbsent || opts.SHA256 == [32]byte{} {
		b.t.Errorf("%s is put by %+v", key, opts)
	}
	if err := b.step(); err != nil {
		return err
	}
	return errors.Join(b.Bucket.Put(ctx, key, r, opts), b.step())
}

func (b onlyNew) Delete(_ context.Context, key string) error {
	b.t.Errorf("%s is deleted", key)
	return nil
}

func fine() error { return nil }

// pass is one pass of a leader.
func (k *kept) pass(c *copies) {
	if sources, err := c.sources(k.t.Context()); err == nil {
		c.keep(k.t.Context(), sources)
	}
}

func (k *kept) apply(specs ...*ingestv1.Source) {
	k.t.Helper()
	if _, err := k.truth.ApplySources(k.t.Context(), specs); err != nil {
		k.t.Fatal(err)
	}
}

// states are the sources of a catalog, each as owner and whether it is removed.
func states(t *testing.T, s *catalog.Store) map[string]string {
	t.Helper()
	all := map[string]string{}
	for source, err := range s.ListSources(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		all[source.Record.GetSpec().GetName()] = fmt.Sprint(source.Record.GetSpec().GetOwner(), " ", source.Record.GetRemoved())
	}
	return all
}

// restored returns what an empty etcd gets from the bucket.
func (k *kept) restored() map[string]string {
	k.t.Helper()
	store := catalog.New(etcdtest.New().Client(nil), "")
	r := restore.Restorer{Store: store, Bucket: k.bucket}
	err := r.Sources(k.t.Context(), func(s restore.Source) error {
		if s.Problem != "" || s.Kept {
			k.t.Errorf("restored %+v", s)
		}
		return nil
	})
	if err != nil {
		k.t.Fatal(err)
	}
	return states(k.t, store)
}

// objects are the contents of the bucket.
func (k *kept) objects() map[string]string {
	k.t.Helper()
	all := map[string]string{}
	for info, err := range k.bucket.List(k.t.Context(), "") {
		if err != nil {
			k.t.Fatal(err)
		}
		r, _, err := k.bucket.Get(k.t.Context(), info.Key)
		if err != nil {
			k.t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			k.t.Fatal(err)
		}
		all[info.Key] = string(data)
	}
	return all
}

func owned(name, owner string) *ingestv1.Source {
	s := spec(name)
	s.Owner = owner
	return s
}

// TestCopiesKeepTheirOrder has sources applied, removed and dropped while two leaders, each slow,
// failing at random and replaced by new ones, copy them. At every moment the bucket restores each
// source as it was when etcd last reported it stored, or a later state. In the end it restores all
// of them as they are.
func TestCopiesKeepTheirOrder(t *testing.T) {
	schedules, seed := testrun.Rounds(60, 300), testrun.Seed(t)
	dropped := 0
	for i := range uint64(schedules) {
		synctest.Test(t, func(t *testing.T) { dropped += orderly(t, seed+i) })
		if t.Failed() {
			t.Fatalf("repeat it by TRAWL_TEST_SEED=%d", seed+i)
		}
	}
	if t.Logf("%d sources were dropped", dropped); dropped < schedules/2 {
		t.Error("the schedules do not show what they are for")
	}
}

func orderly(t *testing.T, seed uint64) (dropped int) {
	k := newKept(t)
	chance := testrun.Locked(seed).IntN
	step := func() error {
		time.Sleep(time.Duration(chance(1 << chance(33)))) // up to 4 s, most much less
		if chance(25) == 0 {
			return errDead
		}
		return nil
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			for c := k.leader(step); ctx.Err() == nil; {
				time.Sleep(time.Duration(chance(int(4 * time.Second))))
				k.pass(c)
				if chance(5) == 0 {
					c = k.leader(step)
				}
			}
		})
	}
	a := &applier{kept: k, history: map[string][]string{}, floor: map[string]int{}}
	for i := range 15 {
		var specs []*ingestv1.Source
		for _, name := range []string{"a", "b", "c"} {
			if chance(3) > 0 {
				specs = append(specs, owned(name, fmt.Sprint(name, i/(1+chance(3)))))
			}
		}
		a.apply(specs...)
		time.Sleep(time.Duration(chance(int(12 * time.Second))))
		a.note()
		a.check()
		if chance(2) == 0 {
			dropped += a.drop()
		}
	}
	cancel()
	running.Wait()
	k.pass(k.leader(fine))
	a.note()
	a.check()
	got := k.restored()
	for name, state := range states(t, k.truth) {
		if got[name] != state {
			t.Errorf("at the end %s is %q, want %q", name, got[name], state)
		}
	}
	return dropped
}

// applier is the only one that changes sources, and remembers their history.
type applier struct {
	*kept

	history map[string][]string
	floor   map[string]int // the oldest state that the bucket may have, by its place in history
}

func (a *applier) apply(specs ...*ingestv1.Source) {
	a.kept.apply(specs...)
	for name, state := range states(a.t, a.truth) {
		if h := a.history[name]; len(h) == 0 || h[len(h)-1] != state {
			a.history[name] = append(h, state)
		}
	}
}

// note raises the floor of the sources that etcd reports as stored.
func (a *applier) note() {
	for source, err := range a.truth.ListSources(a.t.Context()) {
		if err != nil {
			a.t.Fatal(err)
		}
		name := source.Record.GetSpec().GetName()
		stored, err := a.truth.IsStored(a.t.Context(), source)
		if err != nil {
			a.t.Fatal(err)
		}
		if stored {
			a.floor[name] = len(a.history[name])
		}
	}
}

// drop drops removed sources where etcd permits it.
func (a *applier) drop() (dropped int) {
	for source, err := range a.truth.ListSources(a.t.Context()) {
		if err != nil {
			a.t.Fatal(err)
		}
		if !source.Record.GetRemoved() {
			continue
		}
		switch err := a.truth.DropSource(a.t.Context(), source); {
		case err == nil:
			dropped++
			name := source.Record.GetSpec().GetName()
			a.floor[name] = len(a.history[name])
		case !errors.Is(err, catalog.ErrNotStored):
			a.t.Error(err)
		}
	}
	a.check()
	return dropped
}

func (a *applier) check() {
	a.t.Helper()
	got := a.restored()
	for name, h := range a.history {
		at := 0 // nothing
		for i, state := range h {
			if got[name] == state {
				at = i + 1
			}
		}
		if at < a.floor[name] || at == 0 && got[name] != "" {
			a.t.Errorf("%s comes back as %q, of %q, want that from %d on", name, got[name], h, a.floor[name])
		}
	}
}

// TestEmptyEtcdBesideBucket: an etcd that lost everything changes nothing in the bucket, however
// long a leader runs on it. Sources applied to it are copied into new objects, and win.
func TestEmptyEtcdBesideBucket(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t)
		for i := range 20 {
			k.apply(owned("a", fmt.Sprint("first ", i)), owned("b", "b"), owned("gone", "gone"))
			k.pass(k.leader(fine))
		}
		k.apply(owned("a", "second"), owned("b", "b"))
		k.pass(k.leader(fine))
		before := k.objects()
		if len(before) != 24 {
			t.Fatalf("%d objects: %q", len(before), slices.Sorted(maps.Keys(before)))
		}
		k.anew()
		c := k.leader(fine)
		for range 3 {
			k.pass(c)
			time.Sleep(compareEvery)
		}
		if !maps.Equal(k.objects(), before) {
			t.Error("an empty etcd has changed the bucket")
		}
		k.apply(owned("a", "third"))
		k.pass(c)
		after := k.objects()
		if len(after) != len(before)+1 {
			t.Errorf("%d objects more", len(after)-len(before))
		}
		for key, data := range before {
			if after[key] != data {
				t.Errorf("%s has changed", key)
			}
		}
		if got, want := k.restored(), map[string]string{"a": "third false", "b": "b false", "gone": "gone true"}; !maps.Equal(got, want) {
			t.Errorf("restored are %q, want %q", got, want)
		}
	})
}

// TestCopiesHeal: copies that the bucket lost are made again within the hour, and failed ones as
// soon as the bucket works.
func TestCopiesHeal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t)
		var away error
		c := k.leader(func() error { return away })
		k.apply(owned("a", "a"), owned("b", "b"))
		sources, err := c.sources(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		away = errDead
		if c.keep(t.Context(), sources); len(k.objects()) != 0 || gauge(t, c.Metrics.unstored) != 2 {
			t.Errorf("%v sources are reported as not stored", gauge(t, c.Metrics.unstored))
		}
		away = nil
		k.pass(c)
		want := k.objects()
		if len(want) != 2 || gauge(t, c.Metrics.unstored) != 0 {
			t.Errorf("%q, %v unstored", want, gauge(t, c.Metrics.unstored))
		}
		k.bucket = bucket.NewMemory(1 << 20)
		c.Bucket = onlyNew{k.bucket, t, fine}
		k.pass(c)
		time.Sleep(compareEvery)
		if k.pass(c); !maps.Equal(k.objects(), want) {
			t.Errorf("made again are %q, want %q", k.objects(), want)
		}
	})
}

// answered is a bucket whose client repeats each upload, and so finds its own object there.
type answered struct{ bucket.Bucket }

func (b answered) Put(ctx context.Context, key string, r io.Reader, opts bucket.PutOptions) error {
	return errors.Join(b.Bucket.Put(ctx, key, r, opts), bucket.ErrExists)
}

// TestCopyIsThere: a copy from an earlier attempt counts as stored.
func TestCopyIsThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t)
		k.apply(owned("a", "a"))
		c := k.leader(fine)
		c.Bucket = answered{k.bucket}
		k.pass(c)
		source, err := k.truth.GetSource(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		if stored, err := k.truth.IsStored(t.Context(), source); err != nil || !stored {
			t.Errorf("stored: %t, %v", stored, err)
		}
	})
}

// TestNoSecretsInCopies: of credentials, a copy holds only the place where they are kept.
func TestNoSecretsInCopies(t *testing.T) {
	t.Setenv("TRAWL_SECRET_A", "hunter2")
	synctest.Test(t, func(t *testing.T) {
		k := newKept(t)
		s := owned("a", "a")
		s.Token = &ingestv1.SecretRef{Env: "TRAWL_SECRET_A"}
		k.apply(s)
		k.pass(k.leader(fine))
		for key, data := range k.objects() {
			if strings.Contains(data, "hunter2") || !strings.Contains(data, "TRAWL_SECRET_A") {
				t.Errorf("%s: %q", key, data)
			}
		}
	})
}
