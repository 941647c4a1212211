package gc

import (
	"time"

	"github.com/trawl-search/trawl/internal/config"
)

// Config is the settings of garbage collection.
type Config struct {
	Hold   time.Duration `config:"hold" doc:"how long garbage stays for queries that may still read it: longer than the routers' max-timeout and the oldest roots that callers allow, together"`
	Limit  int           `config:"limit" doc:"most objects that one pass deletes, and most that it condemns"`
	Memory time.Duration `config:"memory" doc:"how long the last generation and epoch of a deleted repo are remembered"`
}

// SetDefaults implements config.Settings. A query takes an hour at most and may
// ask for roots that are an hour old: a hold of three hours is an hour more.
func (c *Config) SetDefaults() {
	*c = Config{Hold: 3 * time.Hour, Limit: 20_000, Memory: 30 * 24 * time.Hour}
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	config.Between(&check, "hold", c.Hold, time.Second, 30*24*time.Hour)
	config.Between(&check, "limit", c.Limit, 1, 1_000_000)
	config.Between(&check, "memory", c.Memory, time.Second, 10*365*24*time.Hour)
	return check.Err()
}
