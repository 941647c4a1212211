package cli

import (
	"context"
	"errors"
	"net"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/services/canary"
	"github.com/trawl-search/trawl/services/indexer"
	"github.com/trawl-search/trawl/services/router"
	"github.com/trawl-search/trawl/services/searcher"
)

// service is a role: it runs until its context ends, then drains.
type service interface {
	// Listen binds the addresses, so that they are known before Run.
	Listen(ctx context.Context) error
	GRPCAddr() net.Addr
	HTTPAddr() net.Addr
	// Ready reports whether the role can do its work.
	Ready() bool
	Run(ctx context.Context) error
}

// The names of the roles.
const (
	roleIndexer  = "indexer"
	roleSearcher = "searcher"
	roleRouter   = "router"
	roleCanary   = "canary"
)

type indexerSettings struct {
	indexer.Config
	storage
	NATS natsConfig `config:"nats"`
}

// SetDefaults implements config.Settings.
func (s *indexerSettings) SetDefaults() { config.Defaults(s) }

// Validate implements config.Settings.
func (s *indexerSettings) Validate() error { return config.Validate(s) }

func newIndexer(p Process) *cobra.Command {
	var s indexerSettings
	cmd := &cobra.Command{Use: roleIndexer, Short: "Run an indexer: fetch repositories and publish their indexes"}
	return configured(p, cmd, &s, func(cmd *cobra.Command) error {
		return runRole(cmd.Context(), p, roleIndexer, s.logging, func(ctx context.Context, sh *shared) (service, error) {
			if err := errors.Join(sh.connectEtcd(s.Etcd), sh.connectNATS(s.NATS), sh.openBucket(ctx, s.Bucket)); err != nil {
				return nil, err
			}
			return indexer.New(s.Config, indexer.Deps{Etcd: sh.etcd, Prefix: sh.prefix, Queue: sh.queue, Bucket: sh.bucket, Telemetry: sh.telemetry})
		})
	})
}

type searcherSettings struct {
	searcher.Config
	storage
}

// SetDefaults implements config.Settings.
func (s *searcherSettings) SetDefaults() { config.Defaults(s) }

// Validate implements config.Settings.
func (s *searcherSettings) Validate() error { return config.Validate(s) }

func newSearcher(p Process) *cobra.Command {
	var s searcherSettings
	cmd := &cobra.Command{Use: roleSearcher, Short: "Run a searcher: serve the shards placed on it"}
	return configured(p, cmd, &s, func(cmd *cobra.Command) error {
		return runRole(cmd.Context(), p, roleSearcher, s.logging, func(ctx context.Context, sh *shared) (service, error) {
			if err := errors.Join(sh.connectEtcd(s.Etcd), sh.openBucket(ctx, s.Bucket)); err != nil {
				return nil, err
			}
			return searcher.New(s.Config, searcher.Deps{Etcd: sh.etcd, Prefix: sh.prefix, Bucket: sh.bucket, Telemetry: sh.telemetry})
		})
	})
}

type routerSettings struct {
	router.Config
	logging
	Etcd etcdConfig `config:"etcd"`
	NATS natsConfig `config:"nats"`
}

// SetDefaults implements config.Settings.
func (s *routerSettings) SetDefaults() { config.Defaults(s) }

// Validate implements config.Settings.
func (s *routerSettings) Validate() error { return config.Validate(s) }

func newRouter(p Process) *cobra.Command {
	var s routerSettings
	cmd := &cobra.Command{Use: roleRouter, Short: "Run a router: take calls, plan queries and merge answers"}
	return configured(p, cmd, &s, func(cmd *cobra.Command) error {
		return runRole(cmd.Context(), p, roleRouter, s.logging, func(_ context.Context, sh *shared) (service, error) {
			if err := errors.Join(sh.connectEtcd(s.Etcd), sh.connectNATS(s.NATS)); err != nil {
				return nil, err
			}
			return router.New(s.Config, router.Deps{Etcd: sh.etcd, Prefix: sh.prefix, Queue: sh.queue, Telemetry: sh.telemetry, Version: Version()})
		})
	})
}

type canarySettings struct {
	canary.Config
	logging
}

// SetDefaults implements config.Settings.
func (s *canarySettings) SetDefaults() { config.Defaults(s) }

// Validate implements config.Settings.
func (s *canarySettings) Validate() error { return config.Validate(s) }

func newCanary(p Process) *cobra.Command {
	var s canarySettings
	cmd := &cobra.Command{
		Use:   roleCanary,
		Short: "Watch what callers see: push to a repo of its own, and search for it",
		Long: `Watch what callers see. The canary serves a small Git repository from memory and pushes to it again and again. Each time it
requests that the repo be indexed, and asks a router for it by gRPC, JSON, zoekt's JSON and the page until all have found it. Now and then it
deletes the repo, which must be gone at once. Its metrics say how long all that takes, and whether answers are complete. At the end it
deletes its repo.

Routers and indexers must allow its repository: --source-canary http://HOST:PORT/trawl/canary.git`,
	}
	return configured(p, cmd, &s, func(cmd *cobra.Command) error {
		return runRole(cmd.Context(), p, roleCanary, s.logging, func(_ context.Context, sh *shared) (service, error) {
			return canary.New(s.Config, sh.telemetry)
		})
	})
}

// runRole runs one role until ctx ends.
func runRole(ctx context.Context, p Process, role string, logs logging, open func(context.Context, *shared) (service, error)) (err error) {
	var sh shared
	defer func() { err = wrapRole(role, errors.Join(err, sh.close())) }()
	if err := sh.startTelemetry(ctx, p, logs.Config, role); err != nil {
		return err
	}
	made, err := open(ctx, &sh)
	if err != nil {
		return err
	}
	return made.Run(ctx)
}
