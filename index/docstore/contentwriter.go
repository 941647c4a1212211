package docstore

import (
	"bytes"
	"fmt"
	"math"

	"github.com/trawl-search/trawl/index/format"
)

var newline = []byte{'\n'}

// contentInfoSize is the size of the section TagContentInfo.
const contentInfoSize = 24

// ContentWriter writes the contents of a shard as they come. From NewContentWriter to Close the
// section of units is open, so nothing else may be written to the shard. It buffers up to 8 MiB
// until it knows their dictionary, and as much again for each processor that it uses. It keeps four
// bytes for each superblock, four for each blob, and the dictionaries, which are at most a
// sixteenth of the contents. The first error stays. It is not safe for concurrent use.
type ContentWriter struct {
	w     *format.Writer
	units *unitWriter
	err   error

	lines   []uint16 // newlines of each unit
	lengths []uint32 // bytes of each blob
	bytes   uint64
	newline uint64
}

// NewContentWriter starts the section of units. It encodes on that many processors,
// including the caller's. Their number does not change what it writes.
func NewContentWriter(w *format.Writer, effort Effort, processors int) (*ContentWriter, error) {
	if err := w.Begin(format.TagUnits, format.Required); err != nil {
		return nil, fmt.Errorf("begin the units of content: %w", err)
	}
	u, err := newUnitWriter(w, effort, unitsPerDictionary, processors-1)
	if err != nil {
		return nil, err
	}
	return &ContentWriter{w: w, units: u}, nil
}

// Add adds the next blob and returns its first superblock. Blobs are numbered in the order of the
// calls, from 0. The caller may change the blob afterwards.
func (c *ContentWriter) Add(blob []byte) (firstSuperblock uint32, err error) {
	firstSuperblock = uint32(c.units.units())
	switch {
	case c.err != nil:
	case len(blob) > math.MaxUint32:
		c.err = fmt.Errorf("a blob of %d bytes, at most %d are possible", len(blob), uint32(math.MaxUint32))
	case len(c.lengths) == maxUnits:
		c.err = fmt.Errorf("a shard holds at most %d blobs", maxUnits)
	default:
		c.lengths = append(c.lengths, uint32(len(blob)))
		c.bytes += uint64(len(blob))
		for len(blob) > 0 && c.err == nil {
			unit := blob[:min(len(blob), SuperblockSize)]
			blob = blob[len(unit):]
			c.err = c.units.add(unit)
			n := bytes.Count(unit, newline)
			c.lines = append(c.lines, uint16(n))
			c.newline += uint64(n)
		}
	}
	return firstSuperblock, c.err
}

// Blobs returns the number of blobs added.
func (c *ContentWriter) Blobs() uint32 { return uint32(len(c.lengths)) }

// Superblocks returns the number of superblocks of the blobs added.
func (c *ContentWriter) Superblocks() uint32 { return uint32(c.units.units()) }

// Abandon stops the writer without writing more. The caller must call it or Close: after either, no
// goroutine is encoding.
func (c *ContentWriter) Abandon() { c.units.abandon() }

// Close ends the units and writes the other sections of content.
func (c *ContentWriter) Close() error {
	defer c.units.abandon()
	if c.err != nil {
		return c.err
	}
	c.err = c.writeSections()
	return c.err
}

func (c *ContentWriter) writeSections() error {
	if err := c.units.flush(); err != nil {
		return err
	}
	if err := c.w.End(); err != nil {
		return fmt.Errorf("end the units of content: %w", err)
	}
	s := sectionWriter{c.w, c.units.writeDictionaries(c.w, format.TagDictionaries)}
	writeStarts(&s, format.TagUnitOffsets, unitsHeaderSize, c.units.lengths)
	writeStarts(&s, format.TagLines, 0, c.lines)
	writeStarts(&s, format.TagBlobStarts, 0, c.lengths)
	superblocks := make([]uint32, len(c.lengths))
	for i, n := range c.lengths {
		superblocks[i] = SuperblocksOf(uint64(n))
	}
	writeStarts(&s, format.TagBlobSuperblocks, 0, superblocks)
	info := le.AppendUint32(make([]byte, 0, contentInfoSize), c.Blobs())
	info = le.AppendUint32(info, c.Superblocks())
	info = le.AppendUint64(info, c.bytes)
	info = le.AppendUint64(info, c.newline)
	s.write(format.TagContentInfo, info)
	return s.err
}

// SuperblocksOf returns the number of superblocks of a text of n bytes.
func SuperblocksOf(n uint64) uint32 { return uint32((n + SuperblockSize - 1) / SuperblockSize) }
