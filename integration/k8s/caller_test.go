package k8s

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

const (
	// tryTime bounds one call. A Service may send it to a pod that hangs, since it
	// notices that only after half a minute.
	tryTime = 5 * time.Second
	// tries is how often a call without an answer is made at most.
	tries = 12
)

// caller calls Trawl through the Service of its routers, as programs do: it makes a new
// connection when the old one gives no answer. It is not safe for concurrent use.
type caller struct {
	e       *e2e
	conn    *grpc.ClientConn
	retried []string // why calls were repeated
}

func (e *e2e) newCaller() *caller { return &caller{e: e} }

func (c *caller) close() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// dial connects to the routers' Service as callers of the release do.
func (r *release) dial() (*grpc.ClientConn, error) {
	transport := insecure.NewCredentials()
	token := credentials.PerRPCCredentials(access.Exposed{Text: access.Text(r.token)})
	if r.tls != nil {
		transport, token = credentials.NewTLS(r.tls), access.Text(r.token)
	}
	return grpc.NewClient(r.router, grpc.WithTransportCredentials(transport), grpc.WithPerRPCCredentials(token),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(80<<20)))
}

// call repeats a call until it is answered.
func (c *caller) call(ctx context.Context, f func(ctx context.Context) error) (err error) {
	for range tries {
		if c.conn == nil {
			if c.conn, err = c.e.dial(); err != nil {
				return err
			}
		}
		start := time.Now()
		try, cancel := context.WithTimeout(ctx, tryTime)
		err = f(try)
		cancel()
		if code := status.Code(err); ctx.Err() != nil || code != codes.Unavailable && code != codes.DeadlineExceeded {
			return err
		}
		c.close()
		c.retried = append(c.retried, fmt.Sprintf("%s after %.1f s: %v", start.Format("15:04:05.000"), time.Since(start).Seconds(), err))
	}
	return err
}

// search searches for every file of every repository.
func (c *caller) search(ctx context.Context) (answer *searchv1.SearchResponse, err error) {
	err = c.call(ctx, func(ctx context.Context) error {
		answer, err = searchv1.NewSearchServiceClient(c.conn).Search(ctx, &searchv1.SearchRequest{
			Query: heron, Options: &searchv1.SearchOptions{MaxFiles: 10_000},
		})
		return err
	})
	return answer, err
}

// tally counts the outcomes of the queries of a loop.
type tally struct {
	mu                           sync.Mutex
	complete, incomplete, failed int
	retried                      []string
	notes, wrong                 []string // the first of each
	slowest                      time.Duration
}

// asking queries through two connections until stop is called, which returns the outcomes.
// An answer that hides that something is missing fails the test.
func (e *e2e) asking() (stop func() *tally) {
	e.t.Helper()
	ctx, cancel := context.WithCancel(e.t.Context())
	l := &tally{}
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			c := e.newCaller()
			defer c.close()
			for ctx.Err() == nil {
				start := time.Now()
				answer, err := c.search(ctx)
				if ctx.Err() == nil {
					l.add(answer, err, time.Since(start), e.repos)
				}
			}
			l.mu.Lock()
			defer l.mu.Unlock()
			l.retried = append(l.retried, c.retried...)
		})
	}
	return func() *tally {
		e.t.Helper()
		cancel()
		running.Wait()
		e.t.Logf("%d complete answers, %d incomplete, %d failures, %d calls made again; the slowest answer took %v\n%s",
			l.complete, l.incomplete, l.failed, len(l.retried), l.slowest.Round(time.Millisecond), strings.Join(append(l.notes, l.retried...), "\n"))
		for _, w := range l.wrong {
			e.t.Errorf("a wrong answer: %v", w)
		}
		return l
	}
}

func (l *tally) add(answer *searchv1.SearchResponse, err error, took time.Duration, repos []*repository) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.slowest = max(l.slowest, took)
	now := time.Now().Format("15:04:05.000")
	switch {
	case err != nil:
		l.failed++
		l.notef("%s failed: %v", now, err)
		return
	case answer.GetCoverage().GetComplete():
		l.complete++
	default:
		l.incomplete++
		l.notef("%s incomplete: %v", now, answer.GetCoverage())
	}
	if err := wrong(answer, repos); err != nil && len(l.wrong) < most {
		l.wrong = append(l.wrong, err.Error())
	}
}

// most is how many notes of a kind are kept for the log.
const most = 4

func (l *tally) notef(format string, args ...any) {
	if len(l.notes) < most {
		l.notes = append(l.notes, fmt.Sprintf(format, args...))
	}
}

// nothingMissed fails the test unless every query had a complete answer.
func (l *tally) nothingMissed(e *e2e) {
	e.t.Helper()
	if l.incomplete > 0 || l.failed > 0 || l.complete == 0 {
		e.t.Error("callers noticed it")
	}
}
