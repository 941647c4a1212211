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
	// What tests leave in files goes even if they are interrupted.
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
		_, _ = kube.Sweep(context.Background()) // the next run does what could not be done
		os.RemoveAll(dir)
		os.Exit(130)
	}()
	status := m.Run()
	os.RemoveAll(dir)
	os.Exit(status)
}

// lockFile is named before tests have a folder of their own for such files.
var lockFile = filepath.Join(os.TempDir(), "trawl-k8s-tests.lock")

// lock waits until no other run uses this machine: two would sweep each other
// away.
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

// writeLogs keeps the logs of the cluster for those who look into a failure.
func writeLogs(t *testing.T, c *kube.Cluster) {
	t.Helper()
	ctx := context.Background()
	root, err := pinned.Repository(ctx)
	dir := filepath.Join(root, ".cache", "k8s", "logs")
	err = errors.Join(err, os.RemoveAll(dir), c.WriteLogs(ctx, dir))
	t.Logf("logs, events and descriptions are in %s %v", dir, err)
}
