package docstore

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"
)

const (
	// maxLanguages is the most languages of a shard.
	maxLanguages = 1 << 16
	// maxRepoRecord is the most bytes of a repo's record.
	maxRepoRecord = 16 << 20
)

// DocsWriter gathers the documents of a shard. Repos come in ascending order of
// name, each followed by its documents in ascending order of path. It needs
// memory for the compressed paths and some 30 bytes per document. The first
// error stays. It is not safe for concurrent use.
type DocsWriter struct {
	err error

	repo        Repo // whose documents come now
	repoOIDs    int  // length of its object ids; -1 before its first document
	hasRepo     bool
	repoRecords []byte
	repoLengths []uint32
	repoDocs    []uint32
	repoRanks   []byte

	names     bytes.Buffer
	nameUnits *unitWriter
	pending   []byte // end of the names that does not fill a unit yet
	paths     []uint32
	namesLen  uint64
	lastPath  []byte
	lastBlob  uint32

	firstDocs []uint32 // of each blob
	repeats   []repeat
	skips     []skipped
	oids      []byte // of each blob, oidWidth bytes
	oidWidth  int

	languages   map[string]uint32
	docLanguage []uint16
	branchSets  map[string]uint32
	setRecords  []byte
	setLengths  []uint32
	docSet      []uint32
	scratch     []byte
}

// repeat is a document whose blob has an earlier one.
type repeat struct{ doc, blob uint32 }

// skipped is a document without searchable content.
type skipped struct {
	doc    uint32
	reason SkipReason
	size   uint64
}

// NewDocsWriter returns a writer without documents.
func NewDocsWriter() *DocsWriter {
	d := &DocsWriter{languages: map[string]uint32{}, branchSets: map[string]uint32{}}
	d.nameUnits, d.err = newUnitWriter(&d.names, Fresh, 0, 0)
	return d
}

// Docs returns the number of documents added.
func (d *DocsWriter) Docs() uint32 { return uint32(len(d.paths)) }

// AddRepo starts the next repo.
func (d *DocsWriter) AddRepo(r Repo) error {
	if d.err == nil && d.hasRepo && r.Name <= d.repo.Name {
		d.err = fmt.Errorf("repo %q comes after %q", r.Name, d.repo.Name)
	}
	if d.err == nil && r.Rank > MaxRank {
		d.err = fmt.Errorf("repo %q has the rank %d: want 0 to %d", r.Name, r.Rank, MaxRank)
	}
	if d.err == nil && !r.isText() {
		d.err = fmt.Errorf("repo %q: its name, URL, branches and facts have to be UTF-8", r.Name)
	}
	d.endRepo()
	d.repo, d.repoOIDs, d.hasRepo, d.lastPath = r, -1, true, nil
	d.repo.Branches, d.repo.Meta = slices.Clone(r.Branches), maps.Clone(r.Meta)
	d.repoDocs, d.repoRanks = append(d.repoDocs, d.Docs()), append(d.repoRanks, r.Rank)
	return d.err
}

// endRepo writes the record of the repo, whose documents are complete.
func (d *DocsWriter) endRepo() {
	if d.err != nil || !d.hasRepo {
		return
	}
	start := len(d.repoRecords)
	d.repoRecords = appendRepo(d.repoRecords, &d.repo, max(d.repoOIDs, 0))
	n := len(d.repoRecords) - start
	if n > maxRepoRecord {
		d.err = fmt.Errorf("repo %q takes %d bytes without documents, at most %d are possible", d.repo.Name, n, maxRepoRecord)
	}
	d.repoLengths = append(d.repoLengths, uint32(n))
}

// AddDocument adds the next document of the current repo.
func (d *DocsWriter) AddDocument(doc Document) error {
	if d.err == nil {
		if d.err = d.check(&doc); d.err != nil {
			d.err = fmt.Errorf("document %q of repo %q: %w", doc.Path, d.repo.Name, d.err)
		}
	}
	if d.err == nil {
		d.addBlob(&doc)
		d.addLabels(&doc)
		d.paths = append(d.paths, uint32(len(doc.Path)))
		d.namesLen += uint64(len(doc.Path))
		d.lastPath, d.lastBlob = append(d.lastPath[:0], doc.Path...), doc.Blob
		d.pending = append(d.pending, doc.Path...)
		for d.err == nil && len(d.pending) >= SuperblockSize {
			d.err = d.nameUnits.add(d.pending[:SuperblockSize])
			d.pending = append(d.pending[:0], d.pending[SuperblockSize:]...)
		}
	}
	return d.err
}

func (d *DocsWriter) addBlob(doc *Document) {
	n := d.Docs()
	d.repoOIDs = len(doc.OID)
	if doc.Blob < uint32(len(d.firstDocs)) {
		d.repeats = append(d.repeats, repeat{doc: n, blob: doc.Blob})
	} else {
		d.firstDocs = append(d.firstDocs, n)
		d.widenOIDs(len(doc.OID))
		d.oids = append(d.oids, doc.OID...)
		d.oids = append(d.oids, make([]byte, d.oidWidth-len(doc.OID))...)
	}
	if doc.Skip != NotSkipped {
		d.skips = append(d.skips, skipped{doc: n, reason: doc.Skip, size: doc.Size})
	}
}

// widenOIDs makes room for longer object ids than before. It is called once or
// twice per shard at most.
func (d *DocsWriter) widenOIDs(width int) {
	if width <= d.oidWidth {
		return
	}
	var wide []byte
	for blob := range len(d.firstDocs) - 1 { // the newest has no id yet
		wide = append(wide, d.oids[blob*d.oidWidth:][:d.oidWidth]...)
		wide = append(wide, make([]byte, width-d.oidWidth)...)
	}
	d.oids, d.oidWidth = wide, width
}

func (d *DocsWriter) addLabels(doc *Document) {
	language, ok := d.languages[doc.Language]
	if !ok {
		language = uint32(len(d.languages))
		d.languages[doc.Language] = language
	}
	d.docLanguage = append(d.docLanguage, uint16(language))

	d.scratch = appendBranchSet(d.scratch[:0], doc.Branches)
	set, ok := d.branchSets[string(d.scratch)]
	if !ok {
		set = uint32(len(d.setLengths))
		d.branchSets[string(d.scratch)] = set
		d.setRecords = append(d.setRecords, d.scratch...)
		d.setLengths = append(d.setLengths, uint32(len(d.scratch)))
	}
	d.docSet = append(d.docSet, set)
}

// appendBranchSet encodes ascending branches: how many, the first, the gaps.
func appendBranchSet(dst []byte, branches []uint32) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(branches)))
	next := uint32(0)
	for _, b := range branches {
		dst = binary.AppendUvarint(dst, uint64(b-next))
		next = b + 1
	}
	return dst
}
