package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/nats-io/nats.go"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/internal/telemetry"
)

// logging embeds the settings of logs and traces under a name of its own, so that a role's Config
// can be embedded as well.
type logging struct{ telemetry.Config }

// storage holds the settings of what logs and uses etcd and the bucket.
type storage struct {
	logging
	Etcd   etcdConfig    `config:"etcd"`
	Bucket bucket.Config `config:"bucket"`
}

// SetDefaults implements config.Settings.
func (s *storage) SetDefaults() { config.Defaults(s) }

// Validate implements config.Settings.
func (s *storage) Validate() error { return config.Validate(s) }

// shared is what a role has in common with all others.
type shared struct {
	role      string
	telemetry *telemetry.Telemetry
	etcd      *clientv3.Client
	prefix    string // of all keys in etcd
	queue     *queue.Queue
	bucket    bucket.Bucket
	closers   []func() error
}

// close closes everything, in the reverse order of opening.
func (s *shared) close() error {
	var errs []error
	for _, closer := range slices.Backward(s.closers) {
		errs = append(errs, closer())
	}
	return errors.Join(errs...)
}

// startTelemetry gives the role its logs, to the process's error output.
func (s *shared) startTelemetry(ctx context.Context, p Process, cfg telemetry.Config, role string) error {
	tel, err := telemetry.Start(ctx, cfg, telemetry.Identity{Service: "trawl-" + role, Version: Version()}, telemetry.WithLogs(p.Err))
	if err != nil {
		return fmt.Errorf("starting logs and traces: %w", err)
	}
	s.role, s.telemetry = role, tel
	s.closers = append(s.closers, func() error { return tel.Shutdown(context.WithoutCancel(ctx)) })
	return nil
}

// connectEtcd makes the etcd client; it does not wait for etcd.
func (s *shared) connectEtcd(cfg etcdConfig) error {
	s.telemetry.Logger().Info("connecting to etcd", "endpoints", cfg.Endpoints) // a role may wait for it, and its log says where
	client, err := cfg.connect(s.telemetry.Logger())
	if err != nil {
		return err
	}
	s.etcd, s.prefix = client, cfg.Prefix
	s.closers = append(s.closers, client.Close)
	return nil
}

// connectNATS makes the queue; it does not wait for NATS.
func (s *shared) connectNATS(cfg natsConfig) error {
	s.telemetry.Logger().Info("connecting to NATS", "url", cfg.URL)
	conn, err := cfg.connect(s.telemetry.Logger())
	if err != nil {
		return fmt.Errorf("connecting to NATS: %w", err)
	}
	s.closers = append(s.closers, func() error { conn.Close(); return nil })
	return s.useNATS(conn, queue.Config{Prefix: cfg.Prefix, Replicas: cfg.Replicas})
}

// useNATS makes the queue on a connection that stays the caller's.
func (s *shared) useNATS(conn *nats.Conn, cfg queue.Config) error {
	cfg.Logger = s.telemetry.Logger()
	q, err := queue.New(conn, cfg)
	if err != nil {
		return fmt.Errorf("using NATS: %w", err)
	}
	s.queue = q
	return nil
}

// openBucket opens the bucket.
func (s *shared) openBucket(ctx context.Context, cfg bucket.Config) error {
	b, err := bucket.Open(ctx, cfg)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, func() error { return bucket.Close(b) })
	if s.bucket, err = bucket.Instrument(b, s.telemetry.For(s.role).Metrics()); err != nil {
		return fmt.Errorf("counting what the bucket does: %w", err)
	}
	return nil
}

// openStorage starts the logs of a command, and opens etcd, which must answer within seconds, and a bucket that exists.
func (s *shared) openStorage(ctx context.Context, p Process, cfg storage, role string) error {
	if err := s.startTelemetry(ctx, p, cfg.logging.Config, role); err != nil {
		return err
	}
	cfg.Bucket.Existing = true
	err := s.connectEtcd(cfg.Etcd)
	if err == nil {
		err = cfg.Etcd.await(ctx, s.etcd)
	}
	return errors.Join(err, s.openBucket(ctx, cfg.Bucket))
}
