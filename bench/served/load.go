package served

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// pause is how long a refused client waits before it tries again.
const pause = 100 * time.Millisecond

// mostClients is the number of concurrent clients whose rates are figures.
const mostClients = 64

// Sets of queries from several buckets.
const (
	mixed = "all buckets"
	// quick excludes the queries that are slow by nature and hide the others.
	quick = "without 1-2 chars, regex only"
)

// load has the answers of one contestant to several clients. Each client sends its next query when
// it has the answer to the last one.
type load struct {
	set, name string
	clients   int
	// times of the answered queries, including waits after refusals.
	times []time.Duration
	// late counts the queries without an answer within their time, refused how often one had to be
	// repeated; reason is the last reason.
	late, refused int
	reason        string
	wall, cpu     time.Duration
	// cut says that the time was not enough for all queries of the set.
	cut bool
}

// rate returns the answered queries per second of the server's processor time.
func (l *load) rate() float64 {
	return float64(len(l.times)) / max(l.cpu, peer.Tick).Seconds()
}

// load measures each bucket, and mixtures, with several clients.
func (h *host) load(ctx context.Context) error {
	if h.cfg.Load == 0 {
		return nil
	}
	logs := querySets(h.queries, h.cfg.Seed)
	list := h.contestants(exhaustive)
	bar := report.NewProgress(h.cfg.Log, h.corpus.Name+": many clients", len(logs)*len(h.cfg.Clients))
	for i, log := range logs {
		for j, clients := range h.cfg.Clients {
			from := len(h.loads)
			for k := range list {
				c := &list[(i+j+k)%len(list)] // alternates which one goes first
				if c.buckets != nil && !c.takesPart(corpus.Bucket(log.name)) {
					continue
				}
				l, err := h.loop(ctx, c, log, clients)
				if err != nil {
					return err
				}
				h.loads = append(h.loads, l)
			}
			slices.SortFunc(h.loads[from:], func(a, b load) int { return cmp.Compare(slices.Index(series, a.name), slices.Index(series, b.name)) })
			bar.Step(log.name)
		}
	}
	return nil
}

// querySet is a set of queries that is repeated.
type querySet struct {
	name    string
	queries []string
}

// querySets returns the buckets, and all of them shuffled.
func querySets(queries []corpus.Query, seed uint64) []querySet {
	var list []querySet
	all, some := querySet{name: mixed}, querySet{name: quick}
	for _, b := range corpus.BucketsOf(queries) {
		one := querySet{name: string(b)}
		for _, q := range queries {
			if q.Bucket == b {
				one.queries = append(one.queries, q.Text())
			}
		}
		all.queries = append(all.queries, one.queries...)
		if b != corpus.Short && b != corpus.RegexOnly {
			some.queries = append(some.queries, one.queries...)
		}
		list = append(list, one)
	}
	rng := rand.New(rand.NewPCG(seed, 0))
	for _, s := range []querySet{some, all} {
		rng.Shuffle(len(s.queries), func(i, j int) { s.queries[i], s.queries[j] = s.queries[j], s.queries[i] })
		if len(s.queries) > 0 && (s.name == mixed || len(some.queries) < len(all.queries)) {
			list = append(list, s)
		}
	}
	return list
}

// loop has the clients go through the set until it is complete after the time is up, so that all
// servers answer the same queries equally often. It has a time limit.
func (h *host) loop(ctx context.Context, c *contestant, set querySet, clients int) (load, error) {
	l := load{set: set.name, name: c.name, clients: clients}
	limit := max(h.cfg.Timeout, 2*h.cfg.Load)
	if set.name == mixed || set.name == quick {
		limit *= 3
	}
	before, err := c.Usage()
	if err != nil {
		return l, err
	}
	d := &dispenser{set: set.queries, enough: time.Now().Add(h.cfg.Load), limit: time.Now().Add(limit)}
	began := time.Now()
	var mu sync.Mutex
	var clientsDone sync.WaitGroup
	errs := make([]error, clients)
	for i := range clients {
		clientsDone.Go(func() {
			for query, ok := d.next(); ok; query, ok = d.next() {
				r, refused, err := h.insist(ctx, c, query)
				if err != nil {
					errs[i] = err
					return
				}
				mu.Lock()
				l.add(r, refused)
				mu.Unlock()
			}
		})
	}
	clientsDone.Wait()
	l.wall, l.cut = time.Since(began), d.cut
	if err := errors.Join(errs...); err != nil {
		return l, fmt.Errorf("%d clients asking %s: %w", clients, c.name, err)
	}
	after, err := c.Usage()
	l.cpu = after.Since(before).CPU
	return l, err
}

// insist repeats a query until there is an answer, or its time has passed: otherwise a server that
// refuses hard queries would be compared by the easy ones. It returns the reasons of the refusals.
func (h *host) insist(ctx context.Context, c *contestant, query string) (r run, refused []string, err error) {
	began := time.Now()
	for {
		if r, err = h.once(ctx, c, query); err != nil {
			return r, refused, err
		}
		if r.failed == "" {
			break
		}
		refused = append(refused, r.failed)
		if time.Since(began)+pause >= h.cfg.Timeout {
			return run{late: true}, refused, nil
		}
		select {
		case <-ctx.Done():
			return r, refused, context.Cause(ctx)
		case <-time.After(pause):
		}
	}
	if len(refused) > 0 {
		r.client = time.Since(began)
		r.late = r.late || r.client >= h.cfg.Timeout
	}
	return r, refused, nil
}

func (l *load) add(r run, refused []string) {
	if l.refused += len(refused); len(refused) > 0 {
		l.reason = refused[len(refused)-1]
	}
	if r.late {
		l.late++
	} else {
		l.times = append(l.times, r.client)
	}
}

// dispenser hands out the queries in order, again and again. It is safe for concurrent use.
type dispenser struct {
	set           []string
	enough, limit time.Time

	mu     sync.Mutex
	turn   int
	closed bool
	cut    bool
}

// next returns false once the time is up and all queries were handed out equally often.
func (d *dispenser) next() (string, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	now, at := time.Now(), d.turn%len(d.set)
	switch {
	case d.closed:
		return "", false
	case at == 0 && d.turn > 0 && now.After(d.enough):
		d.closed = true
		return "", false
	case now.After(d.limit):
		d.closed, d.cut = true, true
		return "", false
	}
	d.turn++
	return d.set[at], true
}
