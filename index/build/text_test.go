package build

import "testing"

func TestText(t *testing.T) {
	for content, want := range map[string]string{
		"":                              "",
		"package a":                     "package a",
		"\xef\xbb\xbfpackage a":         "package a",
		"\xef\xbb\xbf":                  "",
		"\xef\xbb\xbf\xef\xbb\xbfa":     "\ufeffa", // only the first is a mark
		"a\xef\xbb\xbf":                 "a\ufeff",
		"\xef\xbb":                      "\xef\xbb",
		"\xff\xfea\x00\r\x00\n\x00":     "a\r\n",
		"\xfe\xff\x00a\x26\x3a":         "a☺",
		"\xff\xfe":                      "",
		"\xff\xfe\x3d\xd8\x00\xde":      "😀",
		"\xff\xfe\x00\xde\x3d\xd8a":     "\ufffd\ufffd", // the second half first, and half a unit at the end
		"\xff\xfe\x3d\xd8a\x00":         "\ufffda",
		"\xfe\xff\x00":                  "\ufffd",
		"\xff\xfe\x00\x00a\x00\x00\x00": "\x00a\x00", // UTF-32, which is binary
		"a\x00b\x00":                    "a\x00b\x00",
		"\xff\xff":                      "\xff\xff",
	} {
		if got := string(Text([]byte(content))); got != want {
			t.Errorf("%q: %q, want %q", content, got, want)
		}
	}
}
