package docstore

import (
	"iter"

	"github.com/trawl-search/trawl/index/eliasfano"
)

// Len returns the number of documents.
func (d *Docs) Len() uint32 { return d.info.docs }

// checkDoc returns an error for a document that does not exist.
func (d *Docs) checkDoc(doc uint32) error {
	if doc >= d.info.docs {
		return d.nameStarts.Corruptf("no document %d: there are %d", doc, d.info.docs)
	}
	return nil
}

// Blob returns the blob of a document.
func (d *Docs) Blob(doc uint32) (uint32, error) {
	if err := d.checkDoc(doc); err != nil || d.info.repeats == 0 {
		return doc, err
	}
	list, err := d.repeatDocs.List()
	if err != nil {
		return 0, err
	}
	repeats, repeat := list.Find(uint64(doc))
	return d.blobAfter(doc, repeats, repeat)
}

// blobAfter returns the blob of a document after that many repeats; repeat says that it is one.
func (d *Docs) blobAfter(doc uint32, repeats int, repeat bool) (uint32, error) {
	if repeat {
		return d.repeatBlobs.number(uint32(repeats), d.content.blobs)
	}
	// Each document that is not a repeat has the next blob.
	blob := doc - uint32(min(repeats, int(doc)))
	if blob >= d.content.blobs {
		return 0, d.repeatDocs.Corruptf("document %d has blob %d of %d", doc, blob, d.content.blobs)
	}
	return blob, nil
}

// AppendBlobs appends the blob of each of some documents, which ascend.
func (d *Docs) AppendBlobs(dst []uint32, docs []uint32) ([]uint32, error) {
	if d.info.repeats == 0 {
		return append(dst, docs...), nil
	}
	list, err := d.repeatDocs.List()
	if err != nil {
		return dst, err
	}
	var before repeatsBefore
	for _, doc := range docs {
		before.seek(&list, doc)
		blob, err := d.blobAfter(doc, before.n, before.some && before.next == uint64(doc))
		if err != nil {
			return dst, err
		}
		dst = append(dst, blob)
	}
	return dst, nil
}

// FirstDoc returns the first document of a blob.
func (d *Docs) FirstDoc(blob uint32) (uint32, error) {
	if blob >= d.content.blobs {
		return 0, d.firstDocs.Corruptf("no blob %d: there are %d", blob, d.content.blobs)
	}
	if d.info.repeats == 0 {
		return blob, nil
	}
	list, err := d.firstDocs.List()
	if err != nil {
		return 0, err
	}
	return uint32(list.At(int(blob))), nil
}

// DocsOf yields all documents of a blob, ascending. An error ends it. The usual case of one
// document takes constant time.
func (d *Docs) DocsOf(blob uint32) iter.Seq2[uint32, error] {
	return func(yield func(uint32, error) bool) {
		first, err := d.FirstDoc(blob)
		if !yield(first, err) || err != nil || d.info.repeats == 0 {
			return
		}
		d.repeatsOf(blob, yield)
	}
}

// SharedBlobs lists, ascending, the blob of each document that is not the first of its blob. It is
// valid until the shard is closed.
func (d *Docs) SharedBlobs() (eliasfano.List, error) {
	if d.info.repeats == 0 {
		return eliasfano.List{}, nil
	}
	return d.sharedBlobs.List()
}

// repeatsOf yields the documents of a blob after the first.
func (d *Docs) repeatsOf(blob uint32, yield func(uint32, error) bool) {
	list, err := d.sharedBlobs.List()
	if err != nil {
		yield(0, err)
		return
	}
	for i := list.Search(uint64(blob)); i < list.Len() && list.At(i) == uint64(blob); i++ {
		doc, err := d.sharedDocs.number(uint32(i), d.info.docs)
		if !yield(doc, err) || err != nil {
			return
		}
	}
}

// OID returns the Git object id of a document: 20 or 32 bytes, or none. It is part of the mapping:
// the caller must not change it, nor use it after the shard is closed.
func (d *Docs) OID(doc uint32) ([]byte, error) {
	blob, err := d.Blob(doc)
	if err != nil {
		return nil, err
	}
	repo, err := d.RepoOf(doc)
	if err != nil {
		return nil, err
	}
	head, err := d.repoHead(repo)
	if err != nil {
		return nil, err
	}
	oid, err := d.oids.item(blob)
	if err != nil {
		return nil, err
	}
	return oid[:min(head.oidLength, len(oid))], nil
}
