package serve_test

import (
	"runtime"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/regex"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/searcher/internal/serve"
)

// TestExpressionsShareTheirMemory: a query whose expressions have no room is refused before it is
// compiled, with a time to retry; small ones are answered. All room is given back.
func TestExpressionsShareTheirMemory(t *testing.T) {
	const size = 16 << 20
	memory := regex.NewMemory(size)
	s := startWith(t, serve.Config{Expressions: memory}, "good")
	plan := planOf("r", "good")
	heavy := `(\w\d){998}x (\d\w){998}y (\d.){998}z` // about 18,000 instructions
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for name, call := range map[string]func(query string) error{
		"search": func(query string) error {
			_, err := searchAll(t.Context(), s, &searchv1.SearchRequest{Query: query, Plan: plan})
			return err
		},
		"list": func(query string) error {
			_, err := list(t.Context(), s, &searchv1.ListRequest{Query: query, Plan: plan})
			return err
		},
	} {
		if err := call(strings.Repeat(heavy+" ", 2)); status.Code(err) != codes.ResourceExhausted {
			t.Errorf("%s: %v", name, err)
		} else if _, ok := status.Convert(err).Details()[0].(*errdetails.RetryInfo); !ok {
			t.Errorf("%s: %v does not say when to come back", name, status.Convert(err).Details())
		}
		if err := call(`foo.*ba[rz]`); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	runtime.ReadMemStats(&after)
	// With compiling it is 10 MiB, without less than half a megabyte.
	if took := after.TotalAlloc - before.TotalAlloc; took > size/8 {
		t.Errorf("%d KiB are allocated: the expressions were compiled", took>>10)
	}
	if !memory.Reserve(size / 2) {
		t.Error("not all memory is given back")
	}
}
