package queue

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/wait"
)

// DefaultPrefix begins the names in NATS unless another prefix is configured.
const DefaultPrefix = "trawl"

// prefixes matches prefixes without upper case, since streams are in upper case, and
// without dots, so that one prefix's subjects are never among another's.
var prefixes = lazyregexp.New(`^[a-z0-9_-]{1,64}$`)

// CheckPrefix returns an error if prefix is not valid in Config.
func CheckPrefix(prefix string) error {
	if !prefixes().MatchString(prefix) {
		return fmt.Errorf("prefix %q: want 1 to 64 of a-z, 0-9, - and _", prefix)
	}
	return nil
}

// Config configures a queue. Its zero value means the defaults. All processes on one
// NATS must have the same AckWait.
type Config struct {
	// Prefix begins the names of the streams, in upper case, and of the subjects, so that
	// several Trawls can use one NATS: 1 to 64 of a-z, 0-9, - and _; default DefaultPrefix.
	Prefix string
	// AckWait is how long after the last sign of life a job is given to another
	// worker; default 30 s. A sign is sent every third of it.
	AckWait time.Duration
	// MaxDeliver is the number of failed deliveries after which a job becomes a dead
	// letter; default 5.
	MaxDeliver int
	// RetryMin and RetryMax bound the wait before a failed job is delivered again; it
	// doubles with each delivery. Defaults 1 s and 5 min.
	RetryMin, RetryMax time.Duration
	// Duplicates is how long the server drops a Job that equals an earlier one; default 2
	// min.
	Duplicates time.Duration
	// Replicas of both streams in a NATS cluster, 1 to 5; default 1.
	Replicas int
	// Logger receives errors that are retried; nil means slog.Default().
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Prefix = cmp.Or(c.Prefix, DefaultPrefix)
	c.AckWait = cmp.Or(c.AckWait, 30*time.Second)
	c.MaxDeliver = cmp.Or(c.MaxDeliver, 5)
	c.RetryMin = cmp.Or(c.RetryMin, time.Second)
	c.RetryMax = cmp.Or(c.RetryMax, 5*time.Minute)
	c.Duplicates = cmp.Or(c.Duplicates, 2*time.Minute)
	c.Replicas = cmp.Or(c.Replicas, 1)
	c.Logger = cmp.Or(c.Logger, slog.Default())
	return c
}

// The stream of the jobs, and their subjects.
func (c Config) jobStream() string { return strings.ToUpper(c.Prefix) + "_JOBS" }

func (c Config) jobSubject(bulk bool) string {
	if bulk {
		return c.Prefix + ".jobs.bulk"
	}
	return c.Prefix + ".jobs"
}

// The stream of the dead letters, and the prefix of their subjects.
func (c Config) deadStream() string  { return strings.ToUpper(c.Prefix) + "_DEAD" }
func (c Config) deadSubject() string { return c.Prefix + ".dead." }

// check reports every invalid value.
func (c Config) check() error {
	var errs []error
	refuse := func(bad bool, format string, args ...any) {
		if bad {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	errs = append(errs, CheckPrefix(c.Prefix))
	refuse(c.AckWait < 10*time.Millisecond, "AckWait %v: at least 10ms", c.AckWait)
	refuse(c.MaxDeliver < 1, "MaxDeliver %d: at least 1", c.MaxDeliver)
	refuse(c.RetryMin < 0 || c.RetryMax < c.RetryMin, "RetryMin %v, RetryMax %v: must be ascending", c.RetryMin, c.RetryMax)
	refuse(c.Duplicates < 100*time.Millisecond, "Duplicates %v: at least 100ms", c.Duplicates)
	refuse(c.Replicas < 1 || c.Replicas > 5, "Replicas %d: 1 to 5", c.Replicas)
	return errors.Join(errs...)
}

// backoff is the wait before a job that failed at its nth delivery is delivered
// again.
func (c Config) backoff(n int) time.Duration {
	return wait.Double(c.RetryMin, n-1, c.RetryMax)
}
