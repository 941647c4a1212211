package search

import (
	"context"
	"fmt"
	"time"
)

// A search has two phases. Find ranks the documents of one shard, and Show reads what is shown of
// some of them. In between, a Ranking chooses the best documents of several shards, so that no
// others are read to be shown.

// Found is the result of Find. It holds no more memory than its hits need, and nothing of the
// shard.
type Found struct {
	// Hits are the best documents, at most Options.MaxFiles, in the total order of Compare.
	Hits []Hit
	// Cut is set when MaxBytes leaves out matching documents that MaxFiles has room for, and with TopK when it may.
	// They come after the last of Hits.
	Cut bool
	// Stats and Explanation cover finding alone; see Result.Explanation.
	Stats       Stats
	Explanation *Explanation
	// Incomplete is nil if the whole shard was searched. Otherwise it is the reason (a context's
	// error), and Found holds what was found before.
	Incomplete error
	// Options are those of the search.
	Options Options
}

// Hit is a document that matches, before it is shown.
type Hit struct {
	// Key is its place in the total order.
	Key Key
	hit hit
}

// Finder is a shard that can be searched in two phases.
type Finder interface {
	Find(ctx context.Context, q *Query, opts Options) (*Found, error)
	Show(ctx context.Context, found *Found, n int) (*Result, error)
}

// Search finds the documents that q matches in one shard, and shows the best. If the context ends
// first, the result shows what was found until then and gives the reason in Incomplete. An error
// means that the shard could not be read (format.ErrCorrupt).
func Search(ctx context.Context, s Finder, q *Query, opts Options) (*Result, error) {
	found, err := s.Find(ctx, q, opts)
	if err != nil {
		return nil, err
	}
	res := &Result{}
	if len(found.Hits) > 0 {
		if res, err = s.Show(context.WithoutCancel(ctx), found, len(found.Hits)); err != nil {
			return nil, err
		}
	}
	res.Cut = (res.Cut || found.Cut) && len(res.Files) < opts.MaxFiles
	res.Stats.Add(found.Stats)
	if found.Explanation != nil {
		found.Explanation.AddShown(res.Explanation)
		res.Explanation = found.Explanation
	}
	res.Incomplete = found.Incomplete
	return res, nil
}

// Search calls the function Search with this shard.
func (s *Shard) Search(ctx context.Context, q *Query, opts Options) (*Result, error) {
	return Search(ctx, s, q, opts)
}

// Find finds the documents that q matches, and decodes nothing to show them. If the context ends
// first, Found holds what was found until then and gives the reason in Incomplete. An error means
// that the shard could not be read (format.ErrCorrupt).
func (s *Shard) Find(ctx context.Context, q *Query, opts Options) (*Found, error) {
	opts.loose, opts.branches = q.loose, q.branches
	found := &Found{Options: opts}
	err := s.with(ctx, q, opts, func(run *search) error {
		if err := run.watch(); err != nil {
			return err
		}
		err := run.find()
		if err == nil || isContextError(err) {
			found.Incomplete = err
			found.Hits, err = run.hits()
		}
		if isContextError(err) {
			found.Incomplete, err = err, nil
		}
		// What a search for the best leaves out depends on documents that a caller may not see. Whether the hits take
		// all the room does not.
		cut := run.best.cut || opts.Mode == TopK && run.best.stuffed()
		found.Cut = cut && len(found.Hits) < opts.MaxFiles
		run.countReads()
		found.Stats, found.Explanation = run.stats, run.explained()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("search shard %s: %w", s.Name(), err)
	}
	return found, nil
}

// Show reads what is shown of the first n hits that Find found in this shard, as far as
// Options.MaxBytes has room for them. If the context ends first, the result has the files shown
// until then and gives the reason in Incomplete. An error means that the shard could not be read.
// Statistics and explanation cover showing alone.
func (s *Shard) Show(ctx context.Context, found *Found, n int) (*Result, error) {
	res, began := &Result{}, time.Now()
	err := s.with(ctx, nil, found.Options, func(run *search) error {
		err := run.files(found.Hits[:n], res)
		if isContextError(err) {
			res.Incomplete, err = err, nil
		}
		run.countReads()
		res.Stats = run.stats
		if found.Explanation != nil {
			read := run.allReads(began)
			res.Explanation = &Explanation{Other: read, Elapsed: read.Time}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("show files of shard %s: %w", s.Name(), err)
	}
	return res, nil
}

// hits returns the best hits in the total order, with all that is needed to show them later. With
// an error it returns the hits before the one that could not be read.
func (s *search) hits() ([]Hit, error) {
	best := s.best.sorted()
	hits := make([]Hit, 0, len(best))
	repo := ""
	for i := range best {
		h := &best[i]
		s.doc.reset(h.doc, h.blob, h.repo)
		path, err := s.doc.loadPath()
		if err != nil {
			return hits, err
		}
		if i == 0 || h.repo != best[i-1].repo {
			if repo, err = s.docs.RepoName(h.repo); err != nil {
				return hits, err
			}
		}
		oid, err := s.docs.OID(h.doc)
		if err != nil {
			return hits, err
		}
		if len(h.inWords) > 0 { // copies of the tallies, so that those of the whole shard can be freed
			_, end, err := s.superblocksOf(h.blob)
			if err != nil {
				return hits, err
			}
			for i := range h.inWords {
				w := &h.inWords[i]
				w.tallies = s.tallyShelf.Copy(w.of(end))
			}
		}
		hits = append(hits, Hit{Key{Score: h.score, Repo: repo, Path: s.shelf.Copy(path), Blob: s.shelf.Copy(oid)}, *h})
	}
	return hits, nil
}
