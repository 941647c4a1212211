package gitsource

import (
	"encoding/binary"
	"slices"
)

// branchSets numbers the distinct sets of branches that documents have. There are few,
// and documents share them. Set 0 is empty.
type branchSets struct {
	members [][]uint32 // ordinals, ascending
	byKey   map[string]uint32
	grown   map[[2]uint32]uint32 // set and branch to the set with the branch
}

func newBranchSets() *branchSets {
	return &branchSets{members: [][]uint32{nil}, byKey: make(map[string]uint32), grown: make(map[[2]uint32]uint32)}
}

// with returns the union of a set and a branch. Branches must be added in ascending
// order.
func (s *branchSets) with(set, branch uint32) uint32 {
	step := [2]uint32{set, branch}
	if next, ok := s.grown[step]; ok {
		return next
	}
	members := append(slices.Clone(s.members[set]), branch)
	var key []byte
	for _, m := range members {
		key = binary.LittleEndian.AppendUint32(key, m)
	}
	next, ok := s.byKey[string(key)]
	if !ok {
		next = uint32(len(s.members))
		s.byKey[string(key)] = next
		s.members = append(s.members, members)
	}
	s.grown[step] = next
	return next
}
