package serve_test

import (
	"runtime"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestPlansOfFarNumbers: the few bytes of a plan that name the last number of each shard take no memory for all the numbers before it.
func TestPlansOfFarNumbers(t *testing.T) {
	s := start(t, "a")
	plan := planOf("r", "a")
	for range 5000 {
		d := digestOf("b")
		plan.Shards = append(plan.Shards, &searchv1.PlannedShard{Digest: d[:], Repos: &searchv1.PlannedShard_Runs{Runs: []byte{0xff, 0xff, 0xff, 7, 1}}})
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := s.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "r", Path: []byte("a"), Plan: plan})
	runtime.ReadMemStats(&after)
	if taken := after.TotalAlloc - before.TotalAlloc; status.Code(err) != codes.InvalidArgument || taken > 256<<20 {
		t.Errorf("%d MiB for 5000 numbers: %v", taken>>20, err)
	} else if !strings.Contains(err.Error(), "64 MiB") {
		t.Errorf("the limit is not named: %v", err)
	}
}
