// Package canary watches what callers of Trawl see. A canary has a small Git repository in memory. Again and again it
// pushes a commit to it, requests that the repo be indexed as a webhook would, and asks routers for it by each of
// their doors until all have found it. Every few pushes it deletes the repo, which no answer may then show.
//
// What it measures is in its metrics. It needs no other servers than routers, and its token allows its own repo only.
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
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/tlsfiles"
	"github.com/trawl-search/trawl/internal/wait"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// component names the canary in logs and metrics.
	component = "canary"
	// deleteEvery is how many pushes there are for one deletion: most pushes are to a repo that is known.
	deleteEvery = 10
	// pause is the time between two questions at one door.
	pause = 500 * time.Millisecond
	// repeat is the time between two requests to index one push. Requests that were acknowledged are not lost, but
	// somebody may have deleted the repo.
	repeat = 30 * time.Second
	// lastCall bounds each of the last two calls when the canary ends: a request to index that is on its way, and the
	// removal of the repo.
	lastCall = 400 * time.Millisecond
)

// Canary is one canary. Its methods are safe for concurrent use.
type Canary struct {
	*server.Server

	cfg     Config
	log     *slog.Logger
	repo    atomic.Pointer[commit] // the last push; nil before the first
	doors   []door
	metrics *metrics
	last    time.Duration // lastCall, or longer in tests

	token   tokenFile
	conn    *grpc.ClientConn
	search  searchv1.SearchServiceClient
	ingest  ingestv1.IngestServiceClient
	http    *http.Client
	httpURL string
}

// New makes a canary. It reads the files of TLS, and opens no connection.
func New(cfg Config, tel *telemetry.Telemetry) (*Canary, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configure canary: %w", err)
	}
	tel = tel.For(component)
	c := &Canary{cfg: cfg, log: tel.Logger(), last: lastCall, token: tokenFile(cfg.Router.TokenFile)}
	creds, transport, scheme := insecure.NewCredentials(), &http.Transport{}, "http://"
	if cfg.Router.encrypted() {
		files, err := tlsfiles.NewClient(cfg.Router.ClientConfig, c.log)
		if err != nil {
			return nil, err
		}
		creds, transport, scheme = files.Credentials(), files.Transport(), "https://"
	}
	// A page that asks for a token is no answer.
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	c.httpURL = scheme + cfg.Router.HTTP
	var err error
	if c.Server, err = server.New(cfg.Config, tel); err != nil {
		return nil, err
	}
	if c.conn, err = server.Dial(cfg.Router.GRPC, server.ClientConfig{MaxResponseBytes: maxAnswer}, creds, tel, grpc.WithPerRPCCredentials(c.token)); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	c.search, c.ingest = searchv1.NewSearchServiceClient(c.conn), ingestv1.NewIngestServiceClient(c.conn)
	c.doors = c.allDoors()
	c.metrics = newMetrics(tel.Metrics(), c.doors)
	c.Handle("GET "+repositoryPath+"/info/refs", http.HandlerFunc(c.serve))
	c.Handle("POST "+repositoryPath+"/git-upload-pack", http.HandlerFunc(c.serve))
	return c, nil
}

// serve serves the last push.
func (c *Canary) serve(w http.ResponseWriter, req *http.Request) {
	repo := c.repo.Load()
	if repo == nil {
		http.NotFound(w, req)
		return
	}
	repo.ServeHTTP(w, req)
}

// Ready reports whether the canary can be fetched from. It does not depend on routers: these are what it watches.
func (c *Canary) Ready() bool { return c.Readiness().Ready() }

// Run watches until ctx ends. It then deletes the repo if a router answers, and ends within a second. A canary runs
// once.
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

// watch pushes until ctx ends, and deletes the repo then.
func (c *Canary) watch(ctx context.Context) {
	put := &ingestv1.PutRepoRequest{Url: "http://" + cmp.Or(c.cfg.Advertise, c.HTTPAddr().String()) + repositoryPath}
	var name string // of the repo, as routers call it
	index := func(ctx context.Context) error {
		resp, err := c.ingest.PutRepo(ctx, put)
		name = cmp.Or(resp.GetName(), name)
		return err
	}
	remove := func(ctx context.Context) error {
		_, err := c.ingest.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: name})
		return err
	}
	for n := 1; ; n++ {
		next := time.Now().Add(c.cfg.Every)
		word, found := c.push(ctx, index)
		if found && n%deleteEvery == 0 && c.request(ctx, remove) {
			c.ask(ctx, c.doors, word, time.Time{})
		}
		if !wait.Sleep(ctx, time.Until(next)) {
			break
		}
	}
	if name != "" {
		c.request(ctx, remove)
	}
}

// push makes a commit, requests that it be indexed, and asks for it by every door until all have found it. It reports
// whether that came before the end of ctx. The next push waits as long: each is measured to its end.
func (c *Canary) push(ctx context.Context, index func(context.Context) error) (word string, found bool) {
	pushed := time.Now()
	made := newCommit(pushed)
	c.repo.Store(made)
	due := pushed // when the next request is sent
	for left := c.doors; ; {
		if !time.Now().Before(due) {
			due = time.Now().Add(repeat)
			if !c.request(ctx, index) {
				due = time.Now().Add(time.Second)
			}
		}
		if left = c.ask(ctx, left, made.word, pushed); len(left) == 0 {
			return made.word, true
		}
		if !wait.Sleep(ctx, pause) {
			return made.word, false
		}
	}
}

// request sends a request about the repo, and reports whether it was acknowledged. The end of ctx leaves it a moment, so
// that none that is on its way comes after a deletion, and the last deletion arrives.
func (c *Canary) request(ctx context.Context, send func(context.Context) error) bool {
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
	defer cancel()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(c.last, cancel) })()
	err := send(limited)
	if err != nil {
		c.log.WarnContext(ctx, "the canary's repo was not indexed or deleted", "error", err)
	}
	return err == nil
}

// ask asks once by each door, all at the same time, counts the answers, and returns the doors that did not find the
// word. It was pushed then; zero: it does not exist any more, so an answer that has it is wrong.
func (c *Canary) ask(ctx context.Context, doors []door, word string, pushed time.Time) (unfound []door) {
	limited, cancel := context.WithTimeout(ctx, deadline+lateness)
	defer cancel()
	found, asking := make([]bool, len(doors)), sync.WaitGroup{}
	for i, d := range doors {
		asking.Go(func() {
			start := time.Now()
			got, err := d.ask(limited, word)
			if ctx.Err() != nil {
				return // it was the canary that ended
			}
			outcome := complete
			switch {
			case err != nil:
				outcome = failed
			case got.found && pushed.IsZero():
				outcome = wrong
			case !got.complete:
				outcome = incomplete
			}
			if outcome != complete {
				c.log.WarnContext(ctx, "an answer to the canary", "door", d.name, "outcome", outcome, "error", err)
			}
			found[i] = err == nil && got.found
			c.metrics.count(d.name, outcome, time.Since(start), pushed, found[i])
		})
	}
	asking.Wait()
	for i, d := range doors {
		if !found[i] {
			unfound = append(unfound, d)
		}
	}
	return unfound
}
