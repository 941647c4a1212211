package indexer

import (
	"errors"
	"time"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gc"
	"github.com/trawl-search/trawl/internal/gitsource"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/services/indexer/internal/compact"
)

// Config holds the settings of an indexer.
type Config struct {
	server.Config
	Source gitsource.FetchConfig `config:"source"`

	CacheDir  string       `config:"cache-dir" doc:"folder for mirrors of repositories and for shards before their upload; one indexer uses it"`
	CacheSize config.Bytes `config:"cache-size" doc:"disk space for mirrors of repositories; those in use may exceed it"`

	Workers    int           `config:"workers" doc:"repos indexed concurrently"`
	JobTimeout time.Duration `config:"job-timeout" doc:"maximum time for one repo, including the fetch"`
	LeaseTTL   time.Duration `config:"lease-ttl" doc:"how long a repo stays leased after its indexer died"`

	ReconcileEvery time.Duration `config:"reconcile-every" doc:"time between two checks for requests that the queue lost"`

	Sources string `config:"sources" doc:"file that defines all sources, applied again when it changes; empty: sources are set by trawl sources apply"`

	PollPerSecond int           `config:"poll-per-second" doc:"repositories of one host that are polled for new commits each second"`
	PushPause     time.Duration `config:"push-pause" doc:"minimum time between two indexings of a repo that receives many pushes"`

	GCEvery time.Duration `config:"gc-every" doc:"time between two garbage collections of the bucket, and between two removals of deleted repos from the cache folder"`
	GC      gc.Config     `config:"gc"`

	Compact compact.Config `config:"compact"`

	MaxFileBytes config.Bytes `config:"max-file-bytes" doc:"maximum size of a file that is searched by content; larger ones are found by name"`
	MaxFiles     int          `config:"max-files" doc:"maximum number of files in all branches of one repo"`
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	*c = Config{
		CacheDir: "/var/cache/trawl/indexer", CacheSize: 50 * config.GiB,
		Workers: 2, JobTimeout: 2 * time.Hour, LeaseTTL: 15 * time.Second,
		PollPerSecond: 10, PushPause: 10 * time.Second,
		ReconcileEvery: 2 * time.Minute, GCEvery: 15 * time.Minute,
		MaxFileBytes: build.DefaultMaxFileSize, MaxFiles: 4_000_000,
	}
	c.Config.SetDefaults()
	c.TLS.ForRoles(server.RouterName)
	c.Source.SetDefaults()
	c.GC.SetDefaults()
	c.Compact.SetDefaults()
}

const (
	// MaxAttempts is the number of attempts after which a temporary failure is final. The
	// queue gives up a job after as many deliveries.
	MaxAttempts = 5
	// retryFailed is the time after which a failed request is tried again, and retryUnreachable that if its
	// host cannot be reached. It doubles with each failure, up to a day: a repo stays behind for about as long again
	// as its host was away. Other failures mostly need a person, or cost a fetch or an indexer.
	retryFailed, retryUnreachable = time.Hour, time.Minute
)

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.NotEmpty("cache-dir", c.CacheDir)
	check.That(c.CacheSize >= 0, "cache-size", c.CacheSize, "0 or more")
	config.Between(&check, "workers", c.Workers, 1, 256)
	config.Between(&check, "job-timeout", c.JobTimeout, time.Second, 7*24*time.Hour)
	config.Between(&check, "lease-ttl", c.LeaseTTL, time.Second, time.Hour)
	config.Between(&check, "reconcile-every", c.ReconcileEvery, time.Second, 24*time.Hour)
	config.Between(&check, "poll-per-second", c.PollPerSecond, 1, 1000)
	config.Between(&check, "push-pause", c.PushPause, 0, time.Hour)
	config.Between(&check, "max-file-bytes", c.MaxFileBytes, 1, 64*config.MiB)
	config.Between(&check, "max-files", c.MaxFiles, 1, 1<<27)
	check.Nested("source", &c.Source)
	config.Between(&check, "gc-every", c.GCEvery, time.Second, 24*time.Hour)
	check.Nested("gc", &c.GC)
	check.Nested("compact", &c.Compact)
	return errors.Join(c.Config.Validate(), check.Err())
}

// limits and build name every bound that shards depend on: their digest says whether a repo needs to
// be built anew.
func (c *Config) limits() gitsource.Limits {
	return gitsource.Limits{MaxFileSize: int64(c.MaxFileBytes), MaxDepth: gitsource.DefaultMaxDepth, MaxDocuments: c.MaxFiles}
}

// bounds returns the times within which the bytes of a deleted repo leave the bucket while
// collections and compactions succeed. Its own shards take a hold and two collections. Shared
// shards first take the age at which they are rewritten, and the time to plan and carry that out.
func (c *Config) bounds(live *limits.Live) gc.Bounds {
	own := c.GC.Hold + 2*c.GCEvery
	if c.Compact.Every == 0 {
		return gc.Bounds{Own: own}
	}
	inForce := c.Compact.InForce(live)
	return gc.Bounds{Own: own, Shared: inForce.Reclaim + 2*c.Compact.Every + c.Compact.Longest() + own}
}

func (c *Config) build() build.Options {
	return build.Options{MaxFileSize: int(c.MaxFileBytes), MaxSourceBytes: build.DefaultMaxSourceBytes}
}
