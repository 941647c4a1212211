package docstore

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
)

// Docs reads the documents of a shard. It is safe for concurrent use, keeps no
// memory per document, and is valid until the shard is closed. Its methods
// return an error for a document, blob or repo that does not exist.
type Docs struct {
	info    docsInfo
	content contentInfo

	repoRecords format.Section
	repoOffsets eliasfano.Column
	repoDocs    eliasfano.Column // documents before each repo
	repoRanks   array            // of each repo; closed if all ranks are 0
	// leastRank and mostRank are the bounds of all ranks.
	leastRank, mostRank uint8

	names      units
	nameStarts eliasfano.Column // bytes of paths before each document

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
	d, err := f.Decode(format.TagDocsInfo)
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

// OpenDocs opens the documents of a shard. It reads only a few bytes.
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
	if uint64(d.info.repos) > uint64(d.repoRecords.Len()) { // each takes a byte; searches make room for each before they read any
		return d.repoRecords.Corruptf(0, "%d bytes cannot hold %d repos", d.repoRecords.Len(), d.info.repos)
	}
	if d.languageSection, err = f.Need(format.TagLanguageNames); err != nil {
		return err
	}
	if d.branchSets, err = f.Need(format.TagBranchSets); err != nil {
		return err
	}
	if err := cmp.Or(d.openArrays(f), d.openRanks(f)); err != nil {
		return err
	}
	nameUnits := (d.info.names + SuperblockSize - 1) / SuperblockSize
	if err := d.names.open(f, unitTags{data: format.TagNames, offsets: format.TagNameOffsets}, uint32(min(nameUnits, math.MaxUint32)), d.info.names); err != nil {
		return err
	}
	i, blobs := &d.info, d.content.blobs
	return cmp.Or(
		d.repoOffsets.OpenBoundaries(f, format.TagRepoOffsets, i.repos, uint64(d.repoRecords.Len())),
		d.repoDocs.OpenBoundaries(f, format.TagRepoDocs, i.repos, uint64(i.docs)),
		d.nameStarts.OpenBoundaries(f, format.TagNameStarts, i.docs, i.names),
		d.blobStarts.OpenBoundaries(f, format.TagBlobStarts, blobs, d.content.bytes),
		d.firstDocs.Open(f, format.TagFirstDocs, int(blobs), uint64(i.docs)),
		d.repeatDocs.Open(f, format.TagRepeatDocs, int(i.repeats), uint64(i.docs)),
		d.sharedBlobs.Open(f, format.TagSharedBlobs, int(i.repeats), uint64(blobs)),
		d.skipDocs.Open(f, format.TagSkipDocs, int(i.skips), uint64(i.docs)),
		d.branchSetOffsets.OpenBoundaries(f, format.TagBranchSetOffsets, i.sets, uint64(d.branchSets.Len())))
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

// openRanks opens the ranks of repos, if there are any, and reads which is the lowest and which the highest.
func (d *Docs) openRanks(f *format.File) error {
	if _, some := f.Section(format.TagRepoRanks); !some || d.info.repos == 0 {
		return nil
	}
	if err := d.repoRanks.open(f, format.TagRepoRanks, d.info.repos, 1); err != nil {
		return err
	}
	ranks, err := d.repoRanks.section.All()
	if err != nil {
		return err
	}
	d.leastRank, d.mostRank = slices.Min(ranks), slices.Max(ranks)
	if d.mostRank > MaxRank {
		return d.repoRanks.section.Corruptf(0, "a repo has the rank %d, at most %d is possible", d.mostRank, MaxRank)
	}
	return nil
}
