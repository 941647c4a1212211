package serving_test

import (
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// lines is text of so many bytes, with a needle in its middle and one at its end.
func lines(size int) string {
	half := strings.Repeat("nothing in this line\n", size/42-1)
	text := half + "a needle\n" + half
	return text + strings.Repeat("\n", size-len(text)-6) + "needle"
}

// TestLargestFile: a file as large as can be searched is found, counted and given
// in full; one larger is found by its name.
func TestLargestFile(t *testing.T) {
	c := startCluster(t, 1, 1)
	text := lines(build.DefaultMaxFileSize)
	c.publish("host/one", map[string]string{"largest": text, "over": text + "\n"})
	options := &searchv1.SearchOptions{RequireComplete: true}
	if resp := c.find("needle", options); len(resp.Files) != 1 || string(resp.Files[0].Path) != "largest" || resp.Statistics.Matches != 2 {
		t.Errorf("found %v, %v", paths(resp), resp.Statistics)
	}
	if resp := c.find("f:over", options); len(resp.Files) != 1 || resp.Files[0].SkipReason != searchv1.SkipReason_SKIP_REASON_TOO_LARGE {
		t.Errorf("found %v", resp.Files)
	}
	file, err := c.search.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "host/one", Path: []byte("largest")})
	c.must(err)
	if string(file.Content) != text {
		t.Errorf("%d bytes, not those of the file", len(file.Content))
	}
}

// TestFileLargerThanAnAnswer: where answers are limited to less than a file has,
// the error says so.
func TestFileLargerThanAnAnswer(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, tel: tel, spans: spans, maxResponse: config.MiB}, 1)
	c.publish("host/one", map[string]string{"large": lines(2 << 20)})
	_, err := c.search.GetFile(t.Context(), &searchv1.GetFileRequest{Repo: "host/one", Path: []byte("large")})
	if status.Code(err) != codes.FailedPrecondition || !strings.Contains(err.Error(), "max-response-bytes") {
		t.Errorf("%v", err)
	}
}
