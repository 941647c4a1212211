package searcher

import (
	"errors"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
)

// Config is the settings of a searcher.
type Config struct {
	server.Config

	ID         string        `config:"id" doc:"unique name of this searcher; keeping it across restarts keeps its shards in place"`
	Zone       string        `config:"zone" doc:"failure domain of this searcher, such as a zone of a cloud; replicas of a shard go to different zones where possible; empty: a zone of its own"`
	Advertise  string        `config:"advertise" doc:"HOST:PORT at which routers reach the gRPC server; empty: the address it listens on, or the host's name where that is every interface"`
	CacheDir   string        `config:"cache-dir" doc:"folder for shards; kept between restarts, used by one searcher only"`
	DiskBudget string        `config:"disk-budget" doc:"maximum size of the cache folder: bytes, such as 200GiB, or a share, such as 80%, of its size at the start plus the free space of its file system; shards beyond it are read from the bucket as searches need them"`
	LeaseTTL   time.Duration `config:"lease-ttl" doc:"how long routers regard a silent searcher as live"`

	Replication int           `config:"replication" doc:"number of searchers that hold each shard; routers must have the same setting"`
	Grace       time.Duration `config:"grace" doc:"how long the searcher keeps a shard that it no longer needs"`

	Access access.Config `config:"access"`
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	c.Config.SetDefaults()
	c.TLS.ForRoles(server.RouterName)
	c.GRPC, c.HTTP = "127.0.0.1:7440", "127.0.0.1:7441"
	c.ID, _ = os.Hostname()
	c.CacheDir = "trawl-shards"
	c.DiskBudget = "80%"
	c.LeaseTTL = 10 * time.Second
	c.Replication = 2
	c.Grace = time.Minute
	c.Access.SetDefaults()
}

const (
	// loads is the number of shards that are fetched at once: enough for the throughput of a
	// bucket, few enough that the first are soon held.
	loads = 4
	// loadWait is how long a query waits for shards that are being fetched. A small shard
	// arrives within it; for others the router asks again, or asks another searcher.
	loadWait = 200 * time.Millisecond
)

// maxID bounds the searcher's name in bytes, as it is part of an etcd key, and its zone.
const maxID = 253

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.That(len(c.ID) > 0 && len(c.ID) <= maxID, "id", c.ID, "1 to 253 bytes")
	check.That(len(c.Zone) <= maxID, "zone", c.Zone, "at most 253 bytes")
	if c.Advertise != "" {
		check.Address("advertise", c.Advertise)
	}
	check.NotEmpty("cache-dir", c.CacheDir)
	_, _, err := parseBudget(c.DiskBudget)
	check.That(err == nil, "disk-budget", c.DiskBudget, "1% to 100%, or at least 1MiB")
	config.Between(&check, "lease-ttl", c.LeaseTTL, time.Second, 10*time.Minute)
	config.Between(&check, "replication", c.Replication, 1, 16)
	config.Between(&check, "grace", c.Grace, 0, 24*time.Hour)
	check.Nested("access", &c.Access)
	c.Access.CheckReach(&check, c.GRPC)
	return errors.Join(c.Config.Validate(), check.Err())
}

// leastBudget is the smallest budget of a working cache, in bytes.
const leastBudget = config.MiB

// parseBudget reads a budget: a share of the disk, or bytes.
func parseBudget(text string) (share int64, bytes config.Bytes, err error) {
	if number, ok := strings.CutSuffix(text, "%"); ok {
		share, err = strconv.ParseInt(number, 10, 8)
		if err == nil && (share < 1 || share > 100) {
			err = errBudget
		}
		return share, 0, err
	}
	if err = bytes.UnmarshalText([]byte(text)); err == nil && bytes < leastBudget {
		err = errBudget
	}
	return 0, bytes, err
}

var errBudget = errors.New("not a disk budget")

// diskBudget is the cache's budget in bytes, or 0 (no limit) if the system does not
// report the size of its disk. The cache folder must exist.
func (c *Config) diskBudget() (int64, error) {
	share, bytes, err := parseBudget(c.DiskBudget)
	if err != nil || share == 0 {
		return int64(bytes), err
	}
	free, err := disk.Room(c.CacheDir)
	if errors.Is(err, errors.ErrUnsupported) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	taken, err := disk.Taken(c.CacheDir)
	return (free + taken) / 100 * share, err
}
