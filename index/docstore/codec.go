package docstore

import (
	"fmt"
	"strconv"
	"sync"

	"github.com/trawl-search/trawl/index/format"
)

// Codec says how the units of a shard are encoded. Its number stands in the
// header of the units; a reader that does not know it refuses the shard.
// Whatever the codec, a unit that it would not make smaller is stored as it is,
// which shows in its length.
type Codec uint32

// LZ4 is the LZ4 block format, with the unit's dictionary, if there is one, as
// what comes before the unit.
const LZ4 Codec = 0

// String is the codec's name.
func (c Codec) String() string {
	if c == LZ4 {
		return "LZ4"
	}
	return "codec " + strconv.FormatUint(uint64(c), 10)
}

// check refuses codecs that this version does not know.
func (c Codec) check() error {
	if c != LZ4 {
		return fmt.Errorf("units are in %s: %w", c, format.ErrVersion)
	}
	return nil
}

// maxExpansion is how many times longer than its encoding a unit can be: an
// LZ4 sequence stands for at most 255 bytes for each of its own.
const maxExpansion = 255

// Effort is how much time the writer of a shard takes to make units small.
// Readers do not see it, and decode what took longer a little faster.
type Effort uint8

// Efforts of a writer.
const (
	// Fresh is for shards that must be searchable soon.
	Fresh Effort = iota
	// Compact takes some fifteen times as long as Fresh for units that are
	// about a fifth smaller: for shards that stay.
	Compact
)

// encoder encodes units one by one with a dictionary. One goroutine at a time.
type encoder interface {
	// setDictionary sets the dictionary, of at most MaxDictionary bytes, of the
	// units that come.
	setDictionary(dict []byte)
	// encode returns the encoding of a non-empty unit: good until the next
	// call, and the unit itself when nothing is gained.
	encode(unit []byte) []byte
}

// encoders are handed on, as their tables are large. What an encoder did
// before does not show in what it does after setDictionary.
var encoders = [...]sync.Pool{
	Fresh:   {New: func() any { return new(fastEncoder) }},
	Compact: {New: func() any { return new(deepEncoder) }},
}
