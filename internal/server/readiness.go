package server

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// maxReason bounds the reason of a condition, in bytes.
const maxReason = 1 << 10

// Readiness is the set of named conditions that a process needs to take requests,
// such as "etcd" or "shards loaded". A process with no unmet condition is ready. It
// is safe for concurrent use.
type Readiness struct {
	mu         sync.Mutex
	conditions map[string]*Condition
	notify     func(ready bool)
	log        *slog.Logger
}

// Condition is one thing a process needs. It is safe for concurrent use.
type Condition struct {
	of     *Readiness
	name   string
	reason string    // guarded by of.mu; empty when met
	since  time.Time // guarded by of.mu; of the last change between met and unmet
	logged time.Time // guarded by of.mu; when the reason was last logged
}

// logEvery is the least time between two log lines about one unmet condition.
const logEvery = 30 * time.Second

// Unmet is a condition that does not hold.
type Unmet struct {
	// Name is the condition's.
	Name string
	// Reason is one line that says why, for operators.
	Reason string
	// Since is when the condition stopped holding.
	Since time.Time
}

// newReadiness calls notify, under its lock, each time a condition changes.
func newReadiness(notify func(ready bool), log *slog.Logger) *Readiness {
	return &Readiness{conditions: map[string]*Condition{}, notify: notify, log: log}
}

// Condition returns the condition of that name. A new one is unmet until Met is
// called.
func (r *Readiness) Condition(name string) *Condition {
	r.mu.Lock()
	defer r.mu.Unlock()
	c, ok := r.conditions[name]
	if !ok {
		c = &Condition{of: r, name: name, reason: "not checked yet", since: time.Now()}
		r.conditions[name] = c
		r.notify(false)
	}
	return c
}

// Met says that the condition holds.
func (c *Condition) Met() { c.set("") }

// Unmet says that the condition does not hold, and why: one line without credentials,
// of which at most 1 KiB is kept.
func (c *Condition) Unmet(reason string) {
	reason = strings.Join(strings.Fields(reason), " ")
	if len(reason) > maxReason {
		reason = strings.ToValidUTF8(reason[:maxReason], "") + "…"
	}
	c.set(cmp.Or(reason, "no reason given"))
}

func (c *Condition) set(reason string) {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	now := time.Now()
	turned := (c.reason == "") != (reason == "")
	if turned {
		c.since = now
	}
	if turned || reason != c.reason && now.Sub(c.logged) >= logEvery {
		c.logged = now
		c.log(reason)
	}
	c.reason = reason
	c.of.notify(len(c.of.unmet()) == 0)
}

// log writes the reason to the log: operators read the log first, and a failed probe says less.
func (c *Condition) log(reason string) {
	ctx := context.Background()
	if reason == "" {
		c.of.log.InfoContext(ctx, "condition met", "condition", c.name)
		return
	}
	c.of.log.InfoContext(ctx, "condition not met", "condition", c.name, "reason", reason)
}

// Ready reports whether every condition is met.
func (r *Readiness) Ready() bool { return len(r.Unmet()) == 0 }

// Unmet lists the conditions that do not hold, by name.
func (r *Readiness) Unmet() []Unmet {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.unmet()
}

func (r *Readiness) unmet() []Unmet {
	var list []Unmet
	for _, c := range r.conditions {
		if c.reason != "" {
			list = append(list, Unmet{Name: c.name, Reason: c.reason, Since: c.since})
		}
	}
	slices.SortFunc(list, func(a, b Unmet) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// each reports for every condition whether it is met.
func (r *Readiness) each(report func(name string, met bool)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for name, c := range r.conditions {
		report(name, c.reason == "")
	}
}

// ServeHTTP implements http.Handler: 200, or 503 with a line for each unmet
// condition.
func (r *Readiness) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	unmet := r.Unmet()
	if len(unmet) == 0 {
		fmt.Fprintln(w, "ready")
		return
	}
	w.WriteHeader(http.StatusServiceUnavailable)
	for _, u := range unmet {
		fmt.Fprintf(w, "%s: %s (for %s)\n", u.Name, u.Reason, time.Since(u.Since).Round(time.Second))
	}
}
