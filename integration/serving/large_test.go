package serving_test

import (
	"cmp"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// lines returns text of about size bytes, with a needle in its middle and one at its end.
func lines(size int) string {
	half := strings.Repeat("nothing in this line\n", size/42-1)
	text := half + "a needle\n" + half
	return text + strings.Repeat("\n", size-len(text)-6) + "needle"
}

// TestLargestFile: a file of the largest searchable size is found, counted and returned in
// full; a larger one is found by its name.
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
	if content := c.wholeFile(c.search, "host/one", "largest", 0); string(content) != text {
		t.Errorf("%d bytes, not those of the file", len(content))
	}
}

// TestFileLargerThanAnAnswer: a file comes in parts if searchers send less at once than the
// file's size and than routers ask for.
func TestFileLargerThanAnAnswer(t *testing.T) {
	inOneAndInSeveral(t, testFileLargerThanAnAnswer)
}

func testFileLargerThanAnAnswer(t *testing.T, oneProcess bool) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{oneProcess: oneProcess, replication: 1, tel: tel, spans: spans, maxResponse: searchapi.LeastResponse}, 1)
	text := lines(2 * searchapi.LeastResponse)
	c.publish("host/one", map[string]string{"large": text})
	if content := c.wholeFile(c.search, "host/one", "large", 0); string(content) != text {
		t.Errorf("%d bytes, not those of the file", len(content))
	}
}

// wholeFile gets all of a file, in parts of up to maxBytes; 0 means the default.
func (c *cluster) wholeFile(client searchv1.SearchServiceClient, repo, path string, maxBytes uint64) []byte {
	c.t.Helper()
	var content []byte
	for {
		part, err := client.GetFile(c.patient(), &searchv1.GetFileRequest{Repo: repo, Path: []byte(path), Offset: uint64(len(content)), MaxBytes: maxBytes})
		c.must(err)
		if content = append(content, part.Content...); uint64(len(content)) == part.SizeBytes {
			return content
		}
		if n := uint64(proto.Size(part)); len(part.Content) == 0 || n > cmp.Or(maxBytes, searchapi.DefaultMaxBytes) {
			c.t.Fatalf("a part of %d bytes, %d of %d so far", n, len(content), part.SizeBytes)
		}
	}
}
