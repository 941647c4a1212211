package router

import (
	"errors"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/mcptools"
	"github.com/trawl-search/trawl/internal/server"
)

// Config holds the settings of a router.
type Config struct {
	server.Config

	Replication int           `config:"replication" doc:"searchers that hold each shard; the same number as the searchers have"`
	Zone        string        `config:"zone" doc:"zone of this router; of the searchers that hold a shard those of the same zone are asked first, unless they are slow or have their share; empty: none"`
	MaxTimeout  time.Duration `config:"max-timeout" doc:"most time of a query, whatever its caller's deadline; one without a deadline has 20s, or this if it is less"`

	MaxQueries  int     `config:"max-queries" doc:"most queries that are answered at once; fewer while searchers are overloaded"`
	CallerShare float64 `config:"caller-share" doc:"maximum share of these queries for one token; 1: all"`
	CallerCalls int     `config:"caller-calls" doc:"most calls of one token in progress at once, streams included"`

	CallerProcessors float64 `config:"caller-processors" doc:"processors of searchers that the queries of one token may use on average; each allows 512MiB of decoded content a second; a token may use the allowance of a minute at once; each router counts for itself; 0: no limit"`

	ReposPerMinute int `config:"repos-per-minute" doc:"most requests to index that each token can make of this router in a minute, each KiB of branches and facts counting as one more; those with the scope admin are not limited"`

	PushPause time.Duration `config:"push-pause" doc:"least time between two indexings of a repo that is pushed to again and again"`

	Searcher server.ClientConfig `config:"searcher"`
	Source   origin.Config       `config:"source"`
	Access   access.Config       `config:"access"`
	MCP      mcptools.Config     `config:"mcp"`
}

// What a router allows that no operator has a reason to change.
const (
	// maxRequestBytes is the largest request message: queries and lists of repos are smaller.
	maxRequestBytes = 1 << 20
	// maxStreams is the number of calls at once on one connection of a caller.
	maxStreams = 250
	// maxUnreadBytes bounds the answers that callers have not read. One caller may have
	// half of it, which holds the largest answer.
	maxUnreadBytes = 256 << 20
	// coverWait is how long a query waits for shards that searchers are still loading:
	// about the time in which a searcher fetches a shard.
	coverWait = 3 * time.Second
	// coverPause is the first pause before a query asks again for such shards.
	coverPause = 20 * time.Millisecond
	// queryBytes bounds the memory for the results of one query. Results beyond it are left
	// out, and the answer says so.
	queryBytes = 64 << 20
	// hedgeShare is the most calls to searchers, as a share of all, that are hedged: sent to
	// the next searcher too because the first is slow. It bounds what hedging adds to the load.
	hedgeShare = 0.1
	// retryShare is the most calls, as a share of all, that are sent to the next searcher
	// because the first failed. It keeps retries from overloading the searchers that are left.
	retryShare = 0.2
)

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	c.Config.SetDefaults()
	c.Replication = 2
	c.MaxTimeout = time.Minute
	c.Limits.RequestBytes, c.Limits.Streams, c.Limits.UnreadBytes = maxRequestBytes, maxStreams, maxUnreadBytes
	c.MaxQueries, c.CallerShare, c.CallerCalls = 1000, 0.1, 250
	c.CallerProcessors = 2
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
	config.Between(&check, "max-timeout", c.MaxTimeout, time.Millisecond, time.Hour)
	config.Between(&check, "max-queries", c.MaxQueries, 2, 1<<20)
	config.Between(&check, "caller-share", c.CallerShare, 0.01, 1)
	config.Between(&check, "caller-calls", c.CallerCalls, 1, 1<<20)
	config.Between(&check, "caller-processors", c.CallerProcessors, 0, 1<<20)
	config.Between(&check, "repos-per-minute", c.ReposPerMinute, 1, 1<<20)
	config.Between(&check, "push-pause", c.PushPause, 0, time.Hour)
	check.Nested("searcher", &c.Searcher)
	check.Nested("source", &c.Source)
	check.Nested("access", &c.Access)
	check.Nested("mcp", &c.MCP)
	c.Access.CheckReach(&check, c.GRPC, c.HTTP)
	return errors.Join(c.Config.Validate(), check.Err())
}

// defaultTimeout is the time of a query whose caller set no deadline: longer than a person
// waits, and than a query takes that is not unusual.
func (c *Config) defaultTimeout() time.Duration { return min(20*time.Second, c.MaxTimeout) }
