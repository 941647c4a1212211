package served

import (
	"context"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/report"
)

// bucket has the times of the queries of one bucket, asked one at a time.
type bucket struct {
	name    corpus.Bucket
	queries []corpus.Query
	// timings of the contestants, Trawl's first.
	timings []timing
}

// timing has one contestant's times in one bucket.
type timing struct {
	name string
	// queries has one for each query of the bucket.
	queries []outcome
	// late and failed count runs; reason is why the last one failed.
	late, failed int
	reason       string
}

// outcome is the result for one query: the least of its runs by the caller's clock, since other work
// on the machine only adds time. Without a run that succeeded, it has no times.
type outcome struct {
	client, own time.Duration
	late        bool
	// files and matches are what was found.
	files, matches int
}

// times returns the times of all queries that have one, by the caller's clock and the server's.
func (t *timing) times() (client, own []time.Duration) {
	for _, o := range t.queries {
		if o.client > 0 {
			client, own = append(client, o.client), append(own, o.own)
		}
	}
	return client, own
}

// turns runs every query on all servers in turn, so that other work on the machine affects all
// equally.
func (h *host) turns(ctx context.Context) error {
	bar := report.NewProgress(h.cfg.Log, h.corpus.Name+": queries in turn", len(h.queries)*len(modes))
	for mode := range modes {
		list := h.contestants(mode)
		for _, name := range corpus.BucketsOf(h.queries) {
			b := bucket{name: name}
			for _, c := range list {
				if c.takesPart(name) {
					b.timings = append(b.timings, timing{name: c.name})
				}
			}
			for _, q := range h.queries {
				if q.Bucket != name {
					continue
				}
				b.queries = append(b.queries, q)
				if err := h.turn(ctx, &b, list, q); err != nil {
					return err
				}
				bar.Step(string(name))
			}
			h.buckets[mode] = append(h.buckets[mode], b)
		}
	}
	return nil
}

// turn runs one query, Repeat times on each contestant, but not again on one that has used up the
// time of a query.
func (h *host) turn(ctx context.Context, b *bucket, list []contestant, q corpus.Query) error {
	runs := make([][]run, len(b.timings))
	used := make([]time.Duration, len(b.timings))
	for range h.cfg.Repeat {
		i := 0
		for _, c := range list {
			if !c.takesPart(b.name) {
				continue
			}
			if used[i] < h.cfg.Timeout {
				r, err := h.once(ctx, &c, q.Text())
				if err != nil {
					return err
				}
				runs[i] = append(runs[i], r)
				used[i] += r.client
			}
			i++
		}
	}
	for i := range b.timings {
		b.timings[i].add(runs[i])
	}
	return nil
}

// add adds the runs of one query.
func (t *timing) add(runs []run) {
	var best outcome
	for _, r := range runs {
		if r.failed != "" {
			t.failed++
			t.reason = r.failed
			continue
		}
		if r.late {
			t.late++
		}
		if best.client == 0 || r.client < best.client {
			best = outcome{r.client, r.own, r.late, r.counts.FileCount, r.counts.MatchCount}
		}
	}
	t.queries = append(t.queries, best)
}

// ratio is a peer's time divided by Trawl's.
type ratio struct {
	client, own float64
	query       int // index in the bucket
	// atLeast and atMost say that the ratio is a bound, because the peer, or Trawl, was late.
	atLeast, atMost bool
}

// ratios compares a timing with Trawl's, query by query, without the queries that either could not
// answer.
func (t *timing) ratios(own *timing) []ratio {
	var list []ratio
	for i, o := range t.queries {
		base := own.queries[i]
		if o.client == 0 || base.client == 0 || (o.late && base.late) {
			continue
		}
		list = append(list, ratio{
			client: float64(o.client) / float64(base.client), own: float64(max(o.own, 1)) / float64(max(base.own, 1)),
			query: i, atLeast: o.late, atMost: base.late,
		})
	}
	return list
}

// worst returns the ratio that is worst for Trawl, by the caller's clock.
func worst(list []ratio) ratio {
	least := list[0]
	for _, r := range list[1:] {
		if r.client < least.client {
			least = r
		}
	}
	return least
}

// means returns geometric means over queries, by the caller's clock and the servers'.
func means(list []ratio) (client, own float64) {
	var a, b []float64
	for _, r := range list {
		a, b = append(a, r.client), append(b, r.own)
	}
	return report.GeometricMean(a), report.GeometricMean(b)
}
