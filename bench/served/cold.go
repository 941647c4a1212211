package served

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
)

// users are the numbers of users that query a freshly started server at the same time.
var users = []int{1, 8, 32}

// chosen are the buckets whose queries run from a cold disk: those that find a part of the corpus,
// so that reading dominates their cost.
var chosen = []corpus.Bucket{corpus.Rare, corpus.Mid, corpus.Phrase, corpus.Case, corpus.Alternation, corpus.TwoWords, corpus.PathWord}

// cold has the first queries of a server whose index was only on the disk.
type cold struct {
	name  string
	users int
	// times of each query in all rounds, and ready, the time of each round until the repos could be
	// searched.
	times, ready []time.Duration
	late, failed int
	reason       string // of the last failure
	// used is the usage by the queries, and starting that of starting up, in all rounds.
	used, starting peer.Usage
}

// freeze measures first queries. Each round ends the server, drops its files from the page cache,
// starts it, drops them again, and lets all users run one query each at the same time.
func (h *host) freeze(ctx context.Context) error {
	if h.cfg.Cold == 0 {
		return nil
	}
	if err := h.close(); err != nil {
		return err
	}
	queries := interleaved(h.queries)
	if len(queries) == 0 {
		return nil
	}
	bar := report.NewProgress(h.cfg.Log, h.corpus.Name+": cold disk", len(users)*h.cfg.Cold)
	at := 0
	for _, n := range users {
		both := []cold{{name: trawl, users: n}, {name: zoekt, users: n}}
		for range h.cfg.Cold {
			for i := range both {
				if err := h.round(ctx, &both[i], queries, at); err != nil {
					return err
				}
			}
			at += n
			bar.Step(fmt.Sprintf("%d users", n))
		}
		h.cold = append(h.cold, both...)
	}
	return nil
}

// interleaved takes one query from each bucket in turn.
func interleaved(queries []corpus.Query) []string {
	var lists [][]string
	for _, b := range chosen {
		var list []string
		for _, q := range queries {
			if q.Bucket == b {
				list = append(list, q.Text())
			}
		}
		lists = append(lists, list)
	}
	var all []string
	for i := range queries {
		for _, list := range lists {
			if i < len(list) {
				all = append(all, list[i])
			}
		}
	}
	return all
}

func (h *host) round(ctx context.Context, c *cold, queries []string, at int) (err error) {
	dir := h.data()
	if c.name == zoekt {
		dir = h.index(zoekt)
	}
	if err := peer.DropCache(dir); err != nil {
		return err
	}
	began := time.Now()
	s, err := h.run(ctx, c.name, len(h.corpus.Repos))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, h.end(c.name)) }()
	c.ready = append(c.ready, time.Since(began))
	// Data that the server read without mapping is in the cache again.
	if err := peer.DropCache(dir); err != nil {
		return err
	}
	before, err := s.Usage()
	if err != nil {
		return err
	}
	if err := h.together(ctx, c, s, queries, at); err != nil {
		return err
	}
	after, err := s.Usage()
	if err != nil {
		return err
	}
	c.used, c.starting = c.used.Plus(after.Since(before)), c.starting.Plus(before)
	return nil
}

// together lets all users run one query each at the same time.
func (h *host) together(ctx context.Context, c *cold, s *peer.Server, queries []string, at int) error {
	opts := peer.Every(shown)
	opts.MaxWallTime = h.cfg.Timeout
	asked := contestant{name: c.name, Server: s, ask: asker(s, opts), all: true}
	runs, errs := make([]run, c.users), make([]error, c.users)
	var all sync.WaitGroup
	for i := range c.users {
		all.Go(func() { runs[i], errs[i] = h.once(ctx, &asked, queries[(at+i)%len(queries)]) })
	}
	all.Wait()
	c.add(runs)
	return errors.Join(errs...)
}

func (c *cold) add(runs []run) {
	for _, r := range runs {
		switch {
		case r.failed != "":
			c.failed++
			c.reason = r.failed
		case r.late:
			c.late++
		default:
			c.times = append(c.times, r.client)
		}
	}
}
