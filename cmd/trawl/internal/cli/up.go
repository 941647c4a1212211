package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"google.golang.org/grpc"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/queue"
	"github.com/trawl-search/trawl/services/indexer"
	"github.com/trawl-search/trawl/services/router"
	"github.com/trawl-search/trawl/services/searcher"
)

func newUp(p Process) *cobra.Command {
	var s upSettings
	cmd := &cobra.Command{
		Use:   "up",
		Short: "Run all of Trawl in this process, on this machine",
		Long: `Run all of Trawl in this process: the three roles, on an etcd and a NATS server that it hosts and a folder as
the bucket. Everything is kept below --data-dir.

When all roles are ready it prints their addresses, and that of the web page, to standard output:

  ready: gRPC 127.0.0.1:7430, HTTP 127.0.0.1:7431
  page: http://127.0.0.1:7431/

With --access-mode tokens it also prints the command that makes tokens. That command reaches etcd through a socket in the
data folder, which only the user who runs Trawl may enter.

With --roles none it hosts only etcd and NATS, for roles in processes of their own on this machine, and the first line
has their addresses.`,
	}
	return configured(p, cmd, &s, func(cmd *cobra.Command) error { return up(cmd.Context(), p, s) })
}

// up runs the roles until ctx ends or one of them fails.
func up(ctx context.Context, p Process, s upSettings) (err error) {
	var sh shared
	defer func() { err = errors.Join(err, sh.close()) }()
	if s.DataDir, err = filepath.Abs(s.DataDir); err != nil {
		return fmt.Errorf("finding the data folder: %w", err)
	}
	s.settle()
	if err := sh.startTelemetry(ctx, p, s.logging.Config, "up"); err != nil {
		return err
	}
	servers, err := s.host(ctx, &sh)
	if err != nil {
		return err
	}
	services, err := s.services(ctx, &sh)
	if err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	for role, service := range services {
		group.Go(func() error { return wrapRole(role, service.Run(running)) })
	}
	group.Go(func() error {
		if awaitReady(running, services) {
			fmt.Fprint(p.Out, readyLines(services, servers, s))
		}
		<-running.Done()
		return nil
	})
	return group.Wait()
}

// host starts etcd and NATS, and opens the clients that the roles share.
func (s *upSettings) host(ctx context.Context, sh *shared) (*embedded.Embedded, error) {
	servers, err := embedded.Start(ctx, embedded.Config{
		Dir: s.DataDir, EtcdListen: s.Etcd.Listen, NATSListen: s.NATS.Listen, Logger: sh.telemetry.For("embedded").Logger(),
	})
	if err != nil {
		return nil, fmt.Errorf("starting etcd and NATS in %s: %w", s.DataDir, err)
	}
	sh.closers = append(sh.closers, servers.Close)
	sh.etcd = servers.Client()
	if err := sh.useNATS(servers.Conn(), queue.Config{}); err != nil {
		return nil, err
	}
	var cfg bucket.Config
	cfg.SetDefaults()
	cfg.URL = (&url.URL{Scheme: "file", Path: filepath.Join(s.DataDir, "bucket")}).String()
	return servers, sh.openBucket(ctx, cfg)
}

// services makes the roles that are asked for, bound to their addresses. The
// router calls the searcher directly, not over the network.
func (s *upSettings) services(ctx context.Context, sh *shared) (map[string]service, error) {
	made := map[string]service{}
	local := func(address string) grpc.ClientConnInterface {
		if here, ok := made[roleSearcher].(*searcher.Searcher); ok && here.Address() == address {
			return here.Local()
		}
		return nil
	}
	for _, role := range s.Roles {
		var err error
		switch role {
		case roleIndexer:
			made[role], err = indexer.New(s.Indexer, indexer.Deps{Etcd: sh.etcd, Queue: sh.queue, Bucket: sh.bucket, Telemetry: sh.telemetry})
		case roleSearcher:
			made[role], err = searcher.New(s.Searcher, searcher.Deps{Etcd: sh.etcd, Bucket: sh.bucket, Telemetry: sh.telemetry})
		case roleRouter:
			made[role], err = router.New(s.Router, router.Deps{Etcd: sh.etcd, Queue: sh.queue, Telemetry: sh.telemetry, Version: Version(), Local: local})
		}
		if err == nil && role != roleNone {
			err = made[role].Listen(ctx)
		}
		if err != nil {
			return nil, wrapRole(role, err)
		}
	}
	return made, nil
}
