package docstore

import (
	"math"

	"github.com/trawl-search/trawl/index/format"
)

// Languages returns the names of all languages, ascending; Language's ids are
// indexes into it. A document whose language is not known has the empty one.
// The slice is shared and must not be changed.
func (d *Docs) Languages() ([]string, error) {
	d.languageOnce.Do(func() {
		// Stands if a fault of the mapping unwinds the stack from here.
		d.languageErr = d.languageSection.Corruptf(0, "the languages could not be read")
		d.languageNames, d.languageErr = d.readLanguages()
	})
	return d.languageNames, d.languageErr
}

func (d *Docs) readLanguages() ([]string, error) {
	dec, err := d.languageSection.Decoder()
	if err != nil {
		return nil, err
	}
	if int(d.info.languages) > dec.Left() {
		dec.Failf("%d languages in %d bytes", d.info.languages, dec.Left())
		return nil, dec.Err()
	}
	names := make([]string, d.info.languages)
	for i := range names {
		names[i] = dec.String()
		if i > 0 && names[i] <= names[i-1] {
			dec.Failf("language %q follows %q", names[i], names[i-1])
		}
	}
	return names, dec.End()
}

// Language is the language of a document: its name, and its index in Languages.
func (d *Docs) Language(doc uint32) (name string, id uint16, err error) {
	if err := d.checkDoc(doc); err != nil {
		return "", 0, err
	}
	n, err := d.languages.number(doc, d.info.languages)
	if err != nil {
		return "", 0, err
	}
	names, err := d.Languages()
	if err != nil {
		return "", 0, err
	}
	return names[n], uint16(n), nil
}

// BranchSets is the number of distinct sets of branches.
func (d *Docs) BranchSets() uint32 { return d.info.sets }

// BranchSet is the set of branches of a document, by its number: what to
// remember per repo and set when many documents are asked for their branches.
func (d *Docs) BranchSet(doc uint32) (uint32, error) {
	if err := d.checkDoc(doc); err != nil {
		return 0, err
	}
	return d.docBranches.number(doc, d.info.sets)
}

// AppendBranchSet appends the branches of a set, ascending, to dst. They are
// indexes into the Branches of a repo, which may have fewer of them if the
// shard is corrupt; AppendBranches checks that.
func (d *Docs) AppendBranchSet(dst []uint32, set uint32) ([]uint32, error) {
	return d.appendBranchSet(dst, set, math.MaxUint32)
}

// AppendBranches appends the branches of a document to dst: ascending indexes
// into the Branches of its repo.
func (d *Docs) AppendBranches(dst []uint32, doc uint32) ([]uint32, error) {
	set, err := d.BranchSet(doc)
	if err != nil {
		return dst, err
	}
	repo, err := d.RepoOf(doc)
	if err != nil {
		return dst, err
	}
	head, err := d.repoHead(repo)
	if err != nil {
		return dst, err
	}
	return d.appendBranchSet(dst, set, uint64(head.branches))
}

// appendBranchSet appends the branches of a set, each below limit.
func (d *Docs) appendBranchSet(dst []uint32, set uint32, limit uint64) ([]uint32, error) {
	if set >= d.info.sets {
		return dst, d.branchSetOffsets.Corruptf("branch set %d of %d is wanted", set, d.info.sets)
	}
	list, err := d.branchSetOffsets.List()
	if err != nil {
		return dst, err
	}
	from, to := list.At2(int(set))
	dec, err := d.branchSets.DecoderAt(int64(from), int64(to)-int64(from))
	if err != nil {
		return dst, err
	}
	out, next := dst, uint64(0)
	for range decodeBranchCount(dec) {
		branch := next + dec.UvarintMax(math.MaxUint32)
		if branch >= limit {
			dec.Failf("branch %d, there are %d", branch, limit)
			break
		}
		out, next = append(out, uint32(branch)), branch+1
	}
	if err := dec.End(); err != nil {
		return dst, err
	}
	return out, nil
}

func decodeBranchCount(dec *format.Decoder) int {
	n := dec.Count(1)
	if n == 0 {
		dec.Failf("a set without a branch")
	}
	return n
}
