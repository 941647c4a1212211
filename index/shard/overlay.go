package shard

import (
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// Overlay is what has become of a repo since a shard of it was built. Its zero value
// is that nothing has.
type Overlay struct {
	// Hidden are documents that are neither read nor counted, since they are not the
	// repo's any more: their numbers from its first one in the shard.
	Hidden docstore.Set
	// Branches are the repo's branches now, in their order; nil: those of the shard.
	Branches []Branch
}

// Branch is a branch whose documents in a shard are those that one of the shard's
// branches has there: itself, one that it was renamed from, or one that it differs
// from only where documents are hidden.
type Branch struct {
	Name string
	// Place of the shard's branch among the repo's, from 0; none has documents of a
	// branch with another place.
	Place int
}

// branchView is what the branches of a repo in a shard are now.
type branchView struct {
	now []docstore.Branch
	// of are, for each branch of the shard, those of now that have its documents,
	// ascending; nil where nothing has changed.
	of [][]uint32
}

// branchesNow is the view of a repo; the last one is kept.
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

// at appends the branches now of a document that is on branches of the shard, as
// ascending indexes into now. No branch now has two places.
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
