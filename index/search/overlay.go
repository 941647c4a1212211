package search

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// Overlay describes what has become of a repo since a shard of it was built. The zero value means
// that nothing has changed.
type Overlay struct {
	// Hidden documents are neither read nor counted, since the repo no longer has them. Their
	// numbers count from the repo's first document in the shard.
	Hidden docstore.Set
	// Branches are the repo's branches now, in their order; nil means those of the shard.
	Branches []Branch
}

// Branch is a branch of the repo now. It has the documents of one of the shard's branches: of
// itself, of one that it was renamed from, or of one that it differs from only in hidden documents.
type Branch struct {
	Name string
	// Place of the shard's branch among the repo's branches, from 0; another value means that it
	// has no document in the shard.
	Place int
}

// branchView maps the branches of a repo in a shard to its branches now.
type branchView struct {
	now []docstore.Branch
	// of has, for each branch of the shard, the ascending indexes of the branches now that have its
	// documents; nil if nothing has changed.
	of [][]uint32
}

// branchesNow returns the view of a repo. It keeps the last one.
func (s *search) branchesNow(repo int) (*branchView, error) {
	if s.named != nil && s.namedOf == repo {
		return s.named, nil
	}
	record, err := s.repo(repo)
	if err != nil {
		return nil, err
	}
	view := &branchView{now: record.Branches}
	if overlay := s.repos.branches[repo]; overlay != nil {
		view = overlaid(record.Branches, overlay)
	}
	s.named, s.namedOf = view, repo
	return view, nil
}

func overlaid(built []docstore.Branch, overlay []Branch) *branchView {
	v := &branchView{of: make([][]uint32, len(built))}
	for i, b := range overlay {
		now := docstore.Branch{Name: b.Name}
		if b.Place >= 0 && b.Place < len(built) {
			now.Commit = built[b.Place].Commit
			v.of[b.Place] = append(v.of[b.Place], uint32(i))
		}
		v.now = append(v.now, now)
	}
	return v
}

// at appends the branches that now have a document, as ascending indexes into now. built are the
// document's branches in the shard. Each branch now has one place at most.
func (v *branchView) at(dst, built []uint32) []uint32 {
	if v.of == nil {
		return append(dst, built...)
	}
	begin := len(dst)
	for _, b := range built {
		dst = append(dst, v.of[b]...)
	}
	slices.Sort(dst[begin:])
	return dst
}
