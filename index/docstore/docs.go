package docstore

import (
	"fmt"
	"iter"
	"math"
	"sync"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

// Docs reads the documents of a shard. It is safe for concurrent use, holds no
// memory for each document, and is good until the shard is closed. Asking for
// a document, blob or repo that is not there is an error.
type Docs struct {
	info    docsInfo
	content contentInfo

	repoRecords format.Section
	repoOffsets eliasfano.Column
	repoDocs    eliasfano.Column // documents before each repo

	names       units
	nameStarts  eliasfano.Column // bytes of paths before each document
	nameBuffers sync.Pool        // of *unitBuffer

	blobStarts  eliasfano.Column
	firstDocs   eliasfano.Column // the first document of each blob
	repeatDocs  eliasfano.Column // documents that are not the first of their blob
	repeatBlobs array            // and their blobs
	sharedBlobs eliasfano.Column // the same blobs, ascending
	sharedDocs  array            // and their documents
	oids        array            // of each blob
	skipDocs    eliasfano.Column // documents without searchable content
	skips       array            // and why

	languages        array // of each document
	languageSection  format.Section
	languageOnce     sync.Once
	languageNames    []string
	languageErr      error
	branchSets       format.Section
	branchSetOffsets eliasfano.Column
	docBranches      array // set of each document
}

// docsInfo is the section TagDocsInfo.
type docsInfo struct {
	docs, repos, repeats, skips uint32
	languages, sets, oidWidth   uint32
	names                       uint64
}

func readDocsInfo(f *format.File, blobs uint32) (docsInfo, error) {
	s, err := f.Need(format.TagDocsInfo)
	if err != nil {
		return docsInfo{}, err
	}
	d, err := s.Decoder()
	if err != nil {
		return docsInfo{}, err
	}
	info := docsInfo{
		docs: d.U32(), repos: d.U32(), repeats: d.U32(), skips: d.U32(),
		languages: d.U32(), sets: d.U32(), oidWidth: d.U32(), names: d.U64(),
	}
	switch {
	case info.docs > maxUnits || info.repos > maxUnits || info.sets > maxUnits || info.names > math.MaxInt64:
		d.Failf("%d documents of %d repos are impossible", info.docs, info.repos)
	case info.repeats > info.docs || info.docs-info.repeats != blobs:
		d.Failf("%d documents, %d of them with the blob of another, have %d blobs", info.docs, info.repeats, blobs)
	case info.skips > info.docs || info.languages > maxLanguages || info.oidWidth > 32:
		d.Failf("%d skipped documents, %d languages, object ids of %d bytes are impossible", info.skips, info.languages, info.oidWidth)
	case info.docs > 0 && (info.repos == 0 || info.languages == 0 || info.sets == 0):
		d.Failf("%d documents without a repo, language or branch", info.docs)
	}
	return info, d.End()
}

// OpenDocs opens the documents of a shard. It reads a few bytes only.
func OpenDocs(f *format.File) (*Docs, error) {
	content, err := readContentInfo(f)
	if err != nil {
		return nil, err
	}
	info, err := readDocsInfo(f, content.blobs)
	if err != nil {
		return nil, err
	}
	d := &Docs{info: info, content: content}
	if err := d.openRest(f); err != nil {
		return nil, fmt.Errorf("open documents: %w", err)
	}
	return d, nil
}

func (d *Docs) openRest(f *format.File) (err error) {
	if d.repoRecords, err = f.Need(format.TagRepos); err != nil {
		return err
	}
	if d.languageSection, err = f.Need(format.TagLanguageNames); err != nil {
		return err
	}
	if d.branchSets, err = f.Need(format.TagBranchSets); err != nil {
		return err
	}
	if err := d.openArrays(f); err != nil {
		return err
	}
	nameUnits := (d.info.names + SuperblockSize - 1) / SuperblockSize
	if err := d.names.open(f, format.TagNames, format.TagNameOffsets, uint32(min(nameUnits, math.MaxUint32)), d.info.names); err != nil {
		return err
	}
	i, blobs := &d.info, d.content.blobs
	return openLists(f,
		boundaries(&d.repoOffsets, format.TagRepoOffsets, i.repos, uint64(d.repoRecords.Len())),
		boundaries(&d.repoDocs, format.TagRepoDocs, i.repos, uint64(i.docs)),
		boundaries(&d.nameStarts, format.TagNameStarts, i.docs, i.names),
		boundaries(&d.blobStarts, format.TagBlobStarts, blobs, d.content.bytes),
		ordinals(&d.firstDocs, format.TagFirstDocs, blobs, i.docs),
		ordinals(&d.repeatDocs, format.TagRepeatDocs, i.repeats, i.docs),
		ordinals(&d.sharedBlobs, format.TagSharedBlobs, i.repeats, blobs),
		ordinals(&d.skipDocs, format.TagSkipDocs, i.skips, i.docs),
		boundaries(&d.branchSetOffsets, format.TagBranchSetOffsets, i.sets, uint64(d.branchSets.Len())))
}

func (d *Docs) openArrays(f *format.File) error {
	for _, a := range []struct {
		array *array
		tag   format.Tag
		n     uint32
		width int
	}{
		{&d.repeatBlobs, format.TagRepeatBlobs, d.info.repeats, 4},
		{&d.sharedDocs, format.TagSharedDocs, d.info.repeats, 4},
		{&d.oids, format.TagOIDs, d.content.blobs, int(d.info.oidWidth)},
		{&d.skips, format.TagSkips, d.info.skips, skipSize},
		{&d.languages, format.TagLanguages, d.info.docs, widthOf(int(d.info.languages))},
		{&d.docBranches, format.TagDocBranches, d.info.docs, widthOf(int(d.info.sets))},
	} {
		if err := a.array.open(f, a.tag, a.n, a.width); err != nil {
			return err
		}
	}
	return nil
}

// Len is the number of documents.
func (d *Docs) Len() uint32 { return d.info.docs }

// Blobs is the number of blobs.
func (d *Docs) Blobs() uint32 { return d.content.blobs }

// checkDoc refuses documents that are not there.
func (d *Docs) checkDoc(doc uint32) error {
	if doc >= d.info.docs {
		return d.nameStarts.Corruptf("document %d of %d is wanted", doc, d.info.docs)
	}
	return nil
}

// Blob is the blob of a document.
func (d *Docs) Blob(doc uint32) (uint32, error) {
	if err := d.checkDoc(doc); err != nil || d.info.repeats == 0 {
		return doc, err
	}
	list, err := d.repeatDocs.List()
	if err != nil {
		return 0, err
	}
	repeats, repeat := list.Find(uint64(doc))
	if repeat {
		return d.repeatBlobs.number(uint32(repeats), d.content.blobs)
	}
	// Each document that is no repeat has the next blob.
	blob := doc - uint32(min(repeats, int(doc)))
	if blob >= d.content.blobs {
		return 0, d.repeatDocs.Corruptf("document %d has blob %d of %d", doc, blob, d.content.blobs)
	}
	return blob, nil
}

// FirstDoc is the first document of a blob.
func (d *Docs) FirstDoc(blob uint32) (uint32, error) {
	if blob >= d.content.blobs {
		return 0, d.firstDocs.Corruptf("blob %d of %d is wanted", blob, d.content.blobs)
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

// DocsOf yields all documents of a blob, ascending; an error is the last it
// yields. One document, the usual case, is found in constant time.
func (d *Docs) DocsOf(blob uint32) iter.Seq2[uint32, error] {
	return func(yield func(uint32, error) bool) {
		first, err := d.FirstDoc(blob)
		if !yield(first, err) || err != nil || d.info.repeats == 0 {
			return
		}
		d.repeatsOf(blob, yield)
	}
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

// OID is the Git object id of a document: 20 or 32 bytes, or none. It is part
// of the mapping: not to be changed, nor used after the shard is closed.
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

// Skip is why the content of a document is not searchable.
func (d *Docs) Skip(doc uint32) (SkipReason, error) {
	item, err := d.skipItem(doc)
	if err != nil || item == nil {
		return NotSkipped, err
	}
	return SkipReason(item[0]), nil
}

// Size is the size of a document in bytes, at its source when it is skipped.
func (d *Docs) Size(doc uint32) (uint64, error) {
	item, err := d.skipItem(doc)
	if err != nil {
		return 0, err
	}
	if item != nil {
		return le.Uint64(item[1:]), nil
	}
	blob, err := d.Blob(doc)
	if err != nil {
		return 0, err
	}
	n, err := blobLen(&d.blobStarts, blob)
	return uint64(n), err
}

// skipItem returns the record of a skipped document, nil for others.
func (d *Docs) skipItem(doc uint32) ([]byte, error) {
	if err := d.checkDoc(doc); err != nil || d.info.skips == 0 {
		return nil, err
	}
	list, err := d.skipDocs.List()
	if err != nil {
		return nil, err
	}
	i, skipped := list.Find(uint64(doc))
	if !skipped {
		return nil, nil
	}
	item, err := d.skips.item(uint32(i))
	if err == nil && SkipReason(item[0]) == NotSkipped {
		err = d.skips.section.Corruptf(int64(i)*skipSize, "document %d is skipped for no reason", doc)
	}
	return item, err
}

// NextSkipped is the first skipped document at or after doc; false when there
// is none.
func (d *Docs) NextSkipped(doc uint32) (uint32, bool, error) {
	if d.info.skips == 0 {
		return 0, false, nil
	}
	list, err := d.skipDocs.List()
	if err != nil {
		return 0, false, err
	}
	i := list.Search(uint64(doc))
	return uint32(list.At(i)), i < list.Len(), nil
}
