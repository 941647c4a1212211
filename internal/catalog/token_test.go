package catalog_test

import (
	"bytes"
	"errors"
	"math"
	"testing"

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

func FuzzDecodeToken(f *testing.F) {
	f.Add(catalog.EncodeToken(300))
	f.Fuzz(func(t *testing.T, token []byte) {
		revision, err := catalog.DecodeToken(token)
		if err != nil {
			return
		}
		if revision < 0 {
			t.Fatalf("%x is revision %d", token, revision)
		}
		// Longer spellings of a number decode too; the short one is its prefix-free form.
		if again := catalog.EncodeToken(revision); len(again) > len(token) || len(again) == len(token) && !bytes.Equal(again, token) {
			t.Fatalf("%x and %x are both revision %d", token, again, revision)
		}
	})
}
