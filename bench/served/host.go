package served

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/bench/corpus"
	"github.com/trawl-search/trawl/bench/peer"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Names of the servers.
const (
	trawl = "trawl"
	zoekt = "zoekt"
	re2   = "zoekt, RE2"
	// limited has an index of its own, without the largest files and those with the most trigrams.
	limited = "zoekt, default limits"
)

// re2Threshold makes zoekt use RE2 for texts of that size and more; below it RE2 is slower.
const re2Threshold = "ZOEKT_RE2_THRESHOLD_BYTES=32768"

// largestAnswer is the size of the largest answer that a router sends.
const largestAnswer = 80 << 20

// host runs the servers of one corpus.
type host struct {
	*runner
	*measured

	dir string
	// trawlLog has a line for each query that Trawl refuses.
	trawlLog *os.File
	queries  []corpus.Query
	servers  map[string]*peer.Server
	conn     *grpc.ClientConn // to Trawl
}

// prepared is the cost of a server's index.
type prepared struct {
	name string
	peer.Cost
	// served is the time until all repos can be searched; only trawl has it.
	served time.Duration
}

func (h *host) data() string { return filepath.Join(h.dir, trawl) }

// index returns the folder of an index of zoekt, with or without its default limits.
func (h *host) index(name string) string {
	base := h.dir
	if h.cfg.Keep != "" {
		base = filepath.Join(h.cfg.Keep, h.corpus.Name)
	}
	return filepath.Join(base, strings.ReplaceAll(name, ", ", "-"))
}

// run starts one of the servers, with that many repos.
func (h *host) run(ctx context.Context, name string, repos int) (s *peer.Server, err error) {
	switch name {
	case trawl:
		// Compaction would start at some time during the run and change what is measured.
		s, err = peer.Trawl(ctx, h.trawlLog, h.cfg.Trawl, h.data(), "--indexer-compact-every", "0")
	case re2:
		s, err = peer.Zoekt(ctx, h.webserver, h.index(zoekt), re2Threshold)
	default:
		dir := h.index(name)
		if repos == 0 {
			dir = h.dir
		}
		s, err = peer.Zoekt(ctx, h.webserver, dir)
	}
	if err != nil {
		return nil, err
	}
	if err := s.AwaitRepos(ctx, repos); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	if h.servers == nil {
		h.servers = map[string]*peer.Server{}
	}
	h.servers[name] = s
	return s, nil
}

// end ends one server.
func (h *host) end(name string) error {
	s := h.servers[name]
	delete(h.servers, name)
	if s == nil {
		return nil
	}
	return s.Close()
}

// close ends all of them.
func (h *host) close() error {
	var errs []error
	if h.conn != nil {
		errs = append(errs, h.conn.Close())
		h.conn = nil
	}
	for name := range h.servers {
		errs = append(errs, h.end(name))
	}
	return errors.Join(errs...)
}

