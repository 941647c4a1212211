package compact

import (
	"time"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/limits"
)

// Config is the settings of compaction.
type Config struct {
	Every   time.Duration `config:"every" doc:"time between two looks for shards to merge; 0 turns compaction off"`
	Deltas  int           `config:"deltas" doc:"most deltas of a repo before some of them are merged"`
	Settle  time.Duration `config:"settle" doc:"how long a repo must be left alone before it shares a shard"`
	Reclaim time.Duration `config:"reclaim" doc:"how old a shard may be that still holds documents of a deleted repo; fourteen times that for documents that were replaced"`
	// Rate is how many bytes a second one indexer reads and merges for compaction; it is no
	// setting.
	Rate int64 `config:"-"`
}

const (
	// target is the size in bytes that shards of several repos grow to, and at most twice as
	// much: large enough to search as one, small enough to merge and fetch again.
	target = 1 << 30
	// small is the size in bytes of a repo's index below which the repo shares a shard with
	// others. It is far less than half of target, so that a shared shard has many repos.
	small = 64 << 20
	// defaultRate leaves most of a processor and of a disk to indexing. More indexers compact
	// more.
	defaultRate = 32 << 20
)

// SetDefaults implements config.Settings. Decision 20 explains the defaults.
func (c *Config) SetDefaults() {
	*c = Config{
		Every: 2 * time.Minute, Deltas: 8, Settle: 10 * time.Minute, Reclaim: 24 * time.Hour, Rate: defaultRate,
	}
}

// InForce returns the settings with the limits that override them.
func (c *Config) InForce(live *limits.Live) Config {
	now := *c
	now.Deltas = live.Whole(limits.CompactDeltas, "", c.Deltas)
	now.Settle = live.Duration(limits.CompactSettle, c.Settle)
	now.Reclaim = live.Duration(limits.CompactReclaim, c.Reclaim)
	return now
}

// Longest returns how long the largest compaction takes at Rate. It reads at most
// four times target and writes at most twice target, whose bytes pass the rate limit
// twice: when they are merged and when they are uploaded.
func (c *Config) Longest() time.Duration {
	return time.Duration(8 * target / float64(c.Rate) * float64(time.Second))
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.That(c.Every == 0 || c.Every >= 100*time.Millisecond && c.Every <= 24*time.Hour, "every", c.Every, "0, or 100ms to 24h")
	config.Between(&check, "deltas", c.Deltas, 1, 64)
	config.Between(&check, "settle", c.Settle, 0, 30*24*time.Hour)
	config.Between(&check, "reclaim", c.Reclaim, 0, 365*24*time.Hour)
	return check.Err()
}
