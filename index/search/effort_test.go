package search_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
)

// TestEffortsAnswerAlike: a shard gives the same answers whatever the effort of
// compression. Only the encoding of contents differs.
func TestEffortsAnswerAlike(t *testing.T) {
	for seed := range uint64(10) {
		c := indextest.Random(seed)
		fresh, compact := buildShard(t, c), buildShardWith(t, c, build.Options{Effort: docstore.Compact})
		indextest.Check(t, c, indextest.Queries(c, seed, 60), engine(openShard(t, compact)))
		encoded := []format.Tag{format.TagUnits, format.TagUnitOffsets, format.TagDictionaries}
		a, b := sectionsOf(t, fresh), sectionsOf(t, compact)
		for tag := range a {
			if same := bytes.Equal(a[tag], b[tag]); !same && !slices.Contains(encoded, tag) {
				t.Errorf("corpus %s: section %s is not the same", c.Name, tag)
			}
		}
		if seed == 0 && len(b[format.TagUnits]) >= len(a[format.TagUnits]) {
			t.Errorf("compact units take %d bytes, fresh ones %d", len(b[format.TagUnits]), len(a[format.TagUnits]))
		}
	}
}

func sectionsOf(t *testing.T, data []byte) map[format.Tag][]byte {
	t.Helper()
	f, err := format.NewFile("test.trawl", data)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[format.Tag][]byte{}
	for _, info := range f.Sections() {
		s, _ := f.Section(info.Tag)
		if sections[info.Tag], err = s.All(); err != nil {
			t.Fatal(err)
		}
	}
	return sections
}
