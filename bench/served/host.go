package served

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
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
	name       string
	wall       time.Duration
	indexBytes int64
}

func (h *host) data() string  { return filepath.Join(h.dir, trawl) }
func (h *host) index() string { return filepath.Join(h.dir, zoekt) }

// run starts one of the servers, with that many repos.
func (h *host) run(ctx context.Context, name string, repos int) (s *peer.Server, err error) {
	switch name {
	case trawl:
		// Compaction would start at some time during the run and change what is measured.
		s, err = peer.Trawl(ctx, h.trawlLog, h.cfg.Trawl, h.data(), "--indexer-compact-every", "0")
	case re2:
		s, err = peer.Zoekt(ctx, h.webserver, h.index(), re2Threshold)
	default:
		s, err = peer.Zoekt(ctx, h.webserver, h.index())
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
	for _, dir := range []string{h.data(), h.index()} {
		if err := os.Mkdir(dir, 0o777); err != nil {
			return fmt.Errorf("making a folder for an index: %w", err)
		}
	}
	for _, name := range []string{trawl, zoekt} {
		h.logf("%s: indexing %d repos with %s", h.corpus.Name, len(h.corpus.Repos), name)
		s, err := h.run(ctx, name, 0)
		if err != nil {
			return err
		}
		if err := h.withoutRepos(ctx, name); err != nil {
			return err
		}
		began := time.Now()
		at := h.index()
		if name == trawl {
			at = filepath.Join(h.data(), "bucket")
			began, err = h.publish(ctx, s)
		} else {
			_, err = peer.IndexZoekt(ctx, h.indexer, h.corpus, h.index(), "-disable_ctags")
		}
		wall := time.Since(began)
		// Memory left over from indexing does not count as a cost of serving.
		if err := errors.Join(err, h.end(name)); err != nil {
			return err
		}
		size, err := sizeOf(at)
		if err != nil {
			return err
		}
		h.prepared = append(h.prepared, prepared{name, wall, size})
	}
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
	if h.cfg.RE2 {
		_, err = h.run(ctx, re2, len(h.corpus.Repos))
	}
	return err
}

// sizeOf returns the total size of the files below a folder.
func sizeOf(dir string) (sum int64, err error) {
	err = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			sum += info.Size()
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("reading the size of an index: %w", err)
	}
	return sum, nil
}
