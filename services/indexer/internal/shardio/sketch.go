package shardio

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
)

// sketchBlobs is how many contents a sketch names.
const sketchBlobs = 8

// sketch is a small sample of a repo's distinct contents. Each content is in it with a
// probability that grows with its size, and the choice depends on the content alone: two
// repos that share a part of their bytes share about as large a part of their samples
// (weighted sampling by the smallest of exponentially distributed values: Efraimidis and
// Spirakis, 2006).
type sketch struct {
	contents []sampled // ascending by value
}

type sampled struct {
	value float64
	id    uint32
}

// add offers the content of a document.
func (s *sketch) add(d *build.Document) {
	if d.Skip != docstore.NotSkipped || len(d.Content) == 0 || len(d.OID) < 16 {
		return
	}
	uniform := (float64(binary.BigEndian.Uint64(d.OID[8:])>>11) + 1) / (1 << 53)
	next := sampled{-math.Log(uniform) / float64(len(d.Content)), binary.BigEndian.Uint32(d.OID)}
	at, have := slices.BinarySearchFunc(s.contents, next, func(a, b sampled) int { return cmp.Compare(a.value, b.value) })
	if have || at == sketchBlobs {
		return
	}
	s.contents = slices.Insert(s.contents, at, next)
	s.contents = s.contents[:min(len(s.contents), sketchBlobs)]
}

// ids returns what the root keeps of the sketch.
func (s *sketch) ids() []uint32 {
	var ids []uint32
	for _, c := range s.contents {
		ids = append(ids, c.id)
	}
	return ids
}
