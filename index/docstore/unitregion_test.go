package docstore

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestRegionIsEncodedInPlace encodes units that become shorter, and units that do not and
// are kept as they are, in every order. A region needs no memory for its encoding, and its
// encoder overwrites no text that it has yet to read.
func TestRegionIsEncodedInPlace(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	region, apart := new(unitRegion), new(fastEncoder)
	var want []byte
	apart.setDictionary(nil)
	for range 64 {
		unit := bytes.Repeat([]byte("as before "), SuperblockSize/10)
		if rng.IntN(2) > 0 {
			for i := range unit {
				unit[i] = byte(rng.Uint32())
			}
		}
		region.add(unit)
		want = append(want, apart.encode(unit)...)
	}
	region.encode(Fresh, false)
	if !bytes.Equal(region.encoded, want) {
		t.Error("units encoded in a region differ from ones encoded one by one")
	}
	if &region.encoded[0] != &region.text[0] {
		t.Error("the encoding has memory of its own")
	}
}