// prepare has both servers index the corpus, and measures their memory without a repo.
func (h *host) prepare(ctx context.Context) error {
	if err := os.Mkdir(h.data(), 0o777); err != nil {
		return fmt.Errorf("making a folder for an index: %w", err)
	}
	alone, err := h.buildShards(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{trawl, zoekt} {
		s, err := h.run(ctx, name, 0)
		if err != nil {
			return err
		}
		if err := h.withoutRepos(ctx, name); err != nil {
			return err
		}
		if name == trawl {
			h.logf("%s: publishing %d repos", h.corpus.Name, len(h.corpus.Repos))
			began, err := h.publish(ctx, s)
			if err != nil {
				return err
			}
			h.prepared = append(h.prepared, prepared{trawl, alone, time.Since(began)})
		}
		// Memory left over from indexing does not count as a cost of serving.
		if err := h.end(name); err != nil {
			return err
		}
	}
	if err := h.indexZoekt(ctx, zoekt, peer.RaisedLimits()...); err != nil || !h.cfg.DefaultLimits {
		return err
	}
	return h.indexZoekt(ctx, limited)
}

// buildShards builds a shard of each repo with the program alone, for its cost.
func (h *host) buildShards(ctx context.Context) (cost peer.Cost, err error) {
	h.logf("%s: building %d shards with %s", h.corpus.Name, len(h.corpus.Repos), trawl)
	out := filepath.Join(h.dir, "shard")
	for _, r := range h.corpus.Repos {
		if _, err := peer.Measure(exec.CommandContext(ctx, h.cfg.Trawl, "shard", "build", "--out", out, r.Dir), &cost); err != nil {
			return cost, err
		}
		info, err := os.Stat(out)
		if err != nil {
			return cost, fmt.Errorf("reading the size of a shard: %w", err)
		}
		cost.IndexBytes += info.Size()
		if err := os.Remove(out); err != nil {
			return cost, fmt.Errorf("removing a shard that was measured: %w", err)
		}
	}
	return cost, nil
}

// indexZoekt makes an index of zoekt with some flags, or takes the one that an earlier run kept.
func (h *host) indexZoekt(ctx context.Context, name string, flags ...string) error {
	dir := h.index(name)
	record := filepath.Join(dir, "cost.json")
	p := prepared{name: name}
	text, err := os.ReadFile(record)
	switch {
	case err == nil:
		if err := json.Unmarshal(text, &p.Cost); err != nil {
			return fmt.Errorf("reading %s: %w", record, err)
		}
	case errors.Is(err, fs.ErrNotExist):
		h.logf("%s: indexing %d repos with %s", h.corpus.Name, len(h.corpus.Repos), name)
		// What an interrupted run left is no index.
		if err := errors.Join(os.RemoveAll(dir), os.MkdirAll(dir, 0o777)); err != nil {
			return fmt.Errorf("making a folder for an index: %w", err)
		}
		if p.Cost, err = peer.IndexZoekt(ctx, h.indexer, h.corpus, dir, append(flags, peer.WithoutCtags)...); err != nil {
			return err
		}
		text, err := json.Marshal(p.Cost)
		if err != nil {
			return fmt.Errorf("recording the cost of an index: %w", err)
		}
		if err := os.WriteFile(record, text, 0o666); err != nil {
			return fmt.Errorf("recording the cost of an index: %w", err)
		}
	default:
		return fmt.Errorf("reading the cost of an index: %w", err)
	}
	h.prepared = append(h.prepared, p)
	return nil
}

// withoutRepos measures the memory of a server without a repo, after all queries: what a process
// initialises when it first answers is not the cost of a repo.
func (h *host) withoutRepos(ctx context.Context, name string) (err error) {
	if name == trawl {
		if h.conn, err = dial(h.servers[name]); err != nil {
			return err
		}
		defer func() { err = errors.Join(err, h.conn.Close()); h.conn = nil }()
	}
	for mode := range modes {
		for _, c := range h.contestants(mode) {
			if c.Server != h.servers[name] {
				continue
			}
			for _, q := range h.queries {
				switch ran, err := h.once(ctx, &c, q.Text()); {
				case err != nil:
					return err
				case ran.failed != "":
					return fmt.Errorf("asking %s without a repo for %s: %s", name, q.Text(), ran.failed)
				}
			}
		}
	}
	return h.memoryOf(ctx, name, "without a repo")
}

// dial connects to Trawl's gRPC interface.
func dial(s *peer.Server) (*grpc.ClientConn, error) {
	conn, err := grpc.NewClient(s.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(largestAnswer)))
	if err != nil {
		return nil, fmt.Errorf("connecting to %s: %w", s.GRPC, err)
	}
	return conn, nil
}

// publish makes Git repositories from the repos and has them indexed. It returns the time at which
// indexing began.
func (h *host) publish(ctx context.Context, s *peer.Server) (began time.Time, err error) {
	conn, err := dial(s)
	if err != nil {
		return began, err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	git := filepath.Join(h.dir, "git")
	each := func(f func(ctx context.Context, r corpus.Repo, dir string) error) error {
		group, ctx := errgroup.WithContext(ctx)
		group.SetLimit(8)
		for i, r := range h.corpus.Repos {
			group.Go(func() error { return f(ctx, r, filepath.Join(git, strconv.Itoa(i)+".git")) })
		}
		return group.Wait()
	}
	if err := each(func(ctx context.Context, r corpus.Repo, dir string) error { return r.Git(ctx, dir) }); err != nil {
		return began, err
	}
	began = time.Now()
	ingest := ingestv1.NewIngestServiceClient(conn)
	err = each(func(ctx context.Context, r corpus.Repo, dir string) error {
		_, err := peer.Publish(ctx, ingest, r.Name, dir)
		return err
	})
	return began, errors.Join(err, os.RemoveAll(git))
}

// start starts the servers that are queried.
func (h *host) start(ctx context.Context) (err error) {
	for _, name := range []string{trawl, zoekt} {
		s, err := h.run(ctx, name, len(h.corpus.Repos))
		if err != nil {
			return err
		}
		if name == trawl {
			if h.conn, err = dial(s); err != nil {
				return err
			}
		}
		if err := h.memoryOf(ctx, name, "before a query"); err != nil {
			return err
		}
	}
	for name, wanted := range map[string]bool{re2: h.cfg.RE2, limited: h.cfg.DefaultLimits} {
		if wanted {
			if _, err := h.run(ctx, name, len(h.corpus.Repos)); err != nil {
				return err
			}
		}
	}
	return nil
}
