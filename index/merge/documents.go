package merge

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/symbols"
)

// source is where a blob of the new shard is read. It has no input if the blob is empty.
type source struct {
	*input
	blob     uint32
	language *symbols.Language // of its first document in the new shard
}

// plan orders the documents that stay, and thereby the blobs and their superblocks. It reads
// everything of the inputs except contents and postings.
func (m *merger) plan() error {
	repos, err := gather(m.inputs)
	if err != nil {
		return err
	}
	for i := range repos {
		if err := m.docs.AddRepo(repos[i].record); err != nil {
			return err
		}
		m.result.Repos++
		if err := repos[i].documents(m.add); err != nil {
			return err
		}
	}
	return nil
}

// add adds the current document of a part.
func (m *merger) add(p *part) (err error) {
	if err := m.pace(len(p.path)); err != nil {
		return err
	}
	d := docstore.Document{Path: p.path, Branches: p.branchesOfDoc, OID: p.oid}
	if d.Language, err = p.docs.Language(p.doc); err != nil {
		return err
	}
	if d.Skip, err = p.docs.Skip(p.doc); err != nil {
		return err
	}
	if d.Skip == docstore.NotSkipped {
		if d.Blob, err = m.blob(p, symbols.For(d.Language)); err != nil {
			return err
		}
		if d.Language != "" {
			m.langs[d.Language] = true
		}
	} else {
		if d.Size, err = p.docs.Size(p.doc); err != nil {
			return err
		}
		d.Blob = uint32(len(m.blobs))
		m.blobs = append(m.blobs, source{})
		m.result.Skipped++
	}
	m.result.Documents++
	m.names = append(m.names, p.path...)
	return m.docs.AddDocument(d)
}

// blob returns the blob of a part's current document: a new one, unless an earlier document has its
// object id.
func (m *merger) blob(p *part, language *symbols.Language) (uint32, error) {
	if blob, ok := m.oids[string(p.oid)]; ok {
		return blob, nil
	}
	from, err := p.docs.Blob(p.doc)
	if err != nil {
		return 0, err
	}
	length, err := p.place(from, m.superblocks)
	if err != nil {
		return 0, err
	}
	blob := uint32(len(m.blobs))
	m.blobs = append(m.blobs, source{p.input, from, language})
	m.oids[string(p.oid)] = blob
	m.superblocks += docstore.SuperblocksOf(uint64(length))
	m.result.Blobs++
	m.result.ContentBytes += uint64(length)
	return blob, nil
}

// place records that a blob's superblocks are in the new shard from place on, and returns the
// blob's length. Each superblock has at most one place.
func (in *input) place(blob, place uint32) (length uint32, err error) {
	first, length, err := in.content.Span(blob)
	if err != nil {
		return 0, err
	}
	if in.places == nil {
		n := in.content.Superblocks()
		if int64(n) > in.File.Size() { // each has a unit of at least one byte
			return 0, in.File.Corruptf("%d superblocks in %d bytes", n, in.File.Size())
		}
		in.places = slices.Repeat([]uint32{inverted.Gone}, int(n))
	}
	for i := range docstore.SuperblocksOf(uint64(length)) {
		to := &in.places[first+i]
		if *to != inverted.Gone {
			return 0, in.File.Corruptf("superblock %d has two blobs, or its blob two object ids", first+i)
		}
		*to = place + i
	}
	return length, nil
}
