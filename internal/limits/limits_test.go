package limits_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/limits"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestNames: every limit has a name that is read back, for all and, if it is one of callers, for a single token. Others are refused with
// the nearest.
func TestNames(t *testing.T) {
	for _, l := range limits.All() {
		for _, key := range []limits.Key{{Name: l.Name}, {Token: "ci.east", Name: l.Name}} {
			got, of, err := limits.ParseKey(key.String())
			if want := key.Token == "" || l.OfCallers; (err == nil) != want || want && (got != key || of.Name != l.Name) {
				t.Errorf("%s: %v, %v", key, got, err)
			}
		}
		if l.Describe() == "" {
			t.Errorf("%s bounds nothing", l.Name)
		}
	}
	for name, want := range map[string]string{
		"caller-call":           "the nearest: caller-calls",
		"compact.delta":         "compact.deltas",
		"":                      "these are: caller-calls, caller-processors, caller-share, compact.deltas",
		"foo":                   "these are: caller-calls",
		"tokens.ci.foo":         "these are: caller-calls, caller-processors, caller-share, repos-per-minute",
		"tokens.":               "tokens.TOKEN.NAME",
		"tokens.ci":             "tokens.TOKEN.NAME",
		"tokens.caller-calls":   "tokens.TOKEN.NAME",
		"tokens.ci.":            "limit of a token",
		"tokens..caller-calls":  "tokens.TOKEN.NAME",
		"tokens.ci.callercalls": "caller-calls",
	} {
		if _, _, err := limits.ParseKey(name); !errors.Is(err, limits.ErrUnknown) || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", name, err, want)
		}
	}
}

// world is a process that follows the limits of a model of etcd.
type world struct {
	etcd  *etcdtest.Server
	store *limits.Store // on a link of its own
	live  *limits.Live
	log   *bytes.Buffer
	away  atomic.Bool // etcd answers the process nothing
}

func inWorld(t *testing.T, f func(t *testing.T, w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{etcd: etcdtest.New(), log: &bytes.Buffer{}}
		w.store = limits.NewStore(w.etcd.Client(nil), "")
		client := w.etcd.Client(func(ctx context.Context) error {
			if w.away.Load() {
				return errors.New("away")
			}
			return ctx.Err()
		})
		w.live = limits.NewLive(limits.NewStore(client, ""), slog.New(slog.NewTextHandler(w.log, nil)))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); w.live.Run(ctx) }()
		synctest.Wait()
		f(t, w)
		cancel()
		<-done
	})
}

func (w *world) set(t *testing.T, key limits.Key, value string) (before string) {
	t.Helper()
	before, err := w.store.Set(t.Context(), key, value, "ops")
	if err != nil {
		t.Fatal(err)
	}
	synctest.Wait()
	return before
}

// TestLimitsOverrideSettings: a change arrives at once; a limit of a token overrides that of all, and without any the setting is in force.
func TestLimitsOverrideSettings(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		all, own := limits.Key{Name: limits.CallerCalls}, limits.Key{Token: "a", Name: limits.CallerCalls}
		want := func(what string, a, b int) {
			t.Helper()
			if got := w.live.Whole(limits.CallerCalls, "a", 250); got != a {
				t.Errorf("%s: a has %d, want %d", what, got, a)
			}
			if got := w.live.Whole(limits.CallerCalls, "b", 250); got != b {
				t.Errorf("%s: b has %d, want %d", what, got, b)
			}
		}
		want("nothing set", 250, 250)
		changed := w.live.Changed()
		if before := w.set(t, all, "300"); before != "" {
			t.Errorf("before the first: %q", before)
		}
		select {
		case <-changed:
		default:
			t.Error("a change is not announced")
		}
		want("all", 300, 300)
		w.set(t, own, "7")
		want("own", 7, 300)
		if before := w.set(t, all, "400"); before != "300" {
			t.Errorf("before the second: %q", before)
		}
		want("all again", 7, 400)
		if before, err := w.store.Unset(t.Context(), all); before != "400" || err != nil {
			t.Errorf("unset: %q, %v", before, err)
		}
		synctest.Wait()
		want("own only", 7, 250)
		set, err := w.store.List(t.Context())
		if record := set[own.String()]; err != nil || len(set) != 1 || record.Value != "7" || record.By != "ops" || record.At.IsZero() {
			t.Errorf("listed %v, %v", set, err)
		}
		w.set(t, limits.Key{Name: limits.CompactReclaim}, "36h")
		if got := w.live.Duration(limits.CompactReclaim, time.Hour); got != 36*time.Hour {
			t.Errorf("reclaim %v", got)
		}
		w.set(t, limits.Key{Name: limits.CallerShare}, "0.25")
		if got := w.live.Number(limits.CallerShare, "a", 0.1); got != 0.25 {
			t.Errorf("share %v", got)
		}
		var none *limits.Live
		if none.Whole(limits.CallerCalls, "a", 5) != 5 || none.Changed() != nil {
			t.Error("no limits at all")
		}
	})
}

