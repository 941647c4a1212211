package docstore

import (
	"sync"

	"github.com/trawl-search/trawl/index/eliasfano"
)

// namesAhead is the most bytes of encoded paths that are announced at once: about 100,000 paths.
const namesAhead = 1 << 20

// AnnounceNames announces that paths of a few documents will be read, which may be anywhere; see
// format.Announcer.
func (d *Docs) AnnounceNames() {
	for _, column := range []*eliasfano.Column{&d.firstDocs, &d.nameStarts, &d.names.offsets} {
		column.Announce()
	}
	if n := d.names.section.Len(); n <= namesAhead {
		d.names.section.Soon(0, n)
	}
}

// NamesLen returns the length in bytes of all paths together. This is the text of the n-gram index
// over names. Its superblock s starts at s·SuperblockSize.
func (d *Docs) NamesLen() uint64 { return d.info.names }

// PathRange returns where the path of a document is in the names: [start, end).
func (d *Docs) PathRange(doc uint32) (start, end uint64, err error) {
	if err := d.checkDoc(doc); err != nil {
		return 0, 0, err
	}
	list, err := d.nameStarts.List()
	if err != nil {
		return 0, 0, err
	}
	start, end = list.At2(int(doc))
	if end <= start || end-start > MaxPath {
		return 0, 0, d.nameStarts.Corruptf("the path of document %d reaches from %d to %d", doc, start, end)
	}
	return start, end, nil
}

// DocAt returns the document whose path contains a byte of the names.
func (d *Docs) DocAt(off uint64) (uint32, error) {
	if off >= d.info.names {
		return 0, d.nameStarts.Corruptf("no byte %d of the names: there are %d", off, d.info.names)
	}
	list, err := d.nameStarts.List()
	if err != nil {
		return 0, err
	}
	doc := list.Last(off)
	if doc < 0 || doc >= int(d.info.docs) {
		return 0, d.nameStarts.Corruptf("byte %d of the names belongs to no document", off)
	}
	return uint32(doc), nil
}

// PathStarts returns, for each document, where its path starts in the names. It ends where the next
// one starts. The list is valid until the shard is closed, and may be hostile.
func (d *Docs) PathStarts() (eliasfano.List, error) { return d.nameStarts.List() }

// AppendPath appends the path of a document to dst. Reading the paths of neighbours one after the
// other is cheap. On an error it returns dst unchanged.
func (d *Docs) AppendPath(dst []byte, doc uint32) ([]byte, error) {
	start, end, err := d.PathRange(doc)
	if err != nil {
		return dst, err
	}
	return d.appendNames(dst, start, end)
}

// AppendNames appends n bytes of the names from off to dst; fewer, or none, if the names end
// before. On an error it returns dst unchanged.
func (d *Docs) AppendNames(dst []byte, off uint64, n uint32) ([]byte, error) {
	if off >= d.info.names {
		return dst, nil
	}
	return d.appendNames(dst, off, off+min(uint64(n), d.info.names-off))
}

// nameBuffers keep the last unit of paths, which is often needed again. They are pooled, so that an
// open shard without searches has none.
var nameBuffers = sync.Pool{New: func() any { return new(unitBuffer) }}

func (d *Docs) appendNames(dst []byte, off, end uint64) ([]byte, error) {
	buf, _ := nameBuffers.Get().(*unitBuffer)
	buf.kept = 0 // a buffer serves many searches
	// If a fault unwinds the stack, the buffer is not returned, since its content is unknown.
	out, err := buf.appendRange(dst, &d.names, 0, d.info.names, off, end)
	nameBuffers.Put(buf)
	return out, err
}
