package docstore

import (
	"cmp"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/index/format"
)

const (
	// docsInfoSize is the size of the section TagDocsInfo.
	docsInfoSize = 36
	// skipSize is the size of an item of the section TagSkips.
	skipSize = 9
)

// Close writes all sections of documents. The shard stays open.
func (d *DocsWriter) Close(w *format.Writer) error {
	d.endRepo()
	if d.err == nil && len(d.pending) > 0 {
		d.err = d.nameUnits.add(d.pending)
		d.pending = nil
	}
	if d.err == nil {
		d.err = d.nameUnits.flush()
	}
	s := sectionWriter{w, d.err}
	s.write(format.TagRepos, d.repoRecords)
	writeStarts(&s, format.TagRepoOffsets, 0, d.repoLengths)
	s.writeNumbers(format.TagRepoDocs, append(slices.Clone(d.repoDocs), d.Docs()), d.Docs()+1)
	if s.err == nil && slices.ContainsFunc(d.repoRanks, func(rank byte) bool { return rank > 0 }) {
		s.err = w.WriteSection(format.TagRepoRanks, format.Optional, d.repoRanks)
	}
	s.write(format.TagNames, d.names.Bytes())
	writeStarts(&s, format.TagNameOffsets, unitsHeaderSize, d.nameUnits.lengths)
	writeStarts(&s, format.TagNameStarts, 0, d.paths)
	d.writeBlobs(&s)
	d.writeSkips(&s)
	d.writeLanguages(&s)
	s.write(format.TagBranchSets, d.setRecords)
	writeStarts(&s, format.TagBranchSetOffsets, 0, d.setLengths)
	s.write(format.TagDocBranches, numbers(d.docSet, widthOf(len(d.setLengths))))
	info := make([]byte, 0, docsInfoSize)
	for _, n := range []int{
		len(d.paths), len(d.repoLengths), len(d.repeats), len(d.skips),
		len(d.languages), len(d.setLengths), d.oidWidth,
	} {
		info = le.AppendUint32(info, uint32(n))
	}
	s.write(format.TagDocsInfo, le.AppendUint64(info, d.namesLen))
	d.err = s.err
	return d.err
}

// writeBlobs writes which document has which blob, and the object ids of the
// blobs.
func (d *DocsWriter) writeBlobs(s *sectionWriter) {
	s.writeNumbers(format.TagFirstDocs, d.firstDocs, d.Docs())
	docs, blobs := d.splitRepeats()
	s.writeNumbers(format.TagRepeatDocs, docs, d.Docs())
	s.write(format.TagRepeatBlobs, numbers(blobs, 4))
	// The same pairs again, ordered by blob.
	slices.SortFunc(d.repeats, func(a, b repeat) int {
		return cmp.Or(cmp.Compare(a.blob, b.blob), cmp.Compare(a.doc, b.doc))
	})
	docs, blobs = d.splitRepeats()
	s.writeNumbers(format.TagSharedBlobs, blobs, uint32(len(d.firstDocs)))
	s.write(format.TagSharedDocs, numbers(docs, 4))
	s.write(format.TagOIDs, d.oids)
}

func (d *DocsWriter) splitRepeats() (docs, blobs []uint32) {
	for _, r := range d.repeats {
		docs, blobs = append(docs, r.doc), append(blobs, r.blob)
	}
	return docs, blobs
}

// numbers encodes items of an array.
func numbers[T uint16 | uint32](items []T, width int) []byte {
	data := make([]byte, 0, len(items)*width)
	for _, n := range items {
		data = appendNumber(data, uint32(n), width)
	}
	return data
}

func (d *DocsWriter) writeSkips(s *sectionWriter) {
	docs, items := make([]uint32, 0, len(d.skips)), make([]byte, 0, len(d.skips)*skipSize)
	for _, skip := range d.skips {
		docs = append(docs, skip.doc)
		items = le.AppendUint64(append(items, byte(skip.reason)), skip.size)
	}
	s.writeNumbers(format.TagSkipDocs, docs, d.Docs())
	s.write(format.TagSkips, items)
}

// writeLanguages numbers the languages in the order of their names, not of
// their first use, so that readers can list them in order.
func (d *DocsWriter) writeLanguages(s *sectionWriter) {
	names := slices.Sorted(maps.Keys(d.languages))
	order := make([]uint16, len(names))
	var data []byte
	for i, name := range names {
		order[d.languages[name]] = uint16(i)
		data = format.AppendString(data, name)
	}
	for i, l := range d.docLanguage {
		d.docLanguage[i] = order[l]
	}
	s.write(format.TagLanguageNames, data)
	s.write(format.TagLanguages, numbers(d.docLanguage, widthOf(len(names))))
}
