package job

import (
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	for _, reason := range []string{"plain", "bad \xff byte", strings.Repeat("ü", maxReason)} {
		got := clip(reason)
		if !utf8.ValidString(got) || len(got) > maxReason+10 {
			t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
		}
	}
}
