package run

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/trawl-search/trawl/bench/peer"
)

// indexAgain builds every index Repeat-1 more times, in turn, and keeps the cost of the build with the
// least processor time: other work on the machine, and first reads of files, only ever add to it.
func (r *runner) indexAgain(ctx context.Context, m *measured, dir string) error {
	for i := 1; i < r.cfg.Repeat; i++ {
		r.logf("%s: indexing again, %d of %d", m.corpus.Name, i+1, r.cfg.Repeat)
		err := within(dir, func(out string) error {
			_, cost, err := delegate(ctx, order{Repos: m.corpus.Repos, Out: out})
			m.cost = lesser(m.cost, cost)
			return err
		})
		if err != nil {
			return fmt.Errorf("indexing again: %w", err)
		}
		if err := r.indexPeersAgain(ctx, m, dir); err != nil {
			return err
		}
	}
	return nil
}

// indexCtags builds zoekt's index once with ctags, which finds definitions as Trawl always does. If
// zoekt or ctags is missing, or zoekt takes no part, it does nothing.
func (r *runner) indexCtags(ctx context.Context, m *measured, dir string) error {
	indexer, _, ok := peer.ZoektPrograms(r.cfg.ZoektBin)
	if !ok || !peer.HasCtags() || m.opponent(zoekt) == nil {
		return nil
	}
	r.logf("%s: indexing with zoekt and ctags", m.corpus.Name)
	return within(dir, func(out string) (err error) {
		if m.ctags, err = peer.IndexZoekt(ctx, indexer, m.corpus, out, peer.WithCtags); err != nil {
			return fmt.Errorf("indexing with zoekt and ctags: %w", err)
		}
		return nil
	})
}

// indexPeersAgain uses new peers, because those in m are ready to be queried.
func (r *runner) indexPeersAgain(ctx context.Context, m *measured, dir string) error {
	for _, o := range m.peers {
		for _, p := range peer.Installed(r.cfg.ZoektBin) {
			if !o.indexes || p.Name() != o.Name() {
				continue
			}
			err := within(dir, func(out string) error {
				cost, _, err := p.Index(ctx, m.corpus, out)
				o.cost = lesser(o.cost, cost)
				return errors.Join(err, p.Close())
			})
			if err != nil {
				return fmt.Errorf("indexing again with %s: %w", p.Name(), err)
			}
		}
	}
	return nil
}

// within calls f with a new folder below dir, and removes the folder.
func within(dir string, f func(folder string) error) error {
	folder, err := os.MkdirTemp(dir, "again-")
	if err != nil {
		return fmt.Errorf("making a folder for an index: %w", err)
	}
	return errors.Join(f(folder), os.RemoveAll(folder))
}

// lesser returns the cost with less processor time.
func lesser(a, b peer.Cost) peer.Cost {
	if b.CPU > 0 && b.CPU < a.CPU {
		return b
	}
	return a
}
