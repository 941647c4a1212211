package docstore

import "sync"

// unitRegion is the units that share a dictionary, or as many units without one: first their text,
// and then its encoding.
type unitRegion struct {
	text  [unitsPerDictionary * SuperblockSize]byte // the units, back to back
	size  int                                       // of all units together
	sizes []uint16                                  // of each

	dict    []byte
	encoded []byte   // back to back, overwrites the text
	lengths []uint16 // of each
}

// unitRegions are reused for other dictionaries and shards. A new one takes only the memory that is
// written.
var unitRegions = sync.Pool{New: func() any { return new(unitRegion) }}

func newUnitRegion() *unitRegion {
	r, _ := unitRegions.Get().(*unitRegion)
	r.size, r.sizes, r.dict, r.encoded, r.lengths = 0, r.sizes[:0], nil, nil, r.lengths[:0]
	return r
}

func (r *unitRegion) add(unit []byte) {
	r.size += copy(r.text[r.size:], unit)
	r.sizes = append(r.sizes, uint16(len(unit)))
}

func (r *unitRegion) full() bool { return len(r.sizes) == unitsPerDictionary }

// encode chooses the dictionary, if there is one, and encodes the units. No encoding is longer than
// its unit, so each can overwrite text that has been encoded already.
func (r *unitRegion) encode(effort Effort, dictionary bool) {
	text := r.text[:r.size]
	if dictionary {
		r.dict = appendDictionary(make([]byte, 0, dictionarySize(len(text))), text, effort)
	}
	enc, _ := encoders[effort].Get().(encoder)
	defer encoders[effort].Put(enc)
	enc.setDictionary(r.dict)
	r.encoded = text[:0]
	for _, n := range r.sizes {
		encoded := enc.encode(text[:n])
		text = text[n:]
		r.encoded = append(r.encoded, encoded...)
		r.lengths = append(r.lengths, uint16(len(encoded)))
	}
}
