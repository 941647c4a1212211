package cli

import (
	"cmp"
	"path/filepath"
	"slices"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/tlsfiles"
	"github.com/trawl-search/trawl/services/indexer"
	"github.com/trawl-search/trawl/services/router"
	"github.com/trawl-search/trawl/services/searcher"
)

// roleNone stands for no role: only etcd and NATS are hosted.
const roleNone = "none"

// upSettings are the settings of all roles in one process. Settings that all roles share stand at
// the top; see settle.
type upSettings struct {
	logging
	DataDir  string                `config:"data-dir" doc:"folder for everything that is kept; the same folder continues where it ended"`
	Roles    []string              `config:"roles" doc:"roles to run: indexer, searcher, router; or none, to host etcd and NATS only"`
	GRPC     string                `config:"grpc" doc:"address for callers, HOST:PORT; port 0 takes a free one"`
	HTTP     string                `config:"http" doc:"address of the pages and of everything else over HTTP (JSON, MCP, webhooks, health, readiness, metrics), HOST:PORT"`
	TLS      tlsfiles.ServerConfig `config:"tls"`
	Source   origin.Config         `config:"source"`
	Access   access.Config         `config:"access"`
	Etcd     listenConfig          `config:"etcd"`
	NATS     listenConfig          `config:"nats"`
	Indexer  indexer.Config        `config:"indexer"`
	Searcher searcher.Config       `config:"searcher"`
	Router   router.Config         `config:"router"`
}

// listenConfig lets other processes of this machine use an embedded server.
type listenConfig struct {
	Listen string `config:"listen" doc:"loopback HOST:PORT for other processes; port 0 takes a free one; empty: this process only"`
}

// SetDefaults implements config.Settings: one replica, no wait for load
// balancers, and repositories of this machine are allowed.
func (s *upSettings) SetDefaults() {
	config.Defaults(s)
	s.DataDir = "trawl-data"
	s.Roles = []string{roleIndexer, roleSearcher, roleRouter}
	s.GRPC, s.HTTP = s.Router.GRPC, s.Router.HTTP
	s.LogLevel, s.LogFormat = "warn", "text"
	s.Source.Folders = []string{"/"}
	s.Router.Replication, s.Searcher.Replication = 1, 1
	s.Indexer.DrainDelay, s.Searcher.DrainDelay, s.Router.DrainDelay = 0, 0, 0
	for _, addr := range []*string{&s.Indexer.GRPC, &s.Indexer.HTTP, &s.Searcher.GRPC, &s.Searcher.HTTP} {
		*addr = "127.0.0.1:0"
	}
}

// Validate implements config.Settings.
func (s *upSettings) Validate() error {
	var check config.Check
	check.Parts(s)
	check.NotEmpty("data-dir", s.DataDir)
	for _, role := range s.Roles {
		check.OneOf("roles", role, roleIndexer, roleSearcher, roleRouter, roleNone)
	}
	check.That(!s.hostsOnly() || len(s.Roles) == 1, "roles", s.Roles, "none alone, or roles")
	check.Address("grpc", s.GRPC)
	check.Address("http", s.HTTP)
	s.Access.CheckReach(&check, s.GRPC, s.HTTP)
	for _, l := range []struct{ setting, listen string }{{"etcd.listen", s.Etcd.Listen}, {"nats.listen", s.NATS.Listen}} {
		check.That(!s.Access.Asked() || l.listen == "", l.setting, l.listen,
			"none where callers need tokens, as every process of this machine could make tokens and requests there")
	}
	return check.Err()
}

// GovernedBy implements config.Governed.
func (s *upSettings) GovernedBy() map[string]string {
	return map[string]string{
		"router.grpc":                     "grpc",
		"router.http":                     "http",
		"router.tls":                      "tls",
		"router.source":                   "source",
		"indexer.source.schemes":          "source",
		"indexer.source.hosts":            "source",
		"indexer.source.private-networks": "source",
		"indexer.source.folders":          "source",
		"indexer.source.credentials":      "source",
		"indexer.source.canary":           "source",
		"router.access":                   "access",
		"searcher.access":                 "access",
		"indexer.cache-dir":               "data-dir",
		"searcher.cache-dir":              "data-dir",
	}
}

// settle copies the common settings to the roles. Where no role runs here, etcd and NATS
// get their usual ports unless others were asked for.
func (s *upSettings) settle() {
	s.Router.GRPC, s.Router.HTTP, s.Router.TLS = s.GRPC, s.HTTP, s.TLS
	s.Router.Source, s.Indexer.Source.Config = s.Source, s.Source
	s.Router.Access, s.Searcher.Access = s.Access, s.Access
	s.Indexer.CacheDir = filepath.Join(s.DataDir, roleIndexer)
	s.Searcher.CacheDir = filepath.Join(s.DataDir, roleSearcher)
	if s.hostsOnly() {
		s.Etcd.Listen = cmp.Or(s.Etcd.Listen, "127.0.0.1:2379")
		s.NATS.Listen = cmp.Or(s.NATS.Listen, "127.0.0.1:4222")
	}
}

// hostsOnly reports whether no role runs here.
func (s *upSettings) hostsOnly() bool { return slices.Contains(s.Roles, roleNone) }
