package shardio

import (
	"cmp"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
)

// TestSketchesAreSimilarAsReposAre: two repos share as large a part of their sample as of their bytes, on average, in
// whatever order their contents come.
func TestSketchesAreSimilarAsReposAre(t *testing.T) {
	doc := func(i, size int) *build.Document {
		content := fmt.Sprint(i, strings.Repeat("x", size))
		oid := sha1.Sum([]byte(content))
		return &build.Document{Content: []byte(content), OID: oid[:]}
	}
	const trials, files = 200, 60
	for _, same := range []int{0, 15, 30, 45, 60} {
		shared := 0
		for trial := range trials {
			var a, b sketch
			for i := range files {
				number := (trial*2*files + i) * 10
				a.add(doc(number, 900))
				a.add(doc(number, 900)) // another path
			}
			for i := range files {
				number := (trial*2*files + files - 1 - i) * 10
				if files-1-i >= same {
					number++
				}
				b.add(doc(number, 900))
			}
			// Of the sample of both together, the part that both have is their similarity.
			both := slices.Concat(a.contents, b.contents)
			slices.SortFunc(both, func(a, b sampled) int { return cmp.Compare(a.value, b.value) })
			for _, c := range slices.Compact(both)[:sketchBlobs] {
				if slices.Contains(a.contents, c) && slices.Contains(b.contents, c) {
					shared++
				}
			}
		}
		want := float64(same) / float64(2*files-same)
		if got := float64(shared) / trials / sketchBlobs; math.Abs(got-want) > .05 {
			t.Errorf("%d of %d files are shared, and %.2f of the sample; want %.2f", same, files, got, want)
		}
	}
	var s sketch
	for i := range 200 {
		s.add(doc(i, 10))
	}
	s.add(doc(1000, 1_000_000))
	if large := doc(1000, 1_000_000); len(s.ids()) != sketchBlobs || s.ids()[0] != binary.BigEndian.Uint32(large.OID) {
		t.Errorf("a content with nearly all bytes is not first: %v", s.ids())
	}
}
