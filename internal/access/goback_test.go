package access_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded/embeddedtest"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestTokensWhenEtcdGoesBack: a running directory knows the tokens of the etcd that is there, once
// etcd runs on a copy of its data, or on none.
func TestTokensWhenEtcdGoesBack(t *testing.T) {
	for _, what := range []string{"to a copy", "to nothing"} {
		t.Run(what, func(t *testing.T) {
			etcd := embeddedtest.Start(t)
			client, err := catalog.Connect(catalog.Options{Endpoints: []string{etcd.Endpoint()}})
			if err != nil {
				t.Fatal(err)
			}
			store := access.NewStore(client, "")
			create := func() (access.Text, string) {
				text, record, err := store.Create(t.Context(), everything())
				if err != nil {
					t.Fatal(err)
				}
				return text, record.Id
			}
			kept, _ := create()
			revoked, revokedID := create()
			copied := etcd.Copy()
			lost, _ := create()
			for range 20 {
				create()
			}
			d := access.NewDirectory(store, time.Second, time.Hour, quiet())
			ctx, cancel := context.WithCancel(t.Context())
			var running sync.WaitGroup
			defer func() { cancel(); running.Wait(); client.Close() }()
			running.Go(func() { d.Run(ctx) })
			if err := d.WaitCurrent(t.Context()); err != nil {
				t.Fatal(err)
			}
			want := map[access.Text]error{kept: nil, revoked: access.ErrUnknown, lost: access.ErrUnknown}
			if what == "to nothing" {
				etcd.LoseAll()
				want[kept] = access.ErrUnknown
			} else {
				etcd.GoBack(copied)
				if err := store.Revoke(t.Context(), revokedID); err != nil {
					t.Fatal(err)
				}
			}
			made, _ := create()
			want[made] = nil
			testrun.Eventually(t, "a token that was made since is known", func(ctx context.Context) error {
				_, err := d.Authenticate(ctx, made)
				return err
			})
			for text, want := range want {
				if _, err := d.Authenticate(t.Context(), text); !errors.Is(err, want) {
					t.Errorf("token of %v: %v", want, err)
				}
			}
		})
	}
}

// TestRevocationIsBoundedWhenEtcdGoesBack: the bound holds if etcd went back, however many changes
// it has since, whether or not the tokens can be listed then, and whatever the grace is.
func TestRevocationIsBoundedWhenEtcdGoesBack(t *testing.T) {
	for _, since := range []int{0, 1, 2, 3, 10} {
		for _, broken := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d changes since, cannot be listed %v", since, broken), func(t *testing.T) {
				inWorldWith(t, time.Hour, func(w *world) {
					text, id := w.create(everything())
					goBack := w.etcd.Copy()
					lost, _ := w.create(everything())
					_, lostID := w.create(everything())
					if err := w.store.Revoke(t.Context(), lostID); err != nil {
						t.Fatal(err)
					}
					time.Sleep(time.Minute)
					w.want("before", lost, nil)
					w.unlisted.Store(broken)
					goBack()
					if err := w.store.Revoke(t.Context(), id); err != nil {
						t.Fatal(err)
					}
					var made access.Text
					for range since {
						made, _ = w.create(everything())
					}
					time.Sleep(staleness)
					time.Sleep(time.Nanosecond)
					if broken {
						w.want("revoked, and the list is missing", text, access.ErrStale)
						w.want("lost, and the list is missing", lost, access.ErrStale)
						w.unlisted.Store(false)
						time.Sleep(staleness)
					}
					w.want("revoked", text, access.ErrUnknown)
					w.want("lost", lost, access.ErrUnknown)
					if since > 0 {
						w.want("made since", made, nil)
					}
				})
			})
		}
	}
}

// TestUnreadableTokenAdmitsNobody: a token whose record is damaged loses its rights, and the others
// keep theirs.
func TestUnreadableTokenAdmitsNobody(t *testing.T) {
	inWorld(t, func(w *world) {
		text, id := w.create(everything())
		other, _ := w.create(everything())
		synctest.Wait()
		w.want("before", text, nil)
		if _, err := w.etcd.Client(nil).Put(t.Context(), catalog.DefaultPrefix+"access/tokens/"+id, "\xff"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		w.want("damaged", text, access.ErrUnknown)
		w.want("another", other, nil)
	})
}
