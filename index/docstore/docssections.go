package docstore

import (
	"cmp"
	"iter"
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
	for _, write := range []func(*format.Writer) error{
		d.writeRepos, d.writeNames, d.writeBlobs, d.writeSkips, d.writeLanguages, d.writeBranches, d.writeInfo,
	} {
		if d.err == nil {
			d.err = write(w)
		}
	}
	return d.err
}

// writeSection writes a required section.
func writeSection(w *format.Writer, tag format.Tag, data []byte) error {
	return w.WriteSection(tag, format.Required, data)
}

func (d *DocsWriter) writeRepos(w *format.Writer) error {
	if err := writeSection(w, format.TagRepos, d.repoRecords); err != nil {
		return err
	}
	if err := writeList(w, format.TagRepoOffsets, len(d.repoLengths)+1, uint64(len(d.repoRecords))+1, sums(0, d.repoLengths)); err != nil {
		return err
	}
	starts := append(slices.Clone(d.repoDocs), d.Docs())
	if err := writeList(w, format.TagRepoDocs, len(starts), uint64(d.Docs())+1, widened(starts)); err != nil {
		return err
	}
	if !slices.ContainsFunc(d.repoRanks, func(rank byte) bool { return rank > 0 }) {
		return nil
	}
	return w.WriteSection(format.TagRepoRanks, format.Optional, d.repoRanks)
}

// widened yields numbers in the type that lists take.
func widened(numbers []uint32) iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		for _, n := range numbers {
			if !yield(uint64(n)) {
				return
			}
		}
	}
}

func (d *DocsWriter) writeNames(w *format.Writer) error {
	if err := writeSection(w, format.TagNames, d.names.Bytes()); err != nil {
		return err
	}
	if err := d.nameUnits.writeOffsets(w, format.TagNameOffsets); err != nil {
		return err
	}
	return writeList(w, format.TagNameStarts, len(d.paths)+1, d.namesLen+1, sums(0, d.paths))
}

// writeBlobs writes which document has which blob, and the object ids of the
// blobs.
func (d *DocsWriter) writeBlobs(w *format.Writer) error {
	docs, blobs := uint64(d.Docs()), uint64(len(d.firstDocs))
	if err := writeList(w, format.TagFirstDocs, len(d.firstDocs), docs, widened(d.firstDocs)); err != nil {
		return err
	}
	repeatDocs, repeatBlobs := d.splitRepeats()
	if err := writeList(w, format.TagRepeatDocs, len(repeatDocs), docs, widened(repeatDocs)); err != nil {
		return err
	}
	if err := writeSection(w, format.TagRepeatBlobs, numbers(repeatBlobs, 4)); err != nil {
		return err
	}
	// The same pairs again, ordered by blob.
	slices.SortFunc(d.repeats, func(a, b repeat) int {
		return cmp.Or(cmp.Compare(a.blob, b.blob), cmp.Compare(a.doc, b.doc))
	})
	repeatDocs, repeatBlobs = d.splitRepeats()
	if err := writeList(w, format.TagSharedBlobs, len(repeatBlobs), blobs, widened(repeatBlobs)); err != nil {
		return err
	}
	if err := writeSection(w, format.TagSharedDocs, numbers(repeatDocs, 4)); err != nil {
		return err
	}
	return writeSection(w, format.TagOIDs, d.oids)
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

func (d *DocsWriter) writeSkips(w *format.Writer) error {
	docs, items := make([]uint32, 0, len(d.skips)), make([]byte, 0, len(d.skips)*skipSize)
	for _, s := range d.skips {
		docs = append(docs, s.doc)
		items = le.AppendUint64(append(items, byte(s.reason)), s.size)
	}
	if err := writeList(w, format.TagSkipDocs, len(docs), uint64(d.Docs()), widened(docs)); err != nil {
		return err
	}
	return writeSection(w, format.TagSkips, items)
}

// writeLanguages numbers the languages in the order of their names, not of
// their first use, so that readers can list them in order.
func (d *DocsWriter) writeLanguages(w *format.Writer) error {
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
	if err := writeSection(w, format.TagLanguageNames, data); err != nil {
		return err
	}
	return writeSection(w, format.TagLanguages, numbers(d.docLanguage, widthOf(len(names))))
}

func (d *DocsWriter) writeBranches(w *format.Writer) error {
	if err := writeSection(w, format.TagBranchSets, d.setRecords); err != nil {
		return err
	}
	if err := writeList(w, format.TagBranchSetOffsets, len(d.setLengths)+1, uint64(len(d.setRecords))+1, sums(0, d.setLengths)); err != nil {
		return err
	}
	return writeSection(w, format.TagDocBranches, numbers(d.docSet, widthOf(len(d.setLengths))))
}

func (d *DocsWriter) writeInfo(w *format.Writer) error {
	info := make([]byte, 0, docsInfoSize)
	for _, n := range []int{
		len(d.paths), len(d.repoLengths), len(d.repeats), len(d.skips),
		len(d.languages), len(d.setLengths), d.oidWidth,
	} {
		info = le.AppendUint32(info, uint32(n))
	}
	return writeSection(w, format.TagDocsInfo, le.AppendUint64(info, d.namesLen))
}
