package page_test

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/shard"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	"github.com/trawl-search/trawl/services/router/internal/page"
)

func TestTokensComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		q := page.Question{
			Query: rapid.String().Draw(t, "query"), SyntaxVersion: uint32(rapid.IntRange(1, 2).Draw(t, "version")),
			Mode: searchv1.Mode(rapid.IntRange(1, 2).Draw(t, "mode")),
		}
		c := page.Cursor{
			After: shard.Key{
				Score: rapid.Float64().Draw(t, "score"), Repo: rapid.String().Draw(t, "repo"),
				Path: rapid.SliceOfN(rapid.Byte(), 1, 50).Draw(t, "path"), Blob: rapid.SliceOfN(rapid.Byte(), 1, 20).Draw(t, "blob"),
			},
			Revision: rapid.Int64Range(0, math.MaxInt64).Draw(t, "revision"),
		}
		token := page.Encode(q, c)
		got, err := page.Decode(q, token)
		if err != nil || !reflect.DeepEqual(got, c) {
			t.Fatalf("%+v came back as %+v, %v", c, got, err)
		}
		other := q
		other.Query += "x"
		if _, err := page.Decode(other, token); !errors.Is(err, page.ErrOther) {
			t.Fatalf("a token for another query: %v", err)
		}
		cut := rapid.IntRange(0, len(token)-1).Draw(t, "cut")
		if _, err := page.Decode(q, token[:cut]); err == nil {
			t.Fatalf("%d of %d bytes of a token were taken", cut, len(token))
		}
	})
}

func TestTokensAreBound(t *testing.T) {
	q := page.Question{Query: "a", Mode: searchv1.Mode_MODE_EXHAUSTIVE, SyntaxVersion: 1}
	token := page.Encode(q, page.Cursor{})
	for name, other := range map[string]page.Question{
		"mode":    {Query: "a", Mode: searchv1.Mode_MODE_TOP_K, SyntaxVersion: 1},
		"version": {Query: "a", Mode: searchv1.Mode_MODE_EXHAUSTIVE, SyntaxVersion: 2},
	} {
		if _, err := page.Decode(other, token); !errors.Is(err, page.ErrOther) {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

func FuzzDecode(f *testing.F) {
	q := page.Question{Query: "a"}
	f.Add(page.Encode(q, page.Cursor{After: shard.Key{Score: 1, Repo: "r", Path: []byte("p"), Blob: []byte("b")}, Revision: 7}))
	f.Fuzz(func(t *testing.T, token []byte) {
		c, err := page.Decode(q, token)
		if err != nil {
			return
		}
		again, err := page.Decode(q, page.Encode(q, c))
		if err != nil || !reflect.DeepEqual(again, c) {
			t.Errorf("%+v, then %+v, %v", c, again, err)
		}
	})
}
