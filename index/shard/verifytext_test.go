package shard_test

import (
	"bytes"
	"crypto/sha1"
	"errors"
	"fmt"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/shard"
)

// TestVerifyKnowsEncodings: a blob with a byte order mark verifies although its text is not its bytes. A text of
// another blob does not.
func TestVerifyKnowsEncodings(t *testing.T) {
	for blob, text := range map[string]string{
		"a\n": "a\n", "\xef\xbb\xbfa\n": "a\n", "\xff\xfea\x00\x3d\xd8\x00\xde": "a😀", "\xfe\xff\x00a\x26\x3a": "a☺", "\xff\xfe\x00\xdea\x00": "\ufffda",
		"a b": "", "\xef\xbb\xbfb": "", "\xff\xfeb\x00": "", // of others
	} {
		var out bytes.Buffer
		b, err := build.NewBuilder(&out, build.Options{})
		if err == nil {
			err = b.AddRepo(docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main"}}})
		}
		id := sha1.Sum([]byte(fmt.Sprintf("blob %d\x00%s", len(blob), blob)))
		content := text
		if text == "" {
			content = "a\n"
		}
		if err == nil {
			err = b.Add(build.Document{Path: []byte("a"), Content: []byte(content), Branches: []uint32{0}, OID: id[:]})
		}
		if err == nil {
			_, err = b.Close()
		}
		if err != nil {
			t.Fatal(err)
		}
		f, err := format.NewFile("test.trawl", out.Bytes())
		if err != nil {
			t.Fatal(err)
		}
		s, err := shard.OpenFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(t.Context()); (err == nil) != (text != "") || err != nil && !errors.Is(err, format.ErrCorrupt) {
			t.Errorf("%q of %q: %v", content, blob, err)
		}
	}
}
