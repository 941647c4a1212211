package searchapi

import (
	"encoding/binary"
	"errors"
	"fmt"
	"iter"
	"math/bits"
	"slices"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// MaxRepoNumber bounds the numbers of repos in a plan, so that the bitmap of a set takes at most 2 MiB.
const MaxRepoNumber = 1 << 24

// ShardRepos is a set of repos of one shard, by their numbers in the shard. The zero value is
// empty. It is immutable and safe for concurrent use.
type ShardRepos struct {
	all bool
	// bits has number n at bit n%64 of word n/64. Its last word is not zero.
	bits []uint64
}

// AllRepos is the set of all repos of a shard, however many it has.
func AllRepos() ShardRepos { return ShardRepos{all: true} }

// SomeRepos is the set of the repos with these numbers, each below 1<<24, in any order.
func SomeRepos(numbers ...uint32) ShardRepos {
	return ShardRepos{}.Edit(nil, numbers)
}

// Edit is the set without the numbers that are gone, and with those that come, also if they are gone. It must not be the set of all.
func (r ShardRepos) Edit(gone, come []uint32) ShardRepos {
	words := slices.Clone(r.bits)
	if len(come) > 0 {
		words = append(words, make([]uint64, max(0, int(slices.Max(come)/64)+1-len(words)))...)
	}
	for _, n := range gone {
		if int(n/64) < len(words) {
			words[n/64] &^= 1 << (n % 64)
		}
	}
	for _, n := range come {
		words[n/64] |= 1 << (n % 64)
	}
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	return ShardRepos{bits: words}
}

// Equal reports whether two sets are the same. The set of all equals itself only.
func (r ShardRepos) Equal(other ShardRepos) bool {
	return r.all == other.all && slices.Equal(r.bits, other.bits)
}

// All reports whether it is the set of all repos.
func (r ShardRepos) All() bool { return r.all }

// Has reports whether the repo is in the set.
func (r ShardRepos) Has(repo int) bool {
	return r.all || repo >= 0 && repo/64 < len(r.bits) && r.bits[repo/64]>>(repo%64)&1 != 0
}

// Len is the number of repos in the set, or 0 if it is the set of all.
func (r ShardRepos) Len() (n int) {
	for _, word := range r.bits {
		n += bits.OnesCount64(word)
	}
	return n
}

// Bytes is the memory that the set takes.
func (r ShardRepos) Bytes() int { return 8 * len(r.bits) }

// Numbers are those of the set, ascending. The set of all has none.
func (r ShardRepos) Numbers() iter.Seq[uint32] {
	return func(yield func(uint32) bool) {
		for i, word := range r.bits {
			for ; word != 0; word &= word - 1 {
				if !yield(uint32(64*i + bits.TrailingZeros64(word))) {
					return
				}
			}
		}
	}
}

// Filter is the set as index/search takes it: nil if it is the set of all.
func (r ShardRepos) Filter() func(repo int) bool {
	if r.all {
		return nil
	}
	return r.Has
}

// runs are the runs of successive numbers, as a plan encodes them.
func (r ShardRepos) runs() (code []byte) {
	next, first, last := uint32(0), uint32(0), uint32(0)
	some := false
	end := func() {
		code = binary.AppendUvarint(code, uint64(first-next))
		code = binary.AppendUvarint(code, uint64(last-first)+1)
		next = last + 1
	}
	for n := range r.Numbers() {
		if some && n == last+1 {
			last = n
			continue
		}
		if some {
			end()
		}
		some, first, last = true, n, n
	}
	if some {
		end()
	}
	return code
}

// bitmap is the set as a plan encodes it, without zero bytes at its end.
func (r ShardRepos) bitmap() (code []byte) {
	for _, word := range r.bits {
		code = binary.LittleEndian.AppendUint64(code, word)
	}
	for len(code) > 0 && code[len(code)-1] == 0 {
		code = code[:len(code)-1]
	}
	return code
}

// plan sets the repos of a planned shard, in the shorter of two encodings.
func (r ShardRepos) plan(p *searchv1.PlannedShard) {
	if r.all {
		p.Repos = &searchv1.PlannedShard_All{All: true}
		return
	}
	bitmap := r.bitmap()
	if runs := r.runs(); len(runs) < len(bitmap) {
		p.Repos = &searchv1.PlannedShard_Runs{Runs: runs}
	} else {
		p.Repos = &searchv1.PlannedShard_Bitmap{Bitmap: bitmap}
	}
}

// errRepos is the error of a plan that does not say which repos of a shard may be read.
var errRepos = errors.New("the plan does not say which repos of a shard may be read")

// parseRepos is the reverse of plan.
func parseRepos(p *searchv1.PlannedShard) (ShardRepos, error) {
	switch code := p.Repos.(type) {
	case *searchv1.PlannedShard_All:
		if code.All {
			return AllRepos(), nil
		}
	case *searchv1.PlannedShard_Runs:
		return parseRuns(code.Runs)
	case *searchv1.PlannedShard_Bitmap:
		return parseBitmap(code.Bitmap)
	}
	return ShardRepos{}, errRepos
}

func parseBitmap(code []byte) (ShardRepos, error) {
	if len(code) > MaxRepoNumber/8 {
		return ShardRepos{}, fmt.Errorf("%w: a bitmap of %d bytes, at most %d", errRepos, len(code), MaxRepoNumber/8)
	}
	words := make([]uint64, (len(code)+7)/8)
	for i, b := range code {
		words[i/8] |= uint64(b) << (i % 8 * 8)
	}
	for len(words) > 0 && words[len(words)-1] == 0 {
		words = words[:len(words)-1]
	}
	return ShardRepos{bits: words}, nil
}

func parseRuns(code []byte) (r ShardRepos, err error) {
	next := uint64(0) // the least number that may follow
	for at := 0; at < len(code); {
		gap, n := binary.Uvarint(code[at:])
		length, m := binary.Uvarint(code[at+max(n, 0):])
		if n <= 0 || m <= 0 || length == 0 || gap > MaxRepoNumber || length > MaxRepoNumber || next+gap+length > MaxRepoNumber {
			return ShardRepos{}, fmt.Errorf("%w: no run of numbers at byte %d", errRepos, at)
		}
		first := next + gap
		next = first + length
		r.bits = append(r.bits, make([]uint64, max(0, int((next-1)/64)+1-len(r.bits)))...)
		for i := first; i < next; i++ {
			r.bits[i/64] |= 1 << (i % 64)
		}
		at += n + m
	}
	return r, nil
}
