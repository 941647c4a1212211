package router

import (
	"errors"
	"time"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/searchwire"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/source/origin"
)

// Config is the settings of a router.
type Config struct {
	server.Config

	Replication    int           `config:"replication" doc:"searchers that hold each shard; the same number as the searchers have"`
	DefaultTimeout time.Duration `config:"default-timeout" doc:"time of a query whose caller set no deadline"`
	MaxTimeout     time.Duration `config:"max-timeout" doc:"most time of a query, whatever its caller's deadline"`
	CoverWait      time.Duration `config:"cover-wait" doc:"how long a query waits for shards that searchers are still loading"`
	MaxFiles       uint32        `config:"max-files" doc:"most files in one answer"`
	MaxBytes       config.Bytes  `config:"max-bytes" doc:"most bytes of content in one answer"`

	Searcher server.ClientConfig `config:"searcher"`
	Source   origin.Policy       `config:"source"`
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	c.Config.SetDefaults()
	c.Replication = 2
	c.DefaultTimeout, c.MaxTimeout = 20*time.Second, time.Minute
	c.CoverWait = 3 * time.Second
	c.MaxFiles, c.MaxBytes = searchwire.MaxFiles, 64*config.MiB
	c.Searcher.SetDefaults()
	c.Source.SetDefaults()
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	config.Between(&check, "replication", c.Replication, 1, 16)
	config.Between(&check, "default-timeout", c.DefaultTimeout, time.Millisecond, time.Hour)
	config.Between(&check, "max-timeout", c.MaxTimeout, time.Millisecond, time.Hour)
	config.Between(&check, "cover-wait", c.CoverWait, 0, time.Hour)
	config.Between(&check, "max-files", c.MaxFiles, 1, searchwire.MaxFiles)
	config.Between(&check, "max-bytes", c.MaxBytes, 1, 64*config.MiB)
	check.Nested("searcher", &c.Searcher)
	check.Nested("source", &c.Source)
	return errors.Join(c.Config.Validate(), check.Err())
}
