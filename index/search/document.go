package search

import "math"

// span is a match in a text, [start, end).
type span struct{ start, end uint32 }

// document is the current document and what is known of it. A search reuses one for all documents.
type document struct {
	s    *search
	id   uint32
	blob uint32
	repo int

	path     []byte // valid when hasPath
	hasPath  bool
	built    []uint32 // branches of the shard
	branches []uint32 // branches now; valid when hasBr
	hasBr    bool
}

func (d *document) reset(id, blob uint32, repo int) {
	d.id, d.blob, d.repo = id, blob, repo
	d.hasPath, d.hasBr = false, false
}

// loadPath returns the document's path. It is valid until the next document.
func (d *document) loadPath() (path []byte, err error) {
	if !d.hasPath {
		if d.path, err = d.s.docs.AppendPath(d.path[:0], d.id); err != nil {
			return nil, err
		}
		d.hasPath = true
	}
	return d.path, nil
}

// loadBranches returns the ordinals of the branches that hold the document now. They are valid
// until the next document.
func (d *document) loadBranches() (branches []uint32, err error) {
	if !d.hasBr {
		if d.built, err = d.s.docs.AppendBranches(d.built[:0], d.id); err != nil {
			return nil, err
		}
		view, err := d.s.branchesNow(d.repo)
		if err != nil {
			return nil, err
		}
		d.branches, d.hasBr = view.at(d.branches[:0], d.built), true
	}
	return d.branches, nil
}

// blobText is the content of one blob or its first bytes, kept while the blob is searched or shown.
type blobText struct {
	blob  uint32
	text  []byte
	valid bool
	whole bool
}

// holds reports whether t is the whole content of a blob.
func (t *blobText) holds(blob uint32) bool { return t.whole && t.has(blob, 0) }

// has reports whether t has the first bytes of a blob.
func (t *blobText) has(blob, bytes uint32) bool {
	return t.valid && t.blob == blob && int64(len(t.text)) >= int64(bytes)
}

// load returns the content of a blob.
func (t *blobText) load(s *search, blob uint32) ([]byte, error) {
	return t.loadUpTo(s, blob, math.MaxUint32)
}

// loadUpTo returns the first bytes of a blob: that many, all if there are fewer, or more if t has
// them already.
func (t *blobText) loadUpTo(s *search, blob, bytes uint32) ([]byte, error) {
	if t.whole && t.has(blob, 0) || t.has(blob, bytes) {
		return t.text, nil
	}
	length, err := s.content.Len(blob)
	if err != nil {
		return nil, err
	}
	if !t.has(blob, 0) {
		t.text = t.text[:0]
	}
	t.valid = false
	had := uint32(len(t.text))
	if err := s.announceLong(blob, had, min(bytes, length)); err != nil {
		return nil, err
	}
	if t.text, err = s.read(t.text, blob, had, min(bytes, length)-had); err != nil {
		return nil, err
	}
	t.whole = bytes >= length
	t.blob, t.valid = blob, true
	return t.text, nil
}

// part returns bytes [from, from+n) of a blob, or those that it has of them, if t has them; otherwise nil.
func (t *blobText) part(blob, from, n uint32) []byte {
	switch {
	case t.has(blob, from+n):
		return t.text[from : from+n]
	case t.holds(blob) && int(from) < len(t.text):
		return t.text[from:]
	}
	return nil
}
