package docstore

import (
	"fmt"
	"strconv"

	"github.com/pierrec/lz4/v4"

	"github.com/trawl-search/trawl/index/format"
)

// Codec says how the units of a shard are encoded. Its number stands in the
// header of the units; a reader that does not know it refuses the shard.
// Whatever the codec, a unit that it would not make smaller is stored as it is,
// which shows in its length.
type Codec uint32

// Codecs of units.
const (
	// LZ4 is the LZ4 block format without a dictionary: fast to write, and
	// what fresh shards have.
	LZ4 Codec = 0
)

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

// encoder encodes units; its table is reused.
type encoder struct {
	lz4 lz4.Compressor
	buf [SuperblockSize]byte
}

// encode returns the encoding of a non-empty unit: good until the next call,
// and the unit itself when nothing is gained.
func (e *encoder) encode(unit []byte) []byte {
	n, err := e.lz4.CompressBlock(unit, e.buf[:len(unit)-1])
	if err != nil || n == 0 { // it does not fit, so it is not smaller
		return unit
	}
	return e.buf[:n]
}

// decodeUnit decodes a unit whose decoded length is that of dst.
func decodeUnit(dst, encoded []byte) error {
	if len(encoded) >= len(dst) {
		if len(encoded) > len(dst) {
			return fmt.Errorf("a unit of %d bytes takes %d", len(dst), len(encoded))
		}
		copy(dst, encoded)
		return nil
	}
	n, err := lz4.UncompressBlock(encoded, dst)
	if err != nil {
		return fmt.Errorf("a unit does not decode: %w", err)
	}
	if n != len(dst) {
		return fmt.Errorf("a unit decodes to %d bytes, not %d", n, len(dst))
	}
	return nil
}
