package bucket_test

import (
	"testing"

	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMemory(t *testing.T) {
	buckettest.Run(t, func(*testing.T) bucket.Bucket { return bucket.NewMemory(buckettest.Limit) })
}
