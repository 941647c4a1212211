package merge

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// input is an opened Input.
type input struct {
	Input
	docs    *docstore.Docs
	content *docstore.Content
	places  []uint32 // new places of its superblocks; nil if none has one
	indexed bool     // the merger takes its index
}

func openInput(in Input) (*input, error) {
	docs, err := docstore.OpenDocs(in.File)
	if err != nil {
		return nil, err
	}
	content, err := docstore.OpenContent(in.File)
	if err != nil {
		return nil, err
	}
	return &input{Input: in, docs: docs, content: content}, nil
}

// part is an input's share of a repo: a cursor over its documents that stay.
type part struct {
	*input
	next, first, end uint32
	hidden           []uint32   // those still ahead
	branches         [][]uint32 // branches of the record, by the input's branch
	sets             map[uint32][]uint32

	// The current document.
	doc           uint32
	path          []byte
	oid           []byte
	branchesOfDoc []uint32
}

// newPart finds a repo. The part starts before the first document.
func newPart(in *input, r *Repo) (*part, error) {
	name := r.Record.Name
	i, ok, err := in.docs.FindRepo(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("%w: %s has no repo %q", ErrInputs, in.File.Name(), name)
	}
	have, err := in.docs.Repo(i)
	if err != nil {
		return nil, err
	}
	if !ascendBelow(r.Hidden, have.Docs) {
		return nil, fmt.Errorf("%w: the hidden documents of repo %q do not ascend below its %d documents in %s", ErrInputs, name, have.Docs, in.File.Name())
	}
	branches, err := placesOf(r, have.Branches)
	if err != nil {
		return nil, fmt.Errorf("repo %q in %s: %w", name, in.File.Name(), err)
	}
	return &part{
		input: in, next: have.FirstDoc, first: have.FirstDoc, end: have.FirstDoc + have.Docs,
		hidden: r.Hidden, branches: branches, sets: map[uint32][]uint32{},
	}, nil
}

func ascendBelow(numbers []uint32, limit uint32) bool {
	for i, n := range numbers {
		if n >= limit || i > 0 && n <= numbers[i-1] {
			return false
		}
	}
	return true
}

// placesOf returns, for each branch of the input, the branches of the record that have its
// documents.
func placesOf(r *Repo, have []docstore.Branch) ([][]uint32, error) {
	if r.Branches != nil && len(r.Branches) != len(r.Record.Branches) {
		return nil, fmt.Errorf("%w: it has the places of %d branches, not %d", ErrInputs, len(r.Branches), len(r.Record.Branches))
	}
	branches := make([][]uint32, len(have))
	for i, b := range r.Record.Branches {
		place := slices.IndexFunc(have, func(o docstore.Branch) bool { return o.Name == b.Name })
		if r.Branches != nil {
			place = r.Branches[i]
		}
		switch {
		case place >= len(have):
			return nil, fmt.Errorf("%w: branch %q stands for branch %d of %d", ErrInputs, b.Name, place, len(have))
		case place >= 0:
			branches[place] = append(branches[place], uint32(i))
		}
	}
	return branches, nil
}

// advance moves to the next document that stays; false at the end.
func (p *part) advance() (bool, error) {
	for ; p.next < p.end; p.next++ {
		if len(p.hidden) > 0 && p.hidden[0] == p.next-p.first {
			p.hidden = p.hidden[1:]
			continue
		}
		branches, err := p.branchesOf(p.next)
		if err != nil {
			return false, err
		}
		if len(branches) == 0 {
			continue
		}
		p.doc, p.branchesOfDoc = p.next, branches
		p.next++
		return true, p.read()
	}
	return false, nil
}

// read reads the keys by which documents are sorted, and checks their order.
func (p *part) read() (err error) {
	last, lastOID := p.path, p.oid
	if p.path, err = p.docs.AppendPath(nil, p.doc); err != nil {
		return err
	}
	if p.oid, err = p.docs.OID(p.doc); err != nil {
		return err
	}
	if c := bytes.Compare(p.path, last); c < 0 || c == 0 && bytes.Compare(p.oid, lastOID) <= 0 {
		return p.File.Corruptf("document %d is out of order", p.doc)
	}
	return nil
}

// branchesOf returns the record's branches that have a document, ascending.
func (p *part) branchesOf(doc uint32) ([]uint32, error) {
	set, err := p.docs.BranchSet(doc)
	if err != nil {
		return nil, err
	}
	known, ok := p.sets[set]
	if ok {
		return known, nil
	}
	have, err := p.docs.AppendBranchSet(nil, set)
	if err != nil {
		return nil, err
	}
	var branches []uint32
	for _, b := range have {
		if int(b) >= len(p.branches) {
			return nil, p.File.Corruptf("document %d is on branch %d of %d", doc, b, len(p.branches))
		}
		branches = append(branches, p.branches[b]...)
	}
	slices.Sort(branches)
	p.sets[set] = branches
	return branches, nil
}
