package access_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const staleness = 10 * time.Second

func quiet() *slog.Logger { return slog.New(slog.DiscardHandler) }

func everything() access.Spec {
	return access.Spec{Name: "test", Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeSearch}}
}

// world is a directory on a model of etcd, whose link and watch can be cut.
type world struct {
	t         *testing.T
	etcd      *etcdtest.Server
	store     *access.Store // on a link of its own
	directory *access.Directory
	away      atomic.Bool // etcd answers nothing
	deaf      atomic.Bool // watches bring nothing, reads work
	unlisted  atomic.Bool // lists fail, other reads work
	// slow is how long a read takes to reach etcd, and its answer to come back.
	slow atomic.Int64
	// grace is the directory's.
	grace time.Duration
}

var errAway = errors.New("away")

// deafWatcher holds back the events of a watch while it is deaf.
type deafWatcher struct {
	clientv3.Watcher

	deaf *atomic.Bool
}

func (w deafWatcher) Watch(ctx context.Context, key string, opts ...clientv3.OpOption) clientv3.WatchChan {
	out := make(chan clientv3.WatchResponse)
	go func() {
		defer close(out)
		for resp := range w.Watcher.Watch(ctx, key, opts...) {
			for w.deaf.Load() && ctx.Err() == nil {
				time.Sleep(time.Second)
			}
			select {
			case out <- resp:
			case <-ctx.Done():
			}
		}
	}()
	return out
}

// unlistable is a KV whose lists fail while broken.
type unlistable struct {
	clientv3.KV

	broken *atomic.Bool
}

func (u unlistable) Get(ctx context.Context, key string, opts ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if op := clientv3.OpGet(key, opts...); u.broken.Load() && len(op.RangeBytes()) > 0 {
		return nil, errAway
	}
	return u.KV.Get(ctx, key, opts...)
}

func inWorld(t *testing.T, f func(w *world)) {
	t.Helper()
	inWorldWith(t, 0, f)
}

// inWorldWith is inWorld with a directory that has a grace.
func inWorldWith(t *testing.T, grace time.Duration, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{t: t, grace: grace}
		w.etcd = etcdtest.New()
		w.store = access.NewStore(w.etcd.Client(nil), "")
		client := w.etcd.Client(func(ctx context.Context) error {
			if w.away.Load() {
				return errAway
			}
			if slow := time.Duration(w.slow.Load()); slow > 0 {
				time.Sleep(slow)
			}
			return ctx.Err()
		})
		client.Watcher = deafWatcher{client.Watcher, &w.deaf}
		client.KV = unlistable{client.KV, &w.unlisted}
		w.directory = access.NewDirectory(access.NewStore(client, ""), staleness, w.grace, quiet())
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.directory.Run(ctx) }()
		if err := w.directory.WaitCurrent(t.Context()); err != nil {
			t.Fatal(err)
		}
		f(w)
		cancel()
		<-done
	})
}

