package run

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/bench/peer"
	"github.com/trawl-search/trawl/bench/report"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// PushConfig says what to push.
type PushConfig struct {
	// Repo is a Git repository. Pushes go to a copy of it.
	Repo string
	// Trawl is the program. It runs with all roles in one process.
	Trawl string
	// Commits is the number of commits, of one file each, that are pushed one
	// after the other.
	Commits int
	// Seed chooses the files.
	Seed uint64
	// Results is the folder of the dated results.
	Results string
	Log     io.Writer
}

// push is one push, with its times and its cost.
type push struct {
	published, searchable time.Duration
	// fileBytes is the size of the changed file, wroteBytes what was added to
	// it.
	fileBytes, wroteBytes int64
	built                 string
}

// pusher measures pushes.
type pusher struct {
	cfg    PushConfig
	dir    string
	repo   *pushedRepo
	server *peer.Server
	conn   *grpc.ClientConn
	ingest ingestv1.IngestServiceClient
	search searchv1.SearchServiceClient
	// first is the time until the whole repo could be searched.
	first  time.Duration
	pushes []push
	before counters
	after  counters
}

// Push measures the time from a push until its content can be searched, and how
// much is indexed for it. It writes the results.
func Push(ctx context.Context, cfg PushConfig) (err error) {
	p := &pusher{cfg: cfg}
	if p.dir, err = os.MkdirTemp("", "trawl-push-"); err != nil {
		return fmt.Errorf("making a folder: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()
	started := time.Now()
	if p.repo, err = copyRepo(ctx, cfg.Repo, filepath.Join(p.dir, "repo.git"), cfg.Seed); err != nil {
		return err
	}
	if err := p.start(ctx); err != nil {
		return err
	}
	err = p.measure(ctx)
	if stopped := p.stop(); err != nil || stopped != nil {
		return errors.Join(err, stopped)
	}
	return p.write(ctx, started)
}

// start runs `trawl up` until it is ready.
func (p *pusher) start(ctx context.Context) (err error) {
	if p.server, err = peer.Trawl(ctx, os.Stderr, p.cfg.Trawl, filepath.Join(p.dir, "data")); err != nil {
		return err
	}
	if p.conn, err = grpc.NewClient(p.server.GRPC, grpc.WithTransportCredentials(insecure.NewCredentials())); err != nil {
		return errors.Join(fmt.Errorf("connecting to %s: %w", p.server.GRPC, err), p.server.Close())
	}
	p.ingest, p.search = ingestv1.NewIngestServiceClient(p.conn), searchv1.NewSearchServiceClient(p.conn)
	return nil
}

func (p *pusher) stop() error { return errors.Join(p.conn.Close(), p.server.Close()) }

// repoName is the name of the repo that gets the pushes.
const repoName = "bench.example/push/repo"

func (p *pusher) measure(ctx context.Context) error {
	fmt.Fprintf(p.cfg.Log, "indexing %s the first time\n", p.cfg.Repo)
	var bar *report.Progress
	for i := range p.cfg.Commits + 1 {
		token := fmt.Sprintf("trawlpush%dx%d", p.cfg.Seed, i)
		one, err := p.repo.commit(ctx, token)
		if err != nil {
			return err
		}
		if err := p.one(ctx, token, &one); err != nil {
			return fmt.Errorf("push %d: %w", i, err)
		}
		if i == 0 { // the repo itself
			p.first = one.searchable
			if p.before, err = readCounters(ctx, p.server.HTTP); err != nil {
				return err
			}
			bar = report.NewProgress(p.cfg.Log, "push", p.cfg.Commits)
			continue
		}
		p.pushes = append(p.pushes, one)
		bar.Step(one.searchable.Round(time.Millisecond).String())
	}
	var err error
	p.after, err = readCounters(ctx, p.server.HTTP)
	return err
}

// one requests indexing of the repo, and waits until a search finds the token.
func (p *pusher) one(ctx context.Context, token string, to *push) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	began := time.Now()
	status, err := peer.Publish(ctx, p.ingest, repoName, p.repo.dir)
	if err != nil {
		return err
	}
	to.published, to.built = time.Since(began), status.GetBuilt()
	for {
		found, err := p.search.Search(ctx, &searchv1.SearchRequest{Query: token + " case:yes", Options: &searchv1.SearchOptions{MaxFiles: 1}})
		if err != nil {
			return err
		}
		if len(found.GetFiles()) > 0 {
			to.searchable = time.Since(began)
			return nil
		}
	}
}

// pushedRepo is a bare copy that shares its objects with the original.
type pushedRepo struct {
	dir   string
	files []string
	next  func(n int) int
}

func (r *pushedRepo) git(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir, cmd.Stdin = r.dir, strings.NewReader(stdin)
	cmd.Env = append(os.Environ(), "GIT_DIR="+r.dir, "GIT_INDEX_FILE="+r.dir+"/index", "GIT_AUTHOR_NAME=bench", "GIT_AUTHOR_EMAIL=b@example",
		"GIT_COMMITTER_NAME=bench", "GIT_COMMITTER_EMAIL=b@example")
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, said.String())
	}
	return string(out), nil
}
