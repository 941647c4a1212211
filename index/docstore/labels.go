package docstore

import (
	"bytes"
	"math"
	"unicode/utf8"
)

// FindLanguage finds a language by its name.
func (d *Docs) FindLanguage(name string) (id uint16, ok bool, err error) {
	err = d.eachLanguage(func(have []byte) bool {
		if ok = string(have) == name; !ok {
			id++
		}
		return !ok
	})
	return id, ok && err == nil, err
}

// eachLanguage calls f with the names in order until it returns false.
func (d *Docs) eachLanguage(f func(name []byte) bool) error {
	dec, err := d.languageSection.Decoder()
	if err != nil {
		return err
	}
	var last []byte
	for i := range d.info.languages {
		name := dec.BytesWithLength()
		if i > 0 && bytes.Compare(name, last) <= 0 {
			dec.Failf("language %q follows %q", name, last)
		}
		if !utf8.Valid(name) {
			dec.Failf("language %q is not UTF-8", name)
		}
		if dec.Err() != nil || !f(name) {
			return dec.Err()
		}
		last = name
	}
	return dec.End()
}

// Language returns the name of a document's language.
func (d *Docs) Language(doc uint32) (string, error) {
	id, err := d.LanguageID(doc)
	if err != nil {
		return "", err
	}
	return d.LanguageName(id)
}

// LanguageName returns the name of a language.
func (d *Docs) LanguageName(id uint16) (found string, err error) {
	if uint32(id) >= d.info.languages {
		return "", d.languageSection.Corruptf(0, "no language %d: there are %d", id, d.info.languages)
	}
	i := uint16(0)
	err = d.eachLanguage(func(name []byte) bool {
		if i == id {
			found = string(name)
		}
		i++
		return i <= id
	})
	return found, err
}

// LanguageID returns the language of a document. Languages are numbered from 0 in the order of
// their names.
func (d *Docs) LanguageID(doc uint32) (uint16, error) {
	if err := d.checkDoc(doc); err != nil {
		return 0, err
	}
	n, err := d.languages.number(doc, d.info.languages)
	return uint16(n), err
}

// BranchSet returns the number of a document's set of branches. A caller that
// reads the branches of many documents can remember the result per repo and
// set.
func (d *Docs) BranchSet(doc uint32) (uint32, error) {
	if err := d.checkDoc(doc); err != nil {
		return 0, err
	}
	return d.docBranches.number(doc, d.info.sets)
}

// AppendBranchSet appends the branches of a set to dst, ascending. They are
// indexes into the Branches of a repo. In a corrupt shard they may be out of
// its range, which AppendBranches checks.
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
		return dst, d.branchSetOffsets.Corruptf("no branch set %d: there are %d", set, d.info.sets)
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
	n := dec.Count(1)
	if n == 0 {
		dec.Failf("a set without a branch")
	}
	for range n {
		branch := next + dec.UvarintMax(math.MaxUint32)
		if branch >= limit {
			dec.Failf("no branch %d: there are %d", branch, limit)
			break
		}
		out, next = append(out, uint32(branch)), branch+1
	}
	if err := dec.End(); err != nil {
		return dst, err
	}
	return out, nil
}
