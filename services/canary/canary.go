// Package canary watches what callers of Trawl see. A canary has a small Git repository in memory. Again and again it pushes a commit to it,
// requests that the repo be indexed as a webhook would, and asks routers for it by each of their doors until all have found it. Every few pushes it
// deletes the repo, which no answer may then show. It needs no other servers than routers, and its token allows its own repo only.
package canary

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/tlsfiles"
	"github.com/trawl-search/trawl/internal/wait"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

const (
	// deleteEvery is how many pushes there are for one deletion: most pushes are to a repo that is known.
	deleteEvery = 10
	// deadline is the time that the canary gives for an answer. It waits a tenth longer for one over HTTP.
	deadline  = 5 * time.Second
	pause     = 500 * time.Millisecond // between two questions at one door
	maxAnswer = 1 << 20                // bytes
)

// Canary is one canary. Its methods are safe for concurrent use.
type Canary struct {
	*server.Server

	cfg     Config
	log     *slog.Logger
	said    sync.Map               // the outcome of each door that the log had last
	repo    atomic.Pointer[commit] // the last push
	metrics metrics
	conn    *grpc.ClientConn
	http    *http.Client
	httpURL string
}

// New makes a canary from valid settings. It reads the files of TLS, and opens no connection.
func New(cfg Config, tel *telemetry.Telemetry) (*Canary, error) {
	tel = tel.For("canary")
	c := &Canary{cfg: cfg, log: tel.Logger(), metrics: newMetrics(tel.Metrics()), httpURL: "http://" + cfg.Router.HTTP}
	creds, transport := insecure.NewCredentials(), &http.Transport{}
	if cfg.Router.encrypted() {
		files, err := tlsfiles.NewClient(cfg.Router.ClientConfig, c.log)
		if err != nil {
			return nil, err
		}
		creds, transport, c.httpURL = files.Credentials(), files.Transport(), "https://"+cfg.Router.HTTP
	}
	// A page that asks for a token is no answer.
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var err error
	if c.Server, err = server.New(cfg.Config, tel); err != nil {
		return nil, err
	}
	if c.conn, err = server.Dial(cfg.Router.GRPC, server.ClientConfig{MaxResponseBytes: maxAnswer}, creds, tel); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.repo.Store(newCommit())
	c.Handle("GET "+repositoryPath+"/{file...}", http.HandlerFunc(c.serve))
	return c, nil
}

// serve serves a file of the repository.
func (c *Canary) serve(w http.ResponseWriter, req *http.Request) {
	if file, ok := c.repo.Load().files[req.PathValue("file")]; ok {
		_, _ = w.Write(file) // a client that left needs no answer
		return
	}
	http.NotFound(w, req)
}

// Ready reports whether the canary can be fetched from. It does not depend on routers: these are what it watches.
func (c *Canary) Ready() bool { return c.Readiness().Ready() }

// Run watches until ctx ends. It then deletes the repo, within 5 s, after as much for a request that is on its way. A canary runs once.
func (c *Canary) Run(ctx context.Context) error {
	defer c.conn.Close()
	defer c.http.CloseIdleConnections()
	if err := c.Listen(ctx); err != nil {
		return errors.Join(err, c.Close())
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return c.Server.Run(running) })
	group.Go(func() error { c.watch(running); return nil })
	return group.Wait()
}

// watch pushes until ctx ends, and deletes the repo then. Each push is measured to its end, so the next may have to wait.
func (c *Canary) watch(ctx context.Context) {
	for n := 1; ctx.Err() == nil; n++ {
		pushed, requested := time.Now(), time.Time{}
		c.repo.Store(newCommit())
		for left := doors; ; {
			// A request that was acknowledged is not lost, but somebody may have deleted the repo.
			if time.Since(requested) > c.cfg.Every && c.request(ctx, false) {
				requested = time.Now()
			}
			if left = c.askAll(ctx, left, pushed); len(left) == 0 || !wait.Sleep(ctx, pause) {
				break
			}
		}
		if n%deleteEvery == 0 && c.request(ctx, true) {
			c.askAll(ctx, doors, time.Time{})
		}
		wait.Sleep(ctx, time.Until(pushed.Add(c.cfg.Every)))
	}
	c.request(ctx, true)
}

// request requests that the repo be indexed, or deletes it, and reports whether that was acknowledged. The end of ctx
// does not end it, so that the last deletion comes last, and arrives.
func (c *Canary) request(ctx context.Context, remove bool) bool {
	ctx, cancel := context.WithTimeout(c.authorized(context.WithoutCancel(ctx)), deadline)
	defer cancel()
	url := "http://" + cmp.Or(c.cfg.Advertise, c.HTTPAddr().String()) + repositoryPath
	name, err := origin.RepoName(url)
	switch ingest := ingestv1.NewIngestServiceClient(c.conn); {
	case err != nil:
	case remove:
		_, err = ingest.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: name})
	default:
		_, err = ingest.PutRepo(ctx, &ingestv1.PutRepoRequest{Url: url})
	}
	if status.Code(err) == codes.InvalidArgument {
		err = fmt.Errorf("%w; routers and indexers need --source-canary %s", err, url)
	}
	c.say(ctx, "request", map[bool]string{true: "complete", false: "failed"}[err == nil], err)
	return err == nil
}

// say logs an outcome that differs from that of the door before: a canary asks twice a second while something is wrong.
func (c *Canary) say(ctx context.Context, door, outcome string, err error) {
	if last, _ := c.said.Swap(door, outcome); last != outcome {
		c.log.InfoContext(ctx, "answers to the canary changed", "door", door, "outcome", outcome, "error", err)
	}
}

// askAll asks once by each door, all at the same time, and returns the doors that did not find the last push.
func (c *Canary) askAll(ctx context.Context, doors []door, pushed time.Time) (unfound []door) {
	ctx, found, asking := c.authorized(ctx), make([]bool, len(doors)), sync.WaitGroup{}
	for i, d := range doors {
		asking.Go(func() { found[i] = c.ask(ctx, d, pushed) })
	}
	asking.Wait()
	for i, d := range doors {
		if !found[i] {
			unfound = append(unfound, d)
		}
	}
	return unfound
}

// ask asks by a door for the last push, counts the answer, and reports whether the answer has it. Without a time it was deleted, which no answer may have.
func (c *Canary) ask(ctx context.Context, d door, pushed time.Time) bool {
	limited, cancel := context.WithTimeout(ctx, deadline+deadline/10)
	defer cancel()
	asked := time.Now()
	found, whole, err := c.look(limited, d, c.repo.Load().word)
	outcome, took := "complete", time.Since(asked)
	switch {
	case ctx.Err() != nil:
		return false // it was the canary that ended
	case err != nil:
		outcome, found = "failed", false
	case found && pushed.IsZero():
		outcome = "wrong"
	case !whole:
		outcome = "incomplete"
	}
	c.say(ctx, d.name, outcome, err)
	c.metrics.answers.WithLabelValues(d.name, outcome).Inc()
	c.metrics.ratio.WithLabelValues(d.name).Observe(took.Seconds() / deadline.Seconds())
	switch age := time.Since(pushed).Seconds(); {
	case pushed.IsZero():
	case found:
		c.metrics.freshness.WithLabelValues(d.name).Observe(age)
		c.metrics.behind.WithLabelValues(d.name).Set(0)
	default:
		c.metrics.behind.WithLabelValues(d.name).Set(age)
	}
	return found
}
