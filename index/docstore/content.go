package docstore

import (
	"cmp"
	"iter"
	"math"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

// Content reads the contents of a shard. It is safe for concurrent use, keeps no memory per blob,
// and is valid until the shard is closed.
type Content struct {
	info        contentInfo
	units       units
	lines       eliasfano.Column // newlines before each superblock
	starts      eliasfano.Column // bytes before each blob
	superblocks eliasfano.Column // superblocks before each blob
}

// contentInfo is the section TagContentInfo.
type contentInfo struct {
	blobs, superblocks uint32
	bytes, newlines    uint64
}

func readContentInfo(f *format.File) (contentInfo, error) {
	d, err := f.Decode(format.TagContentInfo)
	if err != nil {
		return contentInfo{}, err
	}
	info := contentInfo{blobs: d.U32(), superblocks: d.U32(), bytes: d.U64(), newlines: d.U64()}
	if info.blobs > maxUnits || info.bytes > math.MaxInt64 || info.newlines > info.bytes {
		d.Failf("%d blobs of %d bytes with %d newlines are impossible", info.blobs, info.bytes, info.newlines)
	}
	return info, d.End()
}

// OpenContent opens the contents of a shard. It reads only a few bytes.
func OpenContent(f *format.File) (*Content, error) {
	info, err := readContentInfo(f)
	if err != nil {
		return nil, err
	}
	c := &Content{info: info}
	if err := c.units.open(f, unitTags{format.TagUnits, format.TagUnitOffsets, format.TagDictionaries}, info.superblocks, info.bytes); err != nil {
		return nil, err
	}
	return c, cmp.Or(
		c.lines.OpenBoundaries(f, format.TagLines, info.superblocks, info.newlines),
		c.starts.OpenBoundaries(f, format.TagBlobStarts, info.blobs, info.bytes),
		c.superblocks.OpenBoundaries(f, format.TagBlobSuperblocks, info.blobs, uint64(info.superblocks)))
}

// Announces reports whether announcing has any effect.
func (c *Content) Announces() bool { return c.units.section.Announces() }

// Announce announces that contents will be looked for; see format.Announcer.
func (c *Content) Announce() {
	for _, column := range []*eliasfano.Column{&c.units.offsets, &c.lines, &c.starts, &c.superblocks} {
		column.Announce()
	}
}

// AnnounceSuperblocks announces that ascending superblocks will be read.
func (c *Content) AnnounceSuperblocks(superblocks iter.Seq[uint32]) error {
	return c.units.announce(superblocks)
}

// Blobs returns the number of blobs.
func (c *Content) Blobs() uint32 { return c.info.blobs }

// Superblocks returns the number of superblocks of all blobs.
func (c *Content) Superblocks() uint32 { return c.info.superblocks }

// Bytes returns the sum of the lengths of all blobs.
func (c *Content) Bytes() uint64 { return c.info.bytes }

// Len returns the length of a blob in bytes.
func (c *Content) Len(blob uint32) (uint32, error) {
	if blob >= c.info.blobs {
		return 0, c.noBlob(blob)
	}
	return blobLen(&c.starts, blob)
}

// blobLen reads a blob's length from the list of starts.
func blobLen(starts *eliasfano.Column, blob uint32) (uint32, error) {
	list, err := starts.List()
	if err != nil {
		return 0, err
	}
	from, to := list.At2(int(blob))
	if to < from || to-from > math.MaxUint32 {
		return 0, starts.Corruptf("blob %d reaches from %d to %d", blob, from, to)
	}
	return uint32(to - from), nil
}

// FirstSuperblock returns the first superblock of a blob, or for blob = Blobs() the number of all.
// The superblocks of a blob end where those of the next one start.
func (c *Content) FirstSuperblock(blob uint32) (uint32, error) {
	if blob > c.info.blobs {
		return 0, c.noBlob(blob)
	}
	list, err := c.superblocks.List()
	if err != nil {
		return 0, err
	}
	return uint32(list.At(int(blob))), nil
}

// BlobOf returns the blob that a superblock belongs to.
func (c *Content) BlobOf(superblock uint32) (uint32, error) {
	if superblock >= c.info.superblocks {
		return 0, c.superblocks.Corruptf("no superblock %d: there are %d", superblock, c.info.superblocks)
	}
	list, err := c.superblocks.List()
	if err != nil {
		return 0, err
	}
	blob := list.Last(uint64(superblock))
	if blob < 0 || blob >= int(c.info.blobs) {
		return 0, c.superblocks.Corruptf("superblock %d belongs to no blob", superblock)
	}
	return uint32(blob), nil
}

// Span returns the first superblock of a blob and its length in bytes. All of its superblocks
// exist.
func (c *Content) Span(blob uint32) (firstSuperblock, length uint32, err error) {
	length, err = c.Len(blob)
	if err != nil {
		return 0, 0, err
	}
	list, err := c.superblocks.List()
	if err != nil {
		return 0, 0, err
	}
	first, end := list.At2(int(blob))
	if end < first || end-first != uint64(SuperblocksOf(uint64(length))) {
		return 0, 0, c.superblocks.Corruptf("blob %d has %d bytes in the superblocks from %d to %d", blob, length, first, end)
	}
	return uint32(first), length, nil
}

func (c *Content) noBlob(blob uint32) error {
	return c.superblocks.Corruptf("no blob %d: there are %d", blob, c.info.blobs)
}

// SuperblockStarts returns FirstSuperblock for all blobs. It is valid until the shard is closed.
func (c *Content) SuperblockStarts() (eliasfano.List, error) { return c.superblocks.List() }
