package search

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/search"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func TestTokensComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := pageQuestion{
			Query: rapid.String().Draw(t, "query"), SyntaxVersion: uint32(rapid.IntRange(1, 2).Draw(t, "version")),
			Mode: searchv1.Mode(rapid.IntRange(1, 2).Draw(t, "mode")),
		}
		c := pageCursor{
			After: search.Key{
				Score: rapid.Float64().Draw(t, "score"), Repo: rapid.String().Draw(t, "repo"),
				Path: rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "path"), Blob: rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "blob"),
			},
			Revision: rapid.Int64Range(0, math.MaxInt64).Draw(t, "revision"), Left: rapid.IntRange(0, 1_000_000).Draw(t, "left"),
		}
		token := encodePageToken(q, c)
		got, err := decodePageToken(q, token)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v came back as %+v, %v", c, got, err)
		}
		other := q
		other.Query += "x"
		if _, err := decodePageToken(other, token); !errors.Is(err, errOtherPage) {
			t.Fatalf("a token for another query: %v", err)
		}
		cut := rapid.IntRange(0, len(token)-1).Draw(t, "cut")
		if _, err := decodePageToken(q, token[:cut]); err == nil {
			t.Fatalf("%d of %d bytes of a token were taken", cut, len(token))
		}
	})
}

func TestTokensAreBound(t *testing.T) {
	q := pageQuestion{Query: "a", Mode: searchv1.Mode_MODE_EXHAUSTIVE, SyntaxVersion: 1}
	token := encodePageToken(q, pageCursor{})
	for name, other := range map[string]pageQuestion{
		"mode":    {Query: "a", Mode: searchv1.Mode_MODE_TOP_K, SyntaxVersion: 1},
		"version": {Query: "a", Mode: searchv1.Mode_MODE_EXHAUSTIVE, SyntaxVersion: 2},
	} {
		if _, err := decodePageToken(other, token); !errors.Is(err, errOtherPage) {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

func FuzzPageToken(f *testing.F) {
	q := pageQuestion{Query: "a"}
	f.Add(encodePageToken(q, pageCursor{After: search.Key{Score: 1, Repo: "r", Path: []byte("p"), Blob: []byte("b")}, Revision: 7}))
	f.Fuzz(func(t *testing.T, token []byte) {
		c, err := decodePageToken(q, token)
		if err != nil {
			return
		}
		again, err := decodePageToken(q, encodePageToken(q, c))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v, then %+v, %v", c, again, err)
		}
	})
}
