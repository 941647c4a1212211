package shardio

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/internal/bucket"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// ranges records the ranges that are read.
type ranges struct {
	bucket.Bucket

	mu   sync.Mutex
	read [][2]int64 // from, to
}

func (r *ranges) GetRange(ctx context.Context, key string, off, n int64) (io.ReadCloser, error) {
	r.mu.Lock()
	r.read = append(r.read, [2]int64{off, off + n})
	r.mu.Unlock()
	return r.Bucket.GetRange(ctx, key, off, n)
}

// stored uploads a shard of n documents that do not compress.
func stored(t *testing.T, b bucket.Bucket, n int) *catalogv1.ShardRef {
	t.Helper()
	return storedFrom(t, b, n, 7)
}

// storedFrom is stored with documents by a seed.
func storedFrom(t *testing.T, b bucket.Bucket, n int, seed uint64) *catalogv1.ShardRef {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 7))
	src := &listed{}
	for i := range n {
		content := make([]byte, 0, 20_000)
		for len(content) < 20_000 {
			content = fmt.Appendf(content, "%x\n", rng.Uint64())
		}
		src.docs = append(src.docs, build.Document{Path: fmt.Appendf(nil, "f%04d", i), Content: content, Branches: []uint32{0}})
	}
	builder := Builder{Bucket: b, Fence: 1, TempDir: t.TempDir()}
	result, err := builder.Build(t.Context(), docstore.Repo{Name: "example.com/repo", Branches: src.Branches()}, src)
	if err != nil || len(result.Shards) != 1 {
		t.Fatalf("%d shards, %v", len(result.Shards), err)
	}
	return result.Shards[0]
}

// TestReaderDownloadsBlocksOnce: random reads give the shard's bytes, no byte comes
// twice, no request is larger than allowed, and each one is paced.
func TestReaderDownloadsBlocksOnce(t *testing.T) {
	b := &ranges{Bucket: bucket.NewMemory(1 << 30)}
	ref := stored(t, b, 200)
	content, err := b.Bucket.GetRange(t.Context(), ref.GetKey(), 0, int64(ref.GetSizeBytes()))
	if err != nil {
		t.Fatal(err)
	}
	want, err := io.ReadAll(content)
	if err != nil || sha256.Sum256(want) != [32]byte(ref.GetDigest()) {
		t.Fatalf("%d bytes, %v", len(want), err)
	}
	for _, block := range []int64{1, 4096, 128 << 10, maxRead} {
		if block == 1 {
			block = int64(len(want))/97 + 1 // no power of two
		}
		b.read = nil
		paced := 0
		r, err := OpenReader(t.Context(), b, ref, ReaderOptions{TempDir: t.TempDir(), BlockBytes: block, Pace: func(_ context.Context, n int) error {
			paced += n
			return nil
		}})
		if err != nil {
			t.Fatal(err)
		}
		rng := rand.New(rand.NewPCG(uint64(block), 1))
		for range 50 {
			from := rng.IntN(len(want))
			n := 1 + rng.IntN(min(len(want)-from, 3<<20))
			if err := r.fill(int64(from), int64(n)); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(r.data[from:from+n], want[from:from+n]) {
				t.Fatalf("blocks of %d: other bytes from %d to %d", block, from, from+n)
			}
		}
		seen, total := make([]bool, len(want)), 0
		for _, at := range b.read {
			if at[1]-at[0] > maxRead {
				t.Errorf("blocks of %d: a request of %d bytes", block, at[1]-at[0])
			}
			for i := at[0]; i < at[1]; i++ {
				if seen[i] {
					t.Fatalf("blocks of %d: byte %d came twice", block, i)
				}
				seen[i] = true
			}
			total += int(at[1] - at[0])
		}
		if paced != total {
			t.Errorf("blocks of %d: %d bytes paced, %d read", block, paced, total)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestVerify: Verify refuses a valid shard of the same size with other content, whatever was read of it before.
// It downloads each byte of the right shard once.
func TestVerify(t *testing.T) {
	b := &ranges{Bucket: bucket.NewMemory(1 << 30)}
	ref := stored(t, b, 30)
	verify := func(read bool) error {
		t.Helper()
		b.read = nil
		r, err := OpenReader(t.Context(), b, ref, ReaderOptions{TempDir: t.TempDir(), BlockBytes: 4096})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if read {
			if err := r.fill(10_000, 50_000); err != nil {
				t.Fatal(err)
			}
		}
		return r.Verify()
	}
	for _, read := range []bool{false, true} {
		if err := verify(read); err != nil {
			t.Errorf("the shard: %v", err)
		}
		total := int64(0)
		for _, at := range b.read {
			total += at[1] - at[0]
		}
		if total != int64(ref.GetSizeBytes()) {
			t.Errorf("%d bytes of %d were read", total, ref.GetSizeBytes())
		}
	}
	forged := storedFrom(t, b, 30, 8)
	ref = proto.CloneOf(ref)
	ref.Key, ref.SizeBytes = forged.GetKey(), forged.GetSizeBytes()
	if err := verify(false); !errors.Is(err, format.ErrCorrupt) || !strings.Contains(err.Error(), ref.GetKey()) {
		t.Errorf("a shard in its place: %v", err)
	}
}

// TestReaderErrors: a failure keeps its kind, and leaves no file behind.
func TestReaderErrors(t *testing.T) {
	b := bucket.NewMemory(1 << 30)
	ref := stored(t, b, 3)
	dir := t.TempDir()
	refused := errors.New("refused")
	_, err := OpenReader(t.Context(), b, ref, ReaderOptions{TempDir: dir, BlockBytes: 4096, Pace: func(context.Context, int) error { return refused }})
	if !errors.Is(err, refused) || isStore(err) {
		t.Errorf("pace: %v", err)
	}
	gone := &catalogv1.ShardRef{Key: ref.GetKey() + "x", SizeBytes: ref.GetSizeBytes()}
	if _, err := OpenReader(t.Context(), b, gone, ReaderOptions{TempDir: dir, BlockBytes: 4096}); !errors.Is(err, bucket.ErrNotFound) || isStore(err) {
		t.Errorf("a missing object: %v", err)
	}
	if _, err := OpenReader(t.Context(), b, ref, ReaderOptions{TempDir: dir + "/none", BlockBytes: 4096}); !isStore(err) {
		t.Errorf("a missing folder: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
