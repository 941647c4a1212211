package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/trawl-search/trawl/integration/k8s/kube"
	"github.com/trawl-search/trawl/internal/pinned"
)

func TestMain(m *testing.M) {
	// The tests' files are removed even after an interrupt.
	dir, err := os.MkdirTemp("", "trawl-k8s-tests")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Setenv("TMPDIR", dir)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		_, _ = kube.Sweep(context.Background()) // the next run removes the rest
		os.RemoveAll(dir)
		os.Exit(130)
	}()
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// lockFile is in the system's temporary folder: the name is computed before TestMain sets another one.
var lockFile = filepath.Join(os.TempDir(), "trawl-k8s-tests.lock")

// lock waits until no other run uses this machine. Two runs would remove each other's
// containers.
func lock(t *testing.T) {
	t.Helper()
	f, err := os.OpenFile(lockFile, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
}

// writeLogs keeps the logs of the cluster to help investigate a failure.
func writeLogs(t *testing.T, c *kube.Cluster) {
	t.Helper()
	ctx := context.Background()
	root, err := pinned.Repository(ctx)
	dir := filepath.Join(root, ".cache", "k8s", "logs")
	err = errors.Join(err, os.RemoveAll(dir), c.WriteLogs(ctx, dir))
	t.Logf("logs, events and descriptions are in %s %v", dir, err)
}
