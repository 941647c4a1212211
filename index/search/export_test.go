package search

import "context"

// WithHelpers returns options with which that many helpers join the search, however little work there is.
func WithHelpers(o Options, helpers int) Options {
	o.helpers = helpers
	return o
}

// Help searches the whole shard as a helper does.
func (s *Shard) Help(ctx context.Context, q *Query) error {
	run := s.begin(ctx, q, Options{MaxFiles: 1})
	defer run.release()
	_ = run.repos.reset(s.Docs, &run.opts)
	run.workers, run.queue.waiting = &workers{}, []candidate{{bound: unknown}}
	return s.Guard(run.help)
}

// MatchingPaths enumerates the documents whose path matches q, a single atom. Its first budget is step looks at
// paths, and each further one is twice as large. It returns the documents and the number of looks.
func (s *Shard) MatchingPaths(ctx context.Context, q *Query, step uint64) (docs []uint32, looks uint64, err error) {
	err = s.with(ctx, q, Options{}, func(run *search) error {
		root, err := run.node(q.tree)
		if err != nil {
			return err
		}
		a := root.(*atomNode).name
		for budget := step; ; budget += step {
			found, done, err := a.documents(budget)
			if err != nil || !done {
				if err == nil {
					continue
				}
				return err
			}
			for _, r := range found {
				for doc := r.From; doc < r.To; doc++ {
					docs = append(docs, doc)
				}
			}
			looks = a.walker.looks
			return nil
		}
	})
	return docs, looks, err
}

// NotRuns, AndRuns and OrRuns are operations on sets of numbers below n, given in ascending order.
func NotRuns(a []uint32, n uint32) []uint32 { return numbersOf(runsOf(a).not(n)) }
func AndRuns(a, b []uint32) []uint32        { return numbersOf(runsOf(a).and(runsOf(b))) }
func OrRuns(a, b []uint32) []uint32         { return numbersOf(runsOf(a).or(runsOf(b))) }

func numbersOf(r runs) (numbers []uint32) {
	for i, run := range r {
		if run.From >= run.To || i > 0 && run.From <= r[i-1].To {
			panic("runs overlap, touch or are empty")
		}
		for n := run.From; n < run.To; n++ {
			numbers = append(numbers, n)
		}
	}
	return numbers
}
