package search

import (
	"slices"
	"sort"

	"github.com/trawl-search/trawl/index/docstore"
)

// runs are numbers of documents or of blobs, as ascending runs that neither overlap nor touch.
// Documents are sorted by path, so that a folder is one run.
type runs []docstore.Run

// end is greater than all numbers.
func (r runs) end() uint32 {
	if len(r) == 0 {
		return 0
	}
	return r[len(r)-1].To
}

// add adds the numbers from ≤ n < to. from must not be below the start of any run.
func (r runs) add(from, to uint32) runs {
	if n := len(r); n > 0 && from <= r[n-1].To {
		r[n-1].To = max(r[n-1].To, to)
		return r
	}
	return append(r, docstore.Run{From: from, To: to})
}

// seek returns the index of the first run that ends after n.
func (r runs) seek(n uint32) int {
	return sort.Search(len(r), func(i int) bool { return r[i].To > n })
}

func (r runs) has(n uint32) bool {
	i := r.seek(n)
	return i < len(r) && r[i].From <= n
}

// count returns how many numbers there are.
func (r runs) count() (n uint64) {
	for _, run := range r {
		n += uint64(run.To - run.From)
	}
	return n
}

// numbers returns them one by one.
func (r runs) numbers() []uint32 {
	numbers := make([]uint32, 0, r.count())
	for _, run := range r {
		for n := run.From; n < run.To; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers
}

// not returns the numbers below n that are not in r.
func (r runs) not(n uint32) runs {
	others := make(runs, 0, len(r)+1)
	from := uint32(0)
	for _, run := range r {
		if from < run.From {
			others = append(others, docstore.Run{From: from, To: run.From})
		}
		from = run.To
	}
	if from < n {
		others = append(others, docstore.Run{From: from, To: n})
	}
	return others
}

// and returns the numbers in both.
func (r runs) and(o runs) (both runs) {
	for len(r) > 0 && len(o) > 0 {
		if from, to := max(r[0].From, o[0].From), min(r[0].To, o[0].To); from < to {
			both = both.add(from, to)
		}
		if r[0].To < o[0].To {
			r = r[1:]
		} else {
			o = o[1:]
		}
	}
	return both
}

// or returns the numbers in either.
func (r runs) or(o runs) (either runs) {
	for len(r) > 0 || len(o) > 0 {
		if len(o) == 0 || len(r) > 0 && r[0].From <= o[0].From {
			either, r = either.add(r[0].From, r[0].To), r[1:]
		} else {
			either, o = either.add(o[0].From, o[0].To), o[1:]
		}
	}
	return either
}

// runsOf returns numbers, which it sorts, as runs.
func runsOf(numbers []uint32) (r runs) {
	slices.Sort(numbers)
	for _, n := range numbers {
		r = r.add(n, n+1)
	}
	return r
}

// blobsOf returns the blobs of documents.
func (s *search) blobsOf(documents runs) (runs, error) {
	firsts, repeats, err := s.docs.AppendBlobRuns(make(runs, 0, len(documents)), nil, documents)
	return runs(firsts).or(runsOf(repeats)), err
}

// blobRuns has the blobs of runs as candidates.
type blobRuns struct{ rest runs }

func (b *blobRuns) evidence() evidence { return evidence{sure: true, single: true, counted: true} }

func (b *blobRuns) seek(from uint32) (uint32, bool, error) {
	// The next run is usually close.
	for n := 0; len(b.rest) > 0 && b.rest[0].To <= from; n++ {
		if n == nearBlobs {
			b.rest = b.rest[b.rest.seek(from):]
			break
		}
		b.rest = b.rest[1:]
	}
	if len(b.rest) == 0 {
		return 0, false, nil
	}
	return max(from, b.rest[0].From), true, nil
}
