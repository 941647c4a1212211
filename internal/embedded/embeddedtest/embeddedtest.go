// Package embeddedtest has a real etcd for tests that goes back to a copy of its data, or loses
// all of it, at the same address.
package embeddedtest

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/embedded"
)

// Etcd is an etcd with one member, which stops when its test ends. It is not safe for concurrent use.
type Etcd struct {
	t       testing.TB
	dir     string
	quota   int64
	running *embedded.Etcd
}

// Start starts an empty etcd.
func Start(t testing.TB) *Etcd {
	t.Helper()
	return StartSmall(t, 0)
}

// StartSmall starts an empty etcd with a quota in bytes; 0 means the usual one.
func StartSmall(t testing.TB, quota int64) *Etcd {
	t.Helper()
	// The name of a test is too long for a socket, and may have characters that etcd refuses.
	dir, err := os.MkdirTemp("", "etcd") //nolint:usetesting // see above
	e := &Etcd{t: t, dir: dir, quota: quota}
	e.must(err)
	t.Cleanup(func() { e.must(os.RemoveAll(dir)) })
	e.start()
	t.Cleanup(e.stop)
	return e
}

// Endpoint is where clients reach it, always the same.
func (e *Etcd) Endpoint() string { return e.running.Endpoint() }

// Client is a client of this process. It ends with the next Copy, GoBack or LoseAll.
func (e *Etcd) Client() *clientv3.Client { return e.running.Client() }

// Copy stops etcd, copies its data and starts it again. It returns the copy.
func (e *Etcd) Copy() (folder string) {
	e.t.Helper()
	e.stop()
	folder = filepath.Join(e.t.TempDir(), "copy")
	e.must(os.CopyFS(folder, os.DirFS(e.data())))
	e.start()
	return folder
}

// GoBack stops etcd, puts a copy in the place of its data and starts it again.
func (e *Etcd) GoBack(copied string) {
	e.t.Helper()
	e.stop()
	e.must(os.RemoveAll(e.data()))
	e.must(os.CopyFS(e.data(), os.DirFS(copied)))
	e.start()
}

// LoseAll stops etcd and starts it with no data.
func (e *Etcd) LoseAll() {
	e.t.Helper()
	e.stop()
	e.must(os.RemoveAll(e.data()))
	e.start()
}

func (e *Etcd) data() string { return filepath.Join(e.dir, "etcd", "member") }

func (e *Etcd) start() {
	e.t.Helper()
	var err error
	e.running, err = embedded.StartEtcd(context.WithoutCancel(e.t.Context()), embedded.Config{
		NoSync: true,
		Dir:    e.dir, Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Quota: e.quota, Logger: slog.New(slog.DiscardHandler),
	})
	e.must(err)
}

func (e *Etcd) stop() {
	e.t.Helper()
	e.must(e.running.Close())
}

func (e *Etcd) must(err error) {
	e.t.Helper()
	if err != nil {
		e.t.Fatal(err)
	}
}
