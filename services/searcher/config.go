package searcher

import (
	"errors"
	"os"
	"time"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/server"
)

// Config is the settings of a searcher.
type Config struct {
	server.Config

	ID        string        `config:"id" doc:"name of this searcher, unlike any other's; the same after a restart keeps its shards in place"`
	Advertise string        `config:"advertise" doc:"HOST:PORT at which routers reach the gRPC server; empty: the address it listens on, or the host's name where that is every interface"`
	CacheDir  string        `config:"cache-dir" doc:"folder for shards; kept between restarts, of one searcher only"`
	LeaseTTL  time.Duration `config:"lease-ttl" doc:"how long routers take a searcher for live that gives no sign"`

	Replication int           `config:"replication" doc:"searchers that hold each shard; the same number as the routers have"`
	Loads       int           `config:"loads" doc:"shards that are fetched at once"`
	LoadWait    time.Duration `config:"load-wait" doc:"how long a query waits here for shards that are being fetched"`
	Grace       time.Duration `config:"grace" doc:"how long a shard is kept that is no longer needed here"`
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	c.Config.SetDefaults()
	c.GRPC, c.HTTP = "127.0.0.1:7440", "127.0.0.1:7441"
	c.ID, _ = os.Hostname()
	c.CacheDir = "trawl-shards"
	c.LeaseTTL = 10 * time.Second
	c.Replication = 2
	c.Loads = 4
	c.LoadWait = 200 * time.Millisecond
	c.Grace = time.Minute
}

// maxID bounds the searcher's name in bytes: it is part of an etcd key.
const maxID = 253

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.That(len(c.ID) > 0 && len(c.ID) <= maxID, "id", c.ID, "1 to 253 bytes")
	if c.Advertise != "" {
		check.Address("advertise", c.Advertise)
	}
	check.NotEmpty("cache-dir", c.CacheDir)
	config.Between(&check, "lease-ttl", c.LeaseTTL, time.Second, 10*time.Minute)
	config.Between(&check, "replication", c.Replication, 1, 16)
	config.Between(&check, "loads", c.Loads, 1, 256)
	config.Between(&check, "load-wait", c.LoadWait, 0, time.Minute)
	config.Between(&check, "grace", c.Grace, 0, 24*time.Hour)
	return errors.Join(c.Config.Validate(), check.Err())
}
