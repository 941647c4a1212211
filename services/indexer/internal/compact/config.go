package compact

import (
	"time"

	"github.com/trawl-search/trawl/internal/config"
)

// Config is the settings of compaction.
type Config struct {
	Every   time.Duration `config:"every" doc:"time between two looks for shards to merge; 0 turns compaction off"`
	Small   config.Bytes  `config:"small" doc:"index of a repo below which the repo shares a shard with others"`
	Target  config.Bytes  `config:"target" doc:"size that shards of several repos grow to; at most twice as much"`
	Deltas  int           `config:"deltas" doc:"most deltas of a repo before some of them are merged"`
	Settle  time.Duration `config:"settle" doc:"how long a repo must be left alone before it shares a shard"`
	Reclaim time.Duration `config:"reclaim" doc:"how old a shard may be that still holds documents of a deleted repo; fourteen times that for documents that were replaced"`
	Rate    config.Bytes  `config:"rate" doc:"bytes a second that one indexer reads and merges for compaction"`
}

// SetDefaults implements config.Settings. Decision 20 explains the defaults.
func (c *Config) SetDefaults() {
	*c = Config{
		Every: 2 * time.Minute, Small: 64 * config.MiB, Target: config.GiB, Deltas: 8,
		Settle: 10 * time.Minute, Reclaim: 24 * time.Hour, Rate: 32 * config.MiB,
	}
}

// Longest returns how long the largest compaction takes at Rate. It reads at most
// four times Target and writes at most twice Target, whose bytes pass the rate limit
// twice: when they are merged and when they are uploaded.
func (c *Config) Longest() time.Duration {
	return time.Duration(8 * float64(c.Target) / float64(c.Rate) * float64(time.Second))
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	check.That(c.Every == 0 || c.Every >= 100*time.Millisecond && c.Every <= 24*time.Hour, "every", c.Every, "0, or 100ms to 24h")
	config.Between(&check, "target", c.Target, 64*config.KiB, 4*config.GiB)
	check.That(c.Small >= 0 && c.Small <= c.Target/2, "small", c.Small, "at most half of target")
	config.Between(&check, "deltas", c.Deltas, 1, 64)
	config.Between(&check, "settle", c.Settle, 0, 30*24*time.Hour)
	config.Between(&check, "reclaim", c.Reclaim, 0, 365*24*time.Hour)
	config.Between(&check, "rate", c.Rate, 64*config.KiB, 64*config.GiB)
	return check.Err()
}
