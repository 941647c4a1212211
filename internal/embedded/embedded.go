package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Config configures where the servers keep their data and on which addresses they
// listen.
type Config struct {
	// Dir is the data folder; it is created when missing. One process at a time.
	Dir string
	// EtcdListen is a loopback host:port for other processes' etcd clients; port 0
	// takes a free one. Empty: a unix socket inside a private folder.
	EtcdListen string
	// NATSListen is a loopback host:port for other processes' NATS clients; port 0
	// takes a free one. Empty: connections from this process only.
	NATSListen string
	// Heartbeat is etcd's raft tick; 0 means 100 ms. Tests shorten it.
	Heartbeat time.Duration
	// Election is etcd's election timeout; 0 means ten heartbeats. etcd grants no
	// lease shorter than one and a half elections.
	Election time.Duration
	// Quota is the size of etcd's database in bytes beyond which it refuses changes; 0 means 4 GiB.
	// Tests shrink it.
	Quota int64
	// NoSync acknowledges writes before they are on the disk, so a crash of the machine may lose them. It is for tests,
	// so that a busy disk does not fail them.
	NoSync bool
	// Logger receives the servers' warnings and errors; nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) logger() *slog.Logger { return cmp.Or(c.Logger, slog.Default()) }

// Embedded is a running etcd and a running NATS server with a client of each.
// It is safe for concurrent use.
type Embedded struct {
	*Etcd
	*NATS
}

// Start starts both servers and returns when both answer. The context bounds
// the start only.
func Start(ctx context.Context, cfg Config) (*Embedded, error) {
	etcd, err := StartEtcd(ctx, cfg)
	if err != nil {
		return nil, err
	}
	nats, err := StartNATS(ctx, cfg)
	if err != nil {
		return nil, errors.Join(err, etcd.Close())
	}
	return &Embedded{etcd, nats}, nil
}

// Close stops both clients and both servers and waits for them.
func (e *Embedded) Close() error {
	return errors.Join(e.NATS.Close(), e.Etcd.Close())
}

// checkLoopback refuses addresses that other machines could reach, since neither
// server authenticates its clients.
func checkLoopback(what, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("%s address %q: %w", what, address, err)
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%s address %q: only a numeric loopback address is allowed, such as 127.0.0.1:0", what, address)
	}
	return nil
}
