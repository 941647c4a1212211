package gc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/owner"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestEtcdGoesBackDuringAPass: etcd goes back to a copy whose roots name what is being deleted, before
// any of the pass's operations. The pass ends before it deletes anything more.
func TestEtcdGoesBackDuringAPass(t *testing.T) {
	refused := 0
	for moment := 0; ; moment++ {
		over := false
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t)
			w.want("repo")
			w.publish("repo", 10)
			goBack := w.etcd.Copy()
			w.publish("repo", 1)
			armed, calls := false, 0
			var deleting atomic.Int64 // deletions run concurrently
			before := func() {
				if armed && calls == moment {
					goBack()
				}
				calls++
			}
			client := w.etcd.Client(func(ctx context.Context) error { before(); return ctx.Err() })
			note := func(op string) error {
				if op == "delete" {
					deleting.CompareAndSwap(0, int64(calls))
				}
				return nil
			}
			c := w.collector(client, watched{w.bucket, note, func(string) error { return nil }}, 100)
			w.pass(c)
			time.Sleep(hold + time.Second)
			armed, calls = true, 0
			_, err := c.Pass(t.Context())
			over = calls <= moment
			if errors.Is(err, catalog.ErrWentBack) {
				refused++
			}
			// Nobody can help it if etcd goes back later than while it answers the last question.
			if began := int(deleting.Load()); began == 0 || moment < began-1 {
				w.check(fmt.Sprintf("etcd went back before call %d, deletions came after %d", moment, began))
			}
		})
		if over {
			break
		}
	}
	if refused == 0 {
		t.Error("no pass noticed that etcd went back")
	}
}

// TestBucketOfTheSamePrefix: of two Trawls with the same prefix, each with an etcd of its own, the one
// that does not own a bucket collects nothing there, and reports no garbage, whatever it has itself.
func TestBucketOfTheSamePrefix(t *testing.T) {
	for what, claims := range map[string]bool{"with a bucket of its own": true, "without": false} {
		t.Run(what, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, c := replaced(t)
				if err := owner.Claim(t.Context(), w.bucket, w.truth); err != nil {
					t.Fatal(err)
				}
				theirs := catalog.New(etcdtest.New().Client(nil), "")
				want := owner.ErrNewEtcd
				if claims {
					want = owner.ErrOwned
					if err := owner.Claim(t.Context(), bucket.NewMemory(1<<20), theirs); err != nil {
						t.Fatal(err)
					}
				}
				for range 20 { // its revisions are further
					if _, _, err := theirs.PutDesired(t.Context(), &catalogv1.Desired{Name: "theirs", Url: "https://example.org/theirs"}); err != nil {
						t.Fatal(err)
					}
				}
				before := len(w.stored())
				for _, dry := range []bool{true, false} {
					other := Collector{Store: theirs, Bucket: w.bucket, Config: c.Config, DryRun: dry, Log: slog.New(slog.DiscardHandler)}
					for range 3 {
						if report, err := other.Pass(t.Context()); !errors.Is(err, want) || report != (Report{}) {
							t.Errorf("pass, dry %v: %+v, %v", dry, report, err)
						}
						time.Sleep(2 * hold)
					}
					if _, err := other.Audit(t.Context(), false, func(Finding) error { return errors.New("found") }); !errors.Is(err, want) {
						t.Errorf("audit: %v", err)
					}
				}
				if now := len(w.stored()); now != before {
					t.Errorf("%d objects before, %d now", before, now)
				}
				w.pass(c)
			})
		})
	}
}
