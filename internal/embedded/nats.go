package embedded

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

const (
	// maxStore bounds the bytes of all streams together.
	maxStore = 1 << 30
	// maxMemory bounds memory streams. There are none.
	maxMemory = 16 << 20
	// readyPoll is the time between two checks whether a starting server is ready.
	readyPoll = 5 * time.Millisecond
)

// NATS is a running embedded NATS server with JetStream. It is safe for
// concurrent use.
type NATS struct {
	server *server.Server
	conn   *nats.Conn
	url    string
	lock   *os.File
}

// StartNATS starts NATS alone on cfg.Dir/nats and returns when it answers. Every
// message is on disk before it is acknowledged. The context bounds the start only.
func StartNATS(ctx context.Context, cfg Config) (started *NATS, err error) {
	dir := filepath.Join(cfg.Dir, "nats")
	n := &NATS{}
	if n.lock, err = lock(dir); err != nil {
		return nil, fmt.Errorf("start NATS: %w", err)
	}
	defer func() {
		if err != nil {
			started, err = nil, fmt.Errorf("start NATS: %w", errors.Join(err, n.Close()))
		}
	}()
	opts, err := natsOptions(cfg, dir)
	if err != nil {
		return nil, err
	}
	if n.server, err = server.NewServer(opts); err != nil {
		return nil, err
	}
	n.server.SetLoggerV2(natsLogger{cfg.logger().With("server", "nats")}, false, false, false)
	n.server.Start()
	if err := waitConnectable(ctx, n.server); err != nil {
		return nil, err
	}
	if !opts.DontListen {
		n.url = "nats://" + n.server.Addr().String()
	}
	n.conn, err = nats.Connect("", nats.InProcessServer(n.server), nats.Name("trawl"), nats.MaxReconnects(-1))
	return n, err
}

// Conn returns the in-process connection. It ends with Close.
func (n *NATS) Conn() *nats.Conn { return n.conn }

// URL returns the URL that other processes connect to, empty without NATSListen.
func (n *NATS) URL() string { return n.url }

// Close stops connection and server and waits for them. A second call does nothing.
func (n *NATS) Close() error {
	if n.conn != nil {
		n.conn.Close()
	}
	if n.server != nil {
		n.server.Shutdown()
		n.server.WaitForShutdown()
	}
	if err := n.lock.Close(); !errors.Is(err, os.ErrClosed) {
		return err
	}
	return nil
}

func waitConnectable(ctx context.Context, s *server.Server) error {
	for !s.ReadyForConnections(readyPoll) {
		if !s.Running() {
			return errors.New("server stopped while starting; see the log")
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return nil
}

func natsOptions(cfg Config, dir string) (*server.Options, error) {
	opts := &server.Options{
		ServerName:         "trawl",
		JetStream:          true,
		StoreDir:           dir,
		SyncAlways:         !cfg.NoSync,
		JetStreamMaxStore:  maxStore,
		JetStreamMaxMemory: maxMemory,
		DontListen:         cfg.NATSListen == "",
		NoSigs:             true, // signals belong to the process that embeds the server
		NoSystemAccount:    true,
	}
	if opts.DontListen {
		return opts, nil
	}
	if err := checkLoopback("NATS", cfg.NATSListen); err != nil {
		return nil, err
	}
	host, port, err := net.SplitHostPort(cfg.NATSListen)
	if err != nil {
		return nil, fmt.Errorf("NATS address %q: %w", cfg.NATSListen, err)
	}
	opts.Host = host
	if opts.Port, err = strconv.Atoi(port); err != nil {
		return nil, fmt.Errorf("NATS address %q: %w", cfg.NATSListen, err)
	}
	if opts.Port == 0 {
		opts.Port = server.RANDOM_PORT
	}
	return opts, nil
}
