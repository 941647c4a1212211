package access_test

import (
	"bytes"
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
)

// TestOneKeyForAll: roles that start at the same time agree on one key, and on a new
// one when an operator deletes it.
func TestOneKeyForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		etcd := etcdtest.New()
		ctx, cancel := context.WithCancel(t.Context())
		var running sync.WaitGroup
		for range 5 {
			key := access.NewKey(access.NewStore(etcd.Client(nil), ""), quiet())
			running.Go(func() { key.Run(ctx) })
			if err := key.Wait(ctx); err != nil {
				t.Fatal(err)
			}
		}
		client := etcd.Client(nil)
		const at = "/trawl/v1/access.key"
		first, err := client.Get(ctx, at)
		if err != nil || len(first.Kvs) != 1 || len(first.Kvs[0].Value) != 32 || first.Kvs[0].Version != 1 {
			t.Fatalf("the key is %v, %v", first, err)
		}
		if _, err := client.Delete(ctx, at); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		second, err := client.Get(ctx, at)
		if err != nil || len(second.Kvs) != 1 || bytes.Equal(second.Kvs[0].Value, first.Kvs[0].Value) {
			t.Fatalf("after a deletion the key is %v, %v", second, err)
		}
		cancel()
		running.Wait()
	})
}
