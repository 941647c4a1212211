package gc

import (
	"time"

	"github.com/trawl-search/trawl/internal/config"
)

// Config is the settings of garbage collection.
type Config struct {
	Hold time.Duration `config:"hold" doc:"how long garbage stays for queries that may still read it: longer than the routers' max-timeout and the oldest roots that callers allow, together"`
	// Limit is the most objects that one pass deletes, and the most that it condemns. Memory
	// is how long the last generation and epoch of a deleted repo are remembered. They are no
	// settings.
	Limit  int           `config:"-"`
	Memory time.Duration `config:"-"`
}

const (
	// defaultLimit keeps a pass within some minutes, at a few milliseconds for each object.
	// The next pass takes the rest.
	defaultLimit = 20_000
	// defaultMemory is longer than any process goes on with what it knew of a repo.
	defaultMemory = 30 * 24 * time.Hour
)

// SetDefaults implements config.Settings. A query takes an hour at most and may
// ask for roots that are an hour old: a hold of three hours is an hour more.
func (c *Config) SetDefaults() {
	*c = Config{Hold: 3 * time.Hour, Limit: defaultLimit, Memory: defaultMemory}
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	config.Between(&check, "hold", c.Hold, time.Second, 30*24*time.Hour)
	return check.Err()
}
