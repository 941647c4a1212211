package router

import (
	"errors"
	"fmt"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/mcptools"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
)

// Config holds the settings of a router.
type Config struct {
	server.Config

	Replication    int           `config:"replication" doc:"searchers that hold each shard; the same number as the searchers have"`
	DefaultTimeout time.Duration `config:"default-timeout" doc:"time of a query whose caller set no deadline"`
	MaxTimeout     time.Duration `config:"max-timeout" doc:"most time of a query, whatever its caller's deadline"`
	CoverWait      time.Duration `config:"cover-wait" doc:"how long a query waits for shards that searchers are still loading"`
	MaxFiles       uint32        `config:"max-files" doc:"most files in one answer"`
	MaxBytes       config.Bytes  `config:"max-bytes" doc:"most bytes of one answer, as it is sent"`
	QueryBytes     config.Bytes  `config:"query-bytes" doc:"memory for the results of one query; results beyond it are left out, and the answer says so"`

	MaxQueries  int     `config:"max-queries" doc:"most queries that are answered at once; fewer while searchers are overloaded"`
	CallerShare float64 `config:"caller-share" doc:"maximum share of these queries for one token; 1: all"`
	CallerCalls int     `config:"caller-calls" doc:"most calls of one token in progress at once, streams included"`

	CallerProcessors float64      `config:"caller-processors" doc:"processors of searchers that the queries of one token may keep busy on average, a minute's worth at once; each router counts for itself; 0: no limit"`
	CallerBytes      config.Bytes `config:"caller-bytes" doc:"content that searchers may decode in a second for the queries of one token, on average, a minute's worth at once; each router counts for itself; 0: no limit"`

	HedgeShare float64 `config:"hedge-share" doc:"maximum share of calls that are hedged: sent to the next searcher, too, because the first is slow; 0: none"`
	RetryShare float64 `config:"retry-share" doc:"maximum share of calls that are retried: sent to the next searcher because the first failed; 0: none"`

	Credentials    string `config:"credentials" doc:"folder with the secrets of webhooks that sources name by file"`
	ReposPerMinute int    `config:"repos-per-minute" doc:"most requests to index that each token can make of this router in a minute; those with the scope admin are not limited"`

	PushPause time.Duration `config:"push-pause" doc:"least time between two indexings of a repo that is pushed to again and again"`

	Searcher server.ClientConfig `config:"searcher"`
	Source   origin.Policy       `config:"source"`
	Access   access.Config       `config:"access"`
	MCP      mcptools.Config     `config:"mcp"`
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	c.Config.SetDefaults()
	c.Replication = 2
	c.DefaultTimeout, c.MaxTimeout = 20*time.Second, time.Minute
	c.CoverWait = 3 * time.Second
	c.MaxFiles, c.MaxBytes, c.QueryBytes = searchapi.MaxFiles, searchapi.MaxBytes, 64*config.MiB
	c.MaxRequestBytes, c.MaxStreams = config.MiB, 250
	c.MaxQueries, c.CallerShare, c.CallerCalls = 1000, 0.1, 250
	c.CallerProcessors, c.CallerBytes = 2, config.GiB
	c.HedgeShare, c.RetryShare = 0.1, 0.2
	c.PushPause = 10 * time.Second
	c.ReposPerMinute = 600
	c.Searcher.SetDefaults()
	c.Searcher.TLS.ServerNames = []string{server.SearcherName}
	c.Source.SetDefaults()
	c.Access.SetDefaults()
	c.MCP.SetDefaults()
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	config.Between(&check, "replication", c.Replication, 1, 16)
	config.Between(&check, "default-timeout", c.DefaultTimeout, time.Millisecond, time.Hour)
	config.Between(&check, "max-timeout", c.MaxTimeout, time.Millisecond, time.Hour)
	config.Between(&check, "cover-wait", c.CoverWait, 0, time.Hour)
	config.Between(&check, "max-files", c.MaxFiles, 1, searchapi.MaxFiles)
	config.Between(&check, "max-bytes", c.MaxBytes, 1, searchapi.MaxBytes)
	config.Between(&check, "query-bytes", c.QueryBytes, config.MiB, 64*config.GiB)
	config.Between(&check, "max-queries", c.MaxQueries, 2, 1<<20)
	config.Between(&check, "caller-share", c.CallerShare, 0.01, 1)
	config.Between(&check, "caller-calls", c.CallerCalls, 1, 1<<20)
	config.Between(&check, "caller-processors", c.CallerProcessors, 0, 1<<20)
	config.Between(&check, "caller-bytes", c.CallerBytes, 0, config.Bytes(1<<50))
	config.Between(&check, "hedge-share", c.HedgeShare, 0, 1)
	config.Between(&check, "retry-share", c.RetryShare, 0, 1)
	config.Between(&check, "repos-per-minute", c.ReposPerMinute, 1, 1<<20)
	config.Between(&check, "push-pause", c.PushPause, 0, time.Hour)
	least := config.Bytes(searchapi.LeastResponse)
	pieces := fmt.Sprintf("at least %v: what is found is sent in pieces", least)
	check.That(c.MaxResponseBytes >= least, "max-response-bytes", c.MaxResponseBytes, pieces)
	check.That(c.Searcher.MaxResponseBytes >= least, "searcher.max-response-bytes", c.Searcher.MaxResponseBytes, pieces)
	check.Nested("searcher", &c.Searcher)
	check.Nested("source", &c.Source)
	check.Nested("access", &c.Access)
	check.Nested("mcp", &c.MCP)
	c.Access.CheckReach(&check, c.GRPC, c.HTTP)
	return errors.Join(c.Config.Validate(), check.Err())
}

// answerBytes bounds an answer in bytes: it must fit a message too.
func (c *Config) answerBytes() uint64 {
	return uint64(min(c.MaxBytes, c.MaxResponseBytes, c.Searcher.MaxResponseBytes))
}
