package run

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/pprof"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/engine"
)

// profile writes a CPU profile of indexing a corpus, or of its queries.
func (r *runner) profile(ctx context.Context, name string) (err error) {
	if r.cfg.Profile != "index" && r.cfg.Profile != "search" {
		return fmt.Errorf("profile %q: expected index or search", r.cfg.Profile)
	}
	c, err := r.find(ctx, name)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(r.scratch, "profile-")
	if err != nil {
		return fmt.Errorf("making a folder for shards: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	index := func() (engine.Indexed, error) { return engine.Index(ctx, c.Repos, dir, false) }
	if r.cfg.Profile == "index" {
		return r.record(func() error { _, err := index(); return err })
	}
	done, err := index()
	if err != nil {
		return err
	}
	e, err := engine.OpenEngine(done.Shards)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	files, err := corpus.ReadFiles(ctx, c, r.cfg.Seed)
	if err != nil {
		return err
	}
	queries := corpus.Sample(files, r.cfg.Seed, r.cfg.Queries)
	return r.record(func() error {
		for _, q := range queries {
			if _, err := r.times(ctx, e, q, r.cfg.Repeat, exhaustive, top50); err != nil {
				return fmt.Errorf("query %s: %w", q.Text(), err)
			}
		}
		return nil
	})
}

func (r *runner) record(work func() error) (err error) {
	file, err := os.Create(filepath.Clean(r.cfg.ProfileFile))
	if err != nil {
		return fmt.Errorf("making the profile: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	if err := pprof.StartCPUProfile(file); err != nil {
		return fmt.Errorf("starting the profile: %w", err)
	}
	defer pprof.StopCPUProfile()
	if err := work(); err != nil {
		return err
	}
	r.logf("look at it by: go tool pprof -http=: %s", r.cfg.ProfileFile)
	return nil
}
