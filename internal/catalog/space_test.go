package catalog_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/catalog"
)

// TestSilentMembersHideNoSpace: the size of etcd is known while some of its members do not answer, in whatever order they
// are named; if none answers, it is an error.
func TestSilentMembersHideNoSpace(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() }) // nobody accepts: connections are made, and nothing comes
	silent, gone, well := "http://"+listener.Addr().String(), "http://127.0.0.1:1", shared.Endpoint()
	for what, endpoints := range map[string][]string{
		"silent first": {silent, well},
		"silent last":  {well, silent},
		"gone first":   {gone, silent, silent, well},
		"none":         {silent, gone},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			client, err := catalog.Connect(catalog.Options{Endpoints: endpoints})
			if err != nil {
				t.Fatal(err)
			}
			defer client.Close()
			store := catalog.New(client, "")
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			if what == "none" {
				if space, err := store.Space(ctx); err == nil {
					t.Errorf("got %v", space)
				}
				return
			}
			space, err := store.Space(ctx)
			for err != nil && ctx.Err() == nil { // a slow machine
				space, err = store.Space(ctx)
			}
			if err != nil || space.Quota <= 0 || space.Used <= 0 {
				t.Errorf("got %v, %v", space, err)
			}
		})
	}
}
