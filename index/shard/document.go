package shard

// span is a match in a text, [start, end).
type span struct{ start, end uint32 }

// document is what is known of the document that is being decided. One is
// reused for all documents of a search.
type document struct {
	s    *search
	id   uint32
	blob uint32
	repo int

	path     []byte // valid when hasPath
	hasPath  bool
	built    []uint32 // branches of the shard
	branches []uint32 // those now; valid when hasBr
	hasBr    bool
}

func (d *document) reset(id, blob uint32, repo int) {
	d.id, d.blob, d.repo = id, blob, repo
	d.hasPath, d.hasBr = false, false
}

// loadPath returns the document's path, valid until the next document.
func (d *document) loadPath() (path []byte, err error) {
	if !d.hasPath {
		if d.path, err = d.s.docs.AppendPath(d.path[:0], d.id); err != nil {
			return nil, err
		}
		d.hasPath = true
	}
	return d.path, nil
}

// loadBranches returns ordinals of the branches that the document is on now, valid until
// the next document.
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

// blobText is the whole content of one blob, kept while it is decided.
type blobText struct {
	blob  uint32
	text  []byte
	valid bool
}

// holds reports whether it has the content of a blob.
func (t *blobText) holds(blob uint32) bool { return t.valid && t.blob == blob }

func (t *blobText) load(s *search, blob uint32) ([]byte, error) {
	if t.holds(blob) {
		return t.text, nil
	}
	n, err := s.content.Len(blob)
	if err != nil {
		return nil, err
	}
	t.valid = false
	if t.text, err = s.read(t.text[:0], blob, 0, n); err != nil {
		return nil, err
	}
	t.blob, t.valid = blob, true
	return t.text, nil
}
