package catalog

import (
	"bytes"
	"slices"
	"testing"

	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// TestFieldsOfRoots: what Protobuf decodes has the same fields here, also if bytes are wrong or the fields in another order, and the
// memory held other fields before. What it does not decode ends in an error, or in fields.
func TestFieldsOfRoots(t *testing.T) {
	var f rootFields
	rapid.Check(t, func(t *rapid.T) {
		var code []byte
		for range rapid.IntRange(1, 2).Draw(t, "roots") { // two are merged
			one, err := proto.Marshal(anyRoot(t, "repo", rapid.Bool().Draw(t, "draws")))
			if err != nil {
				t.Fatal(err)
			}
			code = append(code, one...)
		}
		for range rapid.IntRange(0, 3).Draw(t, "wrong") {
			at := rapid.IntRange(0, len(code)-1).Draw(t, "at")
			if rapid.Bool().Draw(t, "cut") {
				code = append(code[:at:at], code[at+1:]...)
			} else {
				code[at] = rapid.Byte().Draw(t, "byte")
			}
		}
		root := &catalogv1.Root{}
		wrong, err := proto.Unmarshal(code, root), f.read(code)
		if err != nil && wrong == nil {
			t.Fatalf("%v, in place of %v", err, root)
		}
		if wrong == nil && !f.same(root) {
			t.Fatalf("%+v, want %v", f, root)
		}
	})
}

// same reports whether the fields are those of a root.
func (f *rootFields) same(root *catalogv1.Root) bool {
	published := uint64(0)
	if root.PublishedAt != nil {
		published = uint64(max(root.PublishedAt.AsTime().UnixMilli(), 0))
	}
	return string(f.repo) == root.Repo && string(f.url) == root.Url && f.generation == root.Generation && f.id == root.Id && f.published.millis() == published &&
		slices.EqualFunc(f.branches, root.Branches, func(a branchFields, b *catalogv1.Branch) bool {
			return string(a.name) == b.Name && string(a.commit) == b.Commit
		}) && slices.EqualFunc(f.shards, root.Shards, f.sameShard)
}

func (f *rootFields) sameShard(s shardFields, ref *catalogv1.ShardRef) bool {
	languages, places := f.languages[s.languages.from:s.languages.to], f.places[s.places.from:s.places.to]
	return bytes.Equal(s.digest, ref.Digest) && string(s.key) == ref.Key && s.size == ref.SizeBytes && bytes.Equal(s.hidden, ref.Hidden) && s.repos == ref.Repos && s.number == ref.RepoNumber &&
		slices.EqualFunc(languages, ref.Languages, func(a []byte, b string) bool { return string(a) == b }) && slices.Equal(places, ref.Branches)
}
