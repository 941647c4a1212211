package search_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
)

// contentShard is a shard of two documents.
func contentShard(t *testing.T, texts [2]string) []byte {
	t.Helper()
	main := []string{"main"}
	return buildShard(t, &indextest.Corpus{Repos: []indextest.Repo{{Name: "a", Branches: main, Documents: []indextest.Document{
		{Path: "a.txt", Content: []byte(texts[0]), Branches: main},
		{Path: "b.txt", Content: []byte(texts[1]), Branches: main},
	}}}})
}

// TestVerifyComparesWordsWithContent gives a shard the sound index of words of another shard
// whose content differs in one way. Verify reports that it does not fit the content.
func TestVerifyComparesWordsWithContent(t *testing.T) {
	base := [2]string{
		"alpha beta\n" + strings.Repeat(".", 1000) + "alpha gamma\n" + strings.Repeat(".", 4096) + "delta alpha" + strings.Repeat(" ", 100),
		"alpha epsilon\n" + strings.Repeat("-", 5000) + strings.Repeat("toolong", 30) + "\n",
	}
	data := contentShard(t, base)
	if err := openShard(t, data).Verify(context.Background()); err != nil {
		t.Fatal(err)
	}
	change := func(old, with string) [2]string {
		if len(old) != len(with) || !strings.Contains(base[0]+base[1], old) {
			t.Fatalf("%q for %q", with, old)
		}
		return [2]string{strings.Replace(base[0], old, with, 1), strings.Replace(base[1], old, with, 1)}
	}
	for name, texts := range map[string][2]string{
		"another word":                     change("gamma", "gamme"),
		"another spelling":                 change("gamma", "Gamma"),
		"one word more":                    change("alpha gamma\n", "alpha gam a\n"),
		"one word less":                    change("alpha beta", "alpha_beta"),
		"a word in another block":          change("gamma\n"+strings.Repeat(".", 700), strings.Repeat(".", 700)+"gamma\n"),
		"a word in another superblock":     change("gamma\n"+strings.Repeat(".", 4000), strings.Repeat(".", 4000)+"gamma\n"),
		"a word once more in its block":    change("alpha beta", "alpha alph"),
		"a word that is no longer opaque":  change(strings.Repeat("toolong", 30), strings.Repeat("toolon ", 30)),
		"a superblock that becomes opaque": change(" beta\n", " \u212Aa\n"),
		"words in other blobs":             {"alpha epsilon" + base[0][13:], "alpha beta\n" + base[1][11:]},
	} {
		t.Run(name, func(t *testing.T) {
			words := copiedSections(t, contentShard(t, texts))
			maps.DeleteFunc(words, func(tag string, _ []byte) bool { return tag[0] != 'W' })
			sealed := resealed(t, data, words)
			if bytes.Equal(sealed, data) {
				t.Fatal("the words are the same")
			}
			err := openShard(t, sealed).Verify(context.Background())
			var corrupt *format.CorruptError
			if !errors.As(err, &corrupt) || corrupt.Section[0] != 'W' || corrupt.File == "" {
				t.Errorf("Verify: %v", err)
			}
		})
	}
}
