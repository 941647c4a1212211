// Package limits holds the limits that operators change while Trawl runs. They are records in etcd, and every process
// that has a use for them follows them.
//
// There is one rule: a limit in etcd overrides the setting of the same name in every process; without one, each
// process has its setting. A limit of callers can also be set for a single token, which overrides both. While etcd does not
// answer, the last known limits stay in force; a process that starts meanwhile has its settings.
package limits

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// Name is the name of a limit, which is also that of the setting that it overrides.
type Name string

// The limits of callers, which routers keep.
const (
	CallerShare      Name = "caller-share"
	CallerCalls      Name = "caller-calls"
	CallerProcessors Name = "caller-processors"
	ReposPerMinute   Name = "repos-per-minute"
)

// The limits of indexers.
const (
	PollPerSecond  Name = "poll-per-second"
	CompactDeltas  Name = "compact.deltas"
	CompactSettle  Name = "compact.settle"
	CompactReclaim Name = "compact.reclaim"
)

// Limit says what values a limit takes. The settings of that name take the same ones.
type Limit struct {
	Name Name
	// OfCallers says that the limit can be set for a single token.
	OfCallers bool
	// Least and Most bound the value: a number, or a duration in nanoseconds.
	Least, Most float64
	form        form
	bounds      string // what the limit bounds
}

type form int

const (
	fraction form = iota
	whole
	duration
)

const day = float64(24 * time.Hour)

// known are all limits, in order of name.
var known = []Limit{
	{CallerCalls, true, 1, 1 << 20, whole, "calls of one token in progress at once, streams included"},
	{CallerProcessors, true, 0, 1 << 20, fraction, "processors of searchers that the queries of one token may use on average; 0: no limit"},
	{CallerShare, true, 0.01, 1, fraction, "share of the concurrent queries for one token"},
	{CompactDeltas, false, 1, 64, whole, "deltas of a repo before some of them are merged"},
	{CompactReclaim, false, 0, 365 * day, duration, "age of a shard that still holds documents of a deleted repo"},
	{CompactSettle, false, 0, 30 * day, duration, "time for which a repo must be left alone before it shares a shard"},
	{PollPerSecond, false, 1, 1000, whole, "repositories of one host that are polled each second"},
	{ReposPerMinute, true, 1, 1 << 20, whole, "requests to index that each token can make of a router in a minute"},
}

// All returns all limits, in order of name.
func All() []Limit { return slices.Clone(known) }

// ErrUnknown means that there is no limit of a name.
var ErrUnknown = errors.New("unknown limit")

// ErrValue means that a limit does not take a value.
var ErrValue = errors.New("bad value")

// Describe says what the limit bounds, and which values it takes.
func (l Limit) Describe() string { return l.bounds + "; " + l.want() }

func (l Limit) want() string {
	switch l.form {
	case whole:
		return fmt.Sprintf("a whole number from %.0f to %.0f", l.Least, l.Most)
	case duration:
		return fmt.Sprintf("a duration such as 90s or 24h, from %v to %v", time.Duration(l.Least), time.Duration(l.Most))
	}
	return fmt.Sprintf("a number from %v to %v", l.Least, strconv.FormatFloat(l.Most, 'f', -1, 64))
}

// parse reads a value. Its error wraps ErrValue.
func (l Limit) parse(text string) (float64, error) {
	var value float64
	var err error
	switch l.form {
	case whole:
		var n int64
		n, err = strconv.ParseInt(text, 10, 64)
		value = float64(n)
	case duration:
		var d time.Duration
		d, err = time.ParseDuration(text)
		value = float64(d)
	default:
		value, err = strconv.ParseFloat(text, 64)
	}
	if err != nil || math.IsNaN(value) || value < l.Least || value > l.Most {
		return 0, fmt.Errorf("%w %q of %s: want %s", ErrValue, text, l.Name, l.want())
	}
	return value, nil
}

// tokens is the beginning of the name of a limit of a single token: tokens.ID.NAME.
const tokens = "tokens."

// Key is whose limit it is.
type Key struct {
	// Token is the token's ID; empty: of all.
	Token string
	Name  Name
}

// String is the name that operators use: NAME, or tokens.ID.NAME.
func (k Key) String() string {
	if k.Token == "" {
		return string(k.Name)
	}
	return tokens + k.Token + "." + string(k.Name)
}

// ParseKey is the inverse of Key.String. Its error wraps ErrUnknown and names those that are spelled like it.
func ParseKey(text string) (Key, Limit, error) {
	key := Key{Name: Name(text)}
	rest, single := strings.CutPrefix(text, tokens)
	if at := strings.LastIndexByte(rest, '.'); single && at > 0 {
		key = Key{Token: rest[:at], Name: Name(rest[at+1:])}
	} else if single {
		return Key{}, Limit{}, fmt.Errorf("%w %q: want tokens.TOKEN.NAME, such as tokens.ci.%s", ErrUnknown, text, CallerCalls)
	}
	var names []string
	for _, l := range known {
		if single && !l.OfCallers {
			continue
		}
		if l.Name == key.Name {
			return key, l, nil
		}
		names = append(names, string(l.Name))
	}
	of := ""
	if single {
		of = " of a token"
	}
	which := "the nearest: "
	near := searchapi.Nearest(string(key.Name), names)
	if len(near) == 0 {
		which, near = "these are: ", names
	}
	return Key{}, Limit{}, fmt.Errorf("%w%s %q; %s%s", ErrUnknown, of, key.Name, which, strings.Join(near, ", "))
}
