package search_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/search"
)

// openSparse opens a shard whose bytes are loaded when they are read. After
// that many pieces, loading fails with err.
func openSparse(whole []byte, pieces int, err error) (*search.Shard, error) {
	data := make([]byte, len(whole))
	f, openErr := format.NewSparse("sparse.trawl", data, func(off, n int64) error {
		if pieces--; pieces < 0 {
			return err
		}
		copy(data[off:off+n], whole[off:])
		return nil
	}, nil)
	if openErr != nil {
		return nil, openErr
	}
	return search.OpenFile(f)
}

// TestSparseShard: a shard loaded piece by piece answers like the whole one.
// Wherever loading fails, the search gives the same answer or that error.
func TestSparseShard(t *testing.T) {
	whole, queries := smallShard(t)
	want, err := answers(openShard(t, whole), queries)
	if err != nil {
		t.Fatal(err)
	}
	away := errors.New("the bucket is away")
	failed := 0
	for pieces := 0; ; pieces++ {
		s, err := openSparse(whole, pieces, away)
		var got []string
		if err == nil {
			got, err = answers(s, queries)
		}
		switch {
		case err == nil && fmt.Sprint(got) != fmt.Sprint(want):
			t.Fatalf("%d pieces: got %s\nwant %s", pieces, got, want)
		case err == nil:
			if err := s.Verify(context.Background()); err != nil && !errors.Is(err, away) {
				t.Fatal(err)
			}
			if failed < 3 {
				t.Errorf("the whole shard came in %d pieces", pieces)
			}
			return
		case !errors.Is(err, away) || errors.Is(err, format.ErrCorrupt):
			t.Fatalf("%d pieces: %v", pieces, err)
		}
		failed++
	}
}