// TestBadValuesAreRefused: what a limit does not take is refused when it is set, with what it takes, and nothing changes.
func TestBadValuesAreRefused(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for _, c := range []struct {
			name  limits.Name
			value string
			want  string
		}{
			{limits.CallerCalls, "0", "from 1 to 1048576"},
			{limits.CallerCalls, "many", "a whole number"},
			{limits.CallerCalls, "1.5", "a whole number"},
			{limits.CallerCalls, "99999999999999999999", "a whole number"},
			{limits.CallerShare, "1.01", "from 0.01 to 1"},
			{limits.CallerShare, "NaN", "a number"},
			{limits.CallerProcessors, "-1", "a number"},
			{limits.CompactReclaim, "24", "24h"},
			{limits.CompactReclaim, "9000h", "8760h"},
			{limits.PollPerSecond, "10/s", "a whole number"},
		} {
			_, err := w.store.Set(t.Context(), limits.Key{Name: c.name}, c.value, "ops")
			if !errors.Is(err, limits.ErrValue) || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), string(c.name)) {
				t.Errorf("%s = %s: %v, want %q", c.name, c.value, err, c.want)
			}
		}
		if set, err := w.store.List(t.Context()); err != nil || len(set) > 0 {
			t.Errorf("set %v, %v", set, err)
		}
	})
}

// TestBadRecordsAreIgnored: a record that cannot be used changes nothing but the log: the setting is in force, and other limits
// hold.
func TestBadRecordsAreIgnored(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.set(t, limits.Key{Name: limits.CallerCalls}, "300")
		w.set(t, limits.Key{Name: limits.ReposPerMinute}, "5")
		client := w.etcd.Client(nil)
		for _, name := range []string{"caller-calls", "from-the-future"} {
			if _, err := client.Put(t.Context(), "/trawl/v1/limits/"+name, "not a record"); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		if got := w.live.Whole(limits.CallerCalls, "", 250); got != 250 {
			t.Errorf("%d calls", got)
		}
		if got := w.live.Whole(limits.ReposPerMinute, "", 600); got != 5 {
			t.Errorf("%d repos", got)
		}
		for _, name := range []string{"caller-calls", "from-the-future"} {
			if !strings.Contains(w.log.String(), "limit="+name+" error=") {
				t.Errorf("nothing is logged of %s:\n%s", name, w.log)
			}
		}
	})
}

// TestLastLimitsStayWithoutEtcd: while etcd is away, the last known limits are in force, and a change that was missed arrives
// afterwards.
func TestLastLimitsStayWithoutEtcd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		key := limits.Key{Name: limits.CallerCalls}
		w.set(t, key, "300")
		w.away.Store(true)
		time.Sleep(time.Hour)
		if got := w.live.Whole(limits.CallerCalls, "", 250); got != 300 {
			t.Errorf("%d calls while etcd is away", got)
		}
		w.away.Store(false)
		w.set(t, key, "301")
		time.Sleep(5 * time.Second)
		if got := w.live.Whole(limits.CallerCalls, "", 250); got != 301 {
			t.Errorf("%d calls after etcd is back", got)
		}
	})
}

// TestLimitsOfALostHistory: a limit that etcd has lost is not in force any more.
func TestLimitsOfALostHistory(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		goBack := w.etcd.Copy()
		w.set(t, limits.Key{Name: limits.CallerCalls}, "300")
		goBack()
		time.Sleep(30 * time.Second)
		if got := w.live.Whole(limits.CallerCalls, "", 250); got != 250 {
			t.Errorf("%d calls, want those of the setting", got)
		}
	})
}
