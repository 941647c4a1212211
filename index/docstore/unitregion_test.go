package docstore

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// TestRegionIsEncodedInPlace encodes units that become shorter, and ones that do not and are
// kept as they are, in every order: a region takes no memory for its encoding, and what is
// written there first overwrites no text that is still to be read.
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
