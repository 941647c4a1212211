package searchapi_test

import (
	"testing"

	"github.com/trawl-search/trawl/internal/searchapi"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestWordsForPeople(t *testing.T) {
	for n, want := range map[uint64]string{0: "0 B", 999: "999 B", 1000: "1.0 kB", 1<<20 + 400000: "1.4 MB", 123456789: "123 MB", 999_999: "1.0 MB"} {
		if got := searchapi.Bytes(n); got != want {
			t.Errorf("Bytes(%d) = %s, want %s", n, got, want)
		}
	}
	if got := searchapi.State(ingestv1.State_STATE_FAILED); got != "failed" {
		t.Errorf("state %q", got)
	}
	if got := searchapi.SkipReason(searchv1.SkipReason_SKIP_REASON_TOO_LARGE); got != "too large" {
		t.Errorf("skip reason %q", got)
	}
}
