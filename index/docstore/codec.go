package docstore

import "sync"

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
