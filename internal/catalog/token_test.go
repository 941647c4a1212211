package catalog_test

import (
	"errors"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/internal/catalog"
)

func TestTokenRoundTrip(t *testing.T) {
	for _, revision := range []int64{0, 1, 127, 128, 1 << 40, math.MaxInt64} {
		token := catalog.EncodeToken(revision)
		if got, err := catalog.DecodeToken(token); err != nil || got != revision || len(token) > 64 {
			t.Errorf("%d became %x and then %d, %v", revision, token, got, err)
		}
	}
	for _, bad := range []string{"", "\x01", "\x02\x01", "\x01\x01\x01", "\x01\x80", "\x01\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"} {
		if _, err := catalog.DecodeToken([]byte(bad)); !errors.Is(err, catalog.ErrToken) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestArbitraryTokens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		token := rapid.SliceOfN(rapid.Byte(), 0, 14).Draw(t, "token")
		if rapid.Bool().Draw(t, "versioned") {
			token = append([]byte{1}, token...)
		}
		revision, err := catalog.DecodeToken(token)
		if err != nil {
			return
		}
		// Longer encodings of a number decode too, to that number.
		if again := catalog.EncodeToken(revision); revision < 0 || len(again) > len(token) {
			t.Fatalf("%x is revision %d, whose token is %x", token, revision, again)
		}
	})
}
