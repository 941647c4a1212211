package gitsource

import (
	"encoding/binary"
	"slices"
)

// branchSets numbers the sets of branches that occur, of which there are few:
// documents share theirs. Set 0 is empty.
type branchSets struct {
	members [][]uint32 // ordinals, ascending
	byKey   map[string]uint32
	grown   map[[2]uint32]uint32 // set and branch to the set with the branch
}

func newBranchSets() *branchSets {
	return &branchSets{members: [][]uint32{nil}, byKey: make(map[string]uint32), grown: make(map[[2]uint32]uint32)}
}

// with returns the set that has a branch more. Branches are added in ascending
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
