package source

import (
	"encoding/binary"

	"github.com/trawl-search/trawl/index/docstore"
)

// branchSets numbers the sets of branches that occur, of which there are few:
// documents share theirs. Set 0 is empty.
type branchSets struct {
	branches []docstore.Branch
	members  [][]uint32 // ordinals, ascending
	strings  [][]string
	byKey    map[string]uint32
	grown    map[[2]uint32]uint32 // set and branch to the set with the branch
}

func newBranchSets(branches []docstore.Branch) *branchSets {
	return &branchSets{
		branches: branches, members: [][]uint32{nil}, strings: [][]string{nil},
		byKey: make(map[string]uint32), grown: make(map[[2]uint32]uint32),
	}
}

// with returns the set that has a branch more. Branches are added in ascending
// order.
func (s *branchSets) with(set, branch uint32) uint32 {
	step := [2]uint32{set, branch}
	if next, ok := s.grown[step]; ok {
		return next
	}
	members := append(append([]uint32(nil), s.members[set]...), branch)
	var key []byte
	for _, m := range members {
		key = binary.LittleEndian.AppendUint32(key, m)
	}
	next, ok := s.byKey[string(key)]
	if !ok {
		next = uint32(len(s.members))
		s.byKey[string(key)] = next
		s.members = append(s.members, members)
		s.strings = append(s.strings, s.named(members))
	}
	s.grown[step] = next
	return next
}

func (s *branchSets) named(members []uint32) []string {
	names := make([]string, len(members))
	for i, m := range members {
		names[i] = s.branches[m].Name
	}
	return names
}

// names returns the names of a set's branches, shared.
func (s *branchSets) names(set uint32) []string { return s.strings[set] }
