package buckettest

import (
	"errors"
	"os"
	"testing"

	"github.com/trawl-search/trawl/internal/pinned"
)

// serverBinary is the S3 server of the pinned version, which it builds if needed.
// Without a network to download the modules it skips the test, but never in CI.
func serverBinary(tb testing.TB) string {
	tb.Helper()
	path, err := pinned.Build(tb.Context(), pinned.Versitygw)
	if failed, ok := errors.AsType[*pinned.BuildError](err); ok && failed.Offline() && os.Getenv("CI") != "true" {
		tb.Skipf("NOT TESTED on S3: the server's modules cannot be downloaded: %v", err)
	}
	if err != nil {
		tb.Fatalf("the S3 server: %v", err)
	}
	return path
}