func (w *world) create(spec access.Spec) (access.Text, string) {
	w.t.Helper()
	text, record, err := w.store.Create(w.t.Context(), spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return text, record.Id
}

// want looks the token up.
func (w *world) want(what string, text access.Text, want error) {
	w.t.Helper()
	p, err := w.directory.Authenticate(w.t.Context(), text)
	if !errors.Is(err, want) || err == nil && p == nil {
		w.t.Errorf("%s: %v, want %v", what, err, want)
	}
	if err != nil && (p != nil || len(text) >= secretSize && strings.Contains(err.Error(), string(text))) {
		w.t.Errorf("%s: %v for %v", what, p, err)
	}
}

// secretSize is how many characters of a token are its secret.
const secretSize = 52

func TestTokensAreKnown(t *testing.T) {
	inWorld(t, func(w *world) {
		text, id := w.create(everything())
		other, _ := w.create(everything())
		brief := everything()
		brief.Lifetime = time.Minute
		expiring, _ := w.create(brief)
		synctest.Wait()
		head, secret := text[:len(text)-secretSize], text[len(text)-secretSize:]
		w.want("a token", text, nil)
		w.want("an id with the secret of another", head+other[len(other)-secretSize:], access.ErrUnknown)
		for i := range secret {
			for bit := range 8 {
				b := []byte(secret)
				b[i] ^= 1 << bit
				w.want("a secret with a bit turned", head+access.Text(b), access.ErrUnknown)
			}
		}
		w.want("an id nobody has", "trawl_aaaaaaaaaaaaa_"+secret, access.ErrUnknown)
		for _, bad := range []access.Text{"", "trawl_", "trawl__", head, secret, text + "a", text[1:], access.Text(strings.Repeat("a", 1<<20))} {
			w.want("no token", bad, access.ErrMalformed)
		}
		w.want("in its time", expiring, nil)
		time.Sleep(time.Minute)
		w.want("after its time", expiring, access.ErrExpired)
		w.want("without an end", text, nil)
		if err := w.store.Revoke(t.Context(), id); err != nil {
			t.Fatal(err)
		}
		synctest.Wait() // waits for the watch, not for time to pass
		w.want("revoked", text, access.ErrUnknown)
		w.want("another", other, nil)
		if err := w.store.Revoke(t.Context(), id); !errors.Is(err, access.ErrNoToken) {
			t.Errorf("revoked again: %v", err)
		}
	})
}

// TestSecretsAreKeptNowhere looks for the secret in the records of etcd and in lists.
func TestSecretsAreKeptNowhere(t *testing.T) {
	etcd := etcdtest.New()
	client := etcd.Client(nil)
	store := access.NewStore(client, "")
	seen := map[access.Text]bool{}
	for range 100 {
		text, _, err := store.Create(t.Context(), everything())
		if err != nil || seen[text] || len(text) < secretSize {
			t.Fatalf("token of %d bytes, %v", len(text), err)
		}
		seen[text] = true
	}
	stored, err := client.Get(t.Context(), "\x00", clientv3.WithFromKey())
	if err != nil || len(stored.Kvs) < 100 {
		t.Fatal(len(stored.Kvs), err)
	}
	listed, err := store.List(t.Context())
	if err != nil || len(listed) != 100 {
		t.Fatal(len(listed), err)
	}
	all := fmt.Sprintf("%s %v", stored.Kvs, listed)
	for text := range seen {
		if strings.Contains(all, string(text[len(text)-secretSize:])) {
			t.Fatal("a secret is stored")
		}
	}
}

// TestTokensAreNeverShown formats a token in every way.
func TestTokensAreNeverShown(t *testing.T) {
	const secret = "hunter2"
	held := struct {
		Text access.Text
		Any  any
	}{secret, access.Text(secret)}
	var out strings.Builder
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		fmt.Fprintf(&out, verb+verb, held.Text, &held.Text)
		fmt.Fprintf(&out, verb, held)
	}
	slog.New(slog.NewTextHandler(&out, nil)).Error("x", "text", held.Text, "held", held)
	slog.New(slog.NewJSONHandler(&out, nil)).Error("x", "text", held.Text, "held", held)
	if s := strings.ToLower(out.String()); strings.Contains(s, secret) || strings.Contains(s, fmt.Sprintf("%x", secret)) {
		t.Errorf("shown: %s", s)
	}
}

// TestRevocationIsBounded: whatever happens to the link to etcd, a revoked token
// works no longer than the staleness, and lookups work again when the link is back.
func TestRevocationIsBounded(t *testing.T) {
	for what, cut := range map[string]func(w *world, cut bool){
		"etcd is away":             func(w *world, cut bool) { w.away.Store(cut); w.deaf.Store(cut) },
		"the watch brings nothing": func(w *world, cut bool) { w.deaf.Store(cut) },
		// The revocation comes while the answer to an earlier read is on its way.
		"the watch brings nothing, and answers are late": func(w *world, cut bool) {
			w.deaf.Store(cut)
			if w.slow.Store(0); cut {
				w.slow.Store(int64(4 * time.Second))
				time.Sleep(7 * time.Second)
			}
		},
	} {
		t.Run(what, func(t *testing.T) {
			inWorld(t, func(w *world) {
				text, id := w.create(everything())
				other, _ := w.create(everything())
				time.Sleep(time.Minute)
				w.want("before", text, nil)
				cut(w, true)
				if err := w.store.Revoke(t.Context(), id); err != nil {
					t.Fatal(err)
				}
				time.Sleep(staleness)
				time.Sleep(time.Nanosecond)
				w.want("revoked longer ago than the staleness", text, access.ErrStale)
				w.want("another", other, access.ErrStale)
				cut(w, false)
				time.Sleep(staleness)
				w.want("after, revoked", text, access.ErrUnknown)
				w.want("after, another", other, nil)
			})
		})
	}
}

// TestShortOutages: callers do not notice an outage shorter than the staleness.
func TestShortOutages(t *testing.T) {
	inWorld(t, func(w *world) {
		text, _ := w.create(everything())
		time.Sleep(time.Minute)
		w.away.Store(true)
		time.Sleep(staleness / 2)
		w.want("in an outage of half the bound", text, nil)
		w.away.Store(false)
		for range 100 {
			time.Sleep(time.Second)
			w.want("after it", text, nil)
		}
	})
}

// TestBeforeAnythingIsKnown: a directory that has not read the tokens admits nobody.
func TestBeforeAnythingIsKnown(t *testing.T) {
	etcd := etcdtest.New()
	store := access.NewStore(etcd.Client(nil), "")
	text, _, err := store.Create(t.Context(), everything())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := access.NewDirectory(store, staleness, time.Hour, quiet()).Authenticate(t.Context(), text); !errors.Is(err, access.ErrStale) {
		t.Errorf("a directory that does not run: %v", err)
	}
}
