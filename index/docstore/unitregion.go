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

// codecLZ4 is the codec of units, which the header of their section names: the LZ4 block format. If the
// unit has a dictionary, it precedes the unit. A unit that would not become smaller is stored
// unencoded, which its length shows.
const codecLZ4 = 0

// maxExpansion is the most by which a unit can be longer than its encoding:
// each byte of an LZ4 sequence stands for at most 255 bytes.
const maxExpansion = 255

// Effort is how much time the writer of a shard spends on small units. Readers
// need not know it. They decode units of more effort a little faster.
type Effort uint8

// Efforts of a writer.
const (
	// Fresh is for shards that are needed soon.
	Fresh Effort = iota
	// Compact takes some fifteen times as long as Fresh, for units that are
	// about a fifth smaller. It is for shards that stay.
	Compact
)

// encoder encodes units one by one with a dictionary. It is not safe for
// concurrent use.
type encoder interface {
	// setDictionary sets the dictionary, of at most MaxDictionary bytes, for
	// the next units.
	setDictionary(dict []byte)
	// encode returns the encoding of a non-empty unit, or the unit itself if
	// that is not longer. It is valid until the next call.
	encode(unit []byte) []byte
}

// encoders are reused, since their tables are large. The work of an encoder
// before setDictionary does not affect its work afterwards.
var encoders = [...]sync.Pool{
	Fresh:   {New: func() any { return new(fastEncoder) }},
	Compact: {New: func() any { return new(deepEncoder) }},
}
