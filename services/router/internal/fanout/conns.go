package fanout

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/server"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// linger is how long the connection to a searcher that left stays open for replies that
// are under way.
const linger = 2 * time.Minute

// ErrClosed is the error of Client after Close.
var ErrClosed = errors.New("the connections to searchers are closed")

// Conns keeps one connection to each searcher. It is safe for concurrent use.
type Conns struct {
	dial func(address string) (server.Conn, error)

	mu     sync.Mutex
	conns  map[string]*conn
	closed bool
}

type conn struct {
	server.Conn
	// leftAt is zero while the searcher is live.
	leftAt time.Time
}

// NewConns returns an empty set. Dial must not wait for the connection.
func NewConns(dial func(address string) (server.Conn, error)) *Conns {
	return &Conns{dial: dial, conns: make(map[string]*conn)}
}

// Client is a client of the searcher at the address.
func (c *Conns) Client(address string) (searchv1.SearchServiceClient, error) {
	to, err := c.to(address)
	if err != nil {
		return nil, err
	}
	return searchv1.NewSearchServiceClient(to), nil
}

// Ping pings a searcher with gRPC's health checking protocol, on the connection that
// calls use. Any answer counts, even that the searcher is not ready.
func (c *Conns) Ping(ctx context.Context, t Target) error {
	to, err := c.to(t.Address)
	if err != nil {
		return err
	}
	_, err = healthv1.NewHealthClient(to).Check(ctx, &healthv1.HealthCheckRequest{})
	switch status.Code(err) {
	case codes.Unavailable, codes.DeadlineExceeded, codes.Canceled:
		return fmt.Errorf("ping searcher %s: %w", t.ID, err)
	}
	return nil
}

func (c *Conns) to(address string) (server.Conn, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, ErrClosed
	}
	if known, ok := c.conns[address]; ok {
		return known.Conn, nil
	}
	dialed, err := c.dial(address)
	if err != nil {
		return nil, fmt.Errorf("dial searcher at %s: %w", address, err)
	}
	c.conns[address] = &conn{Conn: dialed}
	return dialed, nil
}

// Keep closes the connections to addresses that have not been live for a while.
func (c *Conns) Keep(live map[string]bool, now time.Time) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	var errs []error
	for address, known := range c.conns {
		switch {
		case live[address]:
			known.leftAt = time.Time{}
		case known.leftAt.IsZero():
			known.leftAt = now
		case now.Sub(known.leftAt) > linger:
			errs = append(errs, known.Close())
			delete(c.conns, address)
		}
	}
	return errors.Join(errs...)
}

// Close closes all connections.
func (c *Conns) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	var errs []error
	for _, known := range c.conns {
		errs = append(errs, known.Close())
	}
	clear(c.conns)
	return errors.Join(errs...)
}
