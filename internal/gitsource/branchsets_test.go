package gitsource

import (
	"errors"
	"slices"
	"testing"
)

// TestBranchSets has random sets of many branches. What they take grows with their branches, not with the
// squares of their numbers, and is bounded.
func TestBranchSets(t *testing.T) {
	s := newBranchSets()
	grow := func(members ...uint32) (set uint32) {
		for _, m := range members {
			next, err := s.with(set, m)
			if err != nil {
				t.Fatal(err)
			}
			set = next
		}
		return set
	}
	for _, members := range [][]uint32{nil, {0}, {5}, {0, 5}, {0, 1, 2, 1023}} {
		if got := s.members(grow(members...)); !slices.Equal(got, members) {
			t.Errorf("got %v, want %v", got, members)
		}
	}
	if once, again := grow(0, 5), grow(0, 5); once != again || grow(5) == once {
		t.Error("a set has two numbers, or two sets have one")
	}
	// Each further set has one branch more than the one before, and takes as much as any other.
	before := len(s.sets)
	set := grow(7)
	for m := range uint32(maxBranchSets - before - 1) {
		next, err := s.with(set, 8+m)
		if err != nil {
			t.Fatal(err)
		}
		set = next
	}
	if _, err := s.with(set, maxBranchSets*2); !errors.Is(err, errManyBranchSets) {
		t.Errorf("one set too many: %v", err)
	}
	if again := grow(0, 1, 2, 1023); !slices.Equal(s.members(again), []uint32{0, 1, 2, 1023}) {
		t.Error("a known set is lost")
	}
}
