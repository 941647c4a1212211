package merge

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
)

// input is an opened Input.
type input struct {
	Input
	docs    *docstore.Docs
	content *docstore.Content
	places  []uint32 // of its superblocks in the new shard; nil while none has one
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

// part is what one input has of a repo: a cursor over its documents that stay.
type part struct {
	*input
	next, first, end uint32
	hidden           []uint32 // those still to come
	branches         []int    // of the record, by the input's; -1 for one that it has not
	sets             map[uint32][]uint32

	// The document it stands at.
	doc           uint32
	path          []byte
	oid           []byte
	branchesOfDoc []uint32
}

// newPart finds a repo. It stands before the first document.
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
		return nil, fmt.Errorf("%w: what is hidden of repo %q does not ascend below its %d documents in %s", ErrInputs, name, have.Docs, in.File.Name())
	}
	return &part{
		input: in, next: have.FirstDoc, first: have.FirstDoc, end: have.FirstDoc + have.Docs,
		hidden: r.Hidden, branches: placesOf(have.Branches, r.Record.Branches), sets: map[uint32][]uint32{},
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

// placesOf finds branches by their names in others; -1 for those not there.
func placesOf(branches, in []docstore.Branch) []int {
	places := make([]int, len(branches))
	for i, b := range branches {
		places[i] = slices.IndexFunc(in, func(o docstore.Branch) bool { return o.Name == b.Name })
	}
	return places
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

// read reads what orders documents, and checks that it does.
func (p *part) read() (err error) {
	last, lastOID := p.path, p.oid
	if p.path, err = p.docs.AppendPath(nil, p.doc); err != nil {
		return err
	}
	if p.oid, err = p.docs.OID(p.doc); err != nil {
		return err
	}
	if c := bytes.Compare(p.path, last); c < 0 || c == 0 && bytes.Compare(p.oid, lastOID) <= 0 {
		return p.corruptf("document %d is out of order", p.doc)
	}
	return nil
}

// branchesOf are the record's branches that a document is on, ascending.
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
			return nil, p.corruptf("document %d is on branch %d of %d", doc, b, len(p.branches))
		}
		if place := p.branches[b]; place >= 0 {
			branches = append(branches, uint32(place))
		}
	}
	slices.Sort(branches)
	branches = slices.Compact(branches)
	p.sets[set] = branches
	return branches, nil
}

func (in *input) corruptf(reason string, args ...any) error {
	return &format.CorruptError{File: in.File.Name(), Section: "documents", Offset: -1, Reason: fmt.Sprintf(reason, args...)}
}
