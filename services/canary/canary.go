// Package canary watches what callers of Trawl see. A canary has a small Git repository in memory. Again and again it
// pushes a commit to it, requests that the repo be indexed as a webhook would, and asks routers for it by each of
// their doors until all have found it. Every few pushes it deletes the repo, which no answer may then show.
//
// What it measures is in its metrics. It needs no other servers than routers, and its token allows its own repo only.
package canary

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
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
	// lastCall bounds each of the last two calls when the canary ends: a request to index that is on its way, and the removal of the repo.
	lastCall = 400 * time.Millisecond
)

// Canary is one canary. Its methods are safe for concurrent use.
type Canary struct {
	cfg     Config
	log     *slog.Logger
	server  *server.Server
	repo    repository
	doors   []door
	metrics *metrics
	last    time.Duration // lastCall, or longer in tests

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
	c := &Canary{cfg: cfg, log: tel.Logger(), last: lastCall, httpURL: "http://" + cfg.Router.HTTP}
	transport := &http.Transport{Proxy: nil}
	creds := insecure.NewCredentials()
	if cfg.Router.encrypted() {
		files, err := tlsfiles.NewClient(cfg.Router.ClientConfig, c.log)
		if err != nil {
			return nil, err
		}
		creds, c.httpURL = files.Credentials(), "https://"+cfg.Router.HTTP
		transport.DialTLSContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			return (&tls.Dialer{Config: files.Config()}).DialContext(ctx, network, address) // with the CAs as they are now
		}
	}
	// A page that asks for a token is no answer.
	c.http = &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	var err error
	if c.conn, err = server.Dial(cfg.Router.GRPC, server.ClientConfig{MaxResponseBytes: maxAnswer}, creds, tel); err != nil {
		return nil, err
	}
	c.search, c.ingest = searchv1.NewSearchServiceClient(c.conn), ingestv1.NewIngestServiceClient(c.conn)
	c.doors = c.allDoors()
	c.metrics = newMetrics(tel.Metrics(), c.doors)
	if c.server, err = server.New(cfg.Config, tel); err != nil {
		return nil, errors.Join(err, c.conn.Close())
	}
	c.server.Handle("GET "+repositoryPath+"/info/refs", http.HandlerFunc(c.repo.advertise))
	c.server.Handle("POST "+repositoryPath+"/git-upload-pack", http.HandlerFunc(c.repo.uploadPack))
	return c, nil
}

// Listen binds the addresses, so that they are known before Run.
func (c *Canary) Listen(ctx context.Context) error { return c.server.Listen(ctx) }

// GRPCAddr is the address that gRPC is bound to, or nil before Listen.
func (c *Canary) GRPCAddr() net.Addr { return c.server.GRPCAddr() }

// HTTPAddr is the address that HTTP is bound to, or nil before Listen.
func (c *Canary) HTTPAddr() net.Addr { return c.server.HTTPAddr() }

// Ready reports whether the canary can be fetched from. It does not depend on routers: these are what it watches.
func (c *Canary) Ready() bool { return c.server.Readiness().Ready() }

// Run watches until ctx ends. It then deletes the repo if a router answers, and ends within a second. A canary runs
// once.
func (c *Canary) Run(ctx context.Context) error {
	defer c.conn.Close()
	defer c.http.CloseIdleConnections()
	if err := c.Listen(ctx); err != nil {
		return errors.Join(err, c.server.Close())
	}
	address := c.cfg.Advertise
	if address == "" {
		address = c.HTTPAddr().String()
	}
	url := "http://" + address + repositoryPath
	name, err := origin.RepoName(url)
	if err != nil {
		return errors.Join(fmt.Errorf("the canary's repository at %s: %w", url, err), c.server.Close())
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return c.server.Run(running) })
	group.Go(func() error { c.watch(running, &ingestv1.PutRepoRequest{Url: url}, name); return nil })
	return group.Wait()
}

// watch pushes until ctx ends, and deletes the repo then.
func (c *Canary) watch(ctx context.Context, put *ingestv1.PutRepoRequest, name string) {
	for n := 1; ; n++ {
		next := time.Now().Add(c.cfg.Every)
		word, found := c.push(ctx, put)
		if found && n%deleteEvery == 0 && c.remove(ctx, name) == nil {
			for _, d := range c.doors {
				c.ask(ctx, d, word, false)
			}
		}
		if !wait.Sleep(ctx, time.Until(next)) {
			break
		}
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), c.last)
	defer cancel()
	_ = c.remove(last, name)
}

// push makes a commit, and asks for it by every door until all have found it. It reports whether that came before the
// end of ctx. The next push waits as long: each is measured to its end.
func (c *Canary) push(ctx context.Context, put *ingestv1.PutRepoRequest) (word string, found bool) {
	pushed := time.Now()
	word = c.repo.push(pushed)
	unfound, done := context.WithCancel(ctx)
	var announcing, asking sync.WaitGroup
	announcing.Go(func() { c.announce(ctx, unfound, put) })
	for _, d := range c.doors {
		c.metrics.pushed(d.name, pushed)
		asking.Go(func() {
			for !c.ask(ctx, d, word, true) {
				if !wait.Sleep(ctx, pause) {
					return
				}
			}
			c.metrics.found(d.name, pushed)
		})
	}
	asking.Wait()
	done()
	announcing.Wait()
	return word, ctx.Err() == nil
}

// announce requests that the repo be indexed, and again until unfound ends. A request that was sent is waited for, so
// that none comes after a deletion.
func (c *Canary) announce(ctx, unfound context.Context, put *ingestv1.PutRepoRequest) {
	for {
		limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadline)
		ends := context.AfterFunc(ctx, func() { time.AfterFunc(c.last, cancel) })
		limited, err := c.asCaller(limited)
		if err == nil {
			_, err = c.ingest.PutRepo(limited, put)
		}
		ends()
		cancel()
		again := repeat
		if err != nil && ctx.Err() == nil {
			c.log.WarnContext(ctx, "the request to index the canary's repo failed", "error", err)
			again = time.Second
		}
		if !wait.Sleep(unfound, again) {
			return
		}
	}
}

// remove deletes the repo.
func (c *Canary) remove(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(ctx, deadline)
	defer cancel()
	ctx, err := c.asCaller(ctx)
	if err == nil {
		_, err = c.ingest.DeleteRepo(ctx, &ingestv1.DeleteRepoRequest{Name: name})
	}
	if err != nil {
		c.log.WarnContext(ctx, "the canary's repo was not deleted", "error", err)
	}
	return err
}

// ask asks once by a door, counts the answer, and reports whether it has the word. A word that does not exist any more
// makes a complete answer that has it wrong.
func (c *Canary) ask(ctx context.Context, d door, word string, exists bool) bool {
	limited, cancel := context.WithTimeout(ctx, deadline+lateness)
	defer cancel()
	start := time.Now()
	got, err := d.ask(limited, word)
	took := time.Since(start)
	if ctx.Err() != nil {
		return false // it was the canary that ended
	}
	outcome := complete
	switch {
	case err != nil:
		outcome = failed
	case got.found && !exists:
		outcome = wrong
	case !got.complete:
		outcome = incomplete
	}
	if outcome != complete {
		c.log.WarnContext(ctx, "an answer to the canary", "door", d.name, "outcome", outcome, "error", err)
	}
	c.metrics.answers.WithLabelValues(d.name, outcome).Inc()
	c.metrics.ratio.WithLabelValues(d.name).Observe(took.Seconds() / deadline.Seconds())
	return err == nil && got.found
}
