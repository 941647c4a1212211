package k8s

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/trawl-search/trawl/integration/k8s/kube"
	"github.com/trawl-search/trawl/internal/pinned"
)

// wanted says, by the environment, what may be done: "cached" runs the tests if
// all programs are built, "build" builds what is missing.
const wanted = "TRAWL_TEST_K8S"

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

// need skips the test where it is not wanted, and says so.
func need(t *testing.T) {
	t.Helper()
	const how = "\"make e2e-k8s\" builds what is missing and runs them"
	if err := kube.Ping(t.Context()); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skipf("NOT TESTED on Kubernetes: %v", err)
	}
	switch os.Getenv(wanted) {
	case "build":
	case "cached":
		missing, err := kube.Missing(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(missing) > 0 {
			t.Skipf("NOT TESTED on Kubernetes: %s must be built, which takes minutes; %s", strings.Join(missing, ", "), how)
		}
	default:
		t.Skip("NOT TESTED on Kubernetes: " + how)
	}
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

// newCluster starts a cluster and gives it all images. The test's end removes it.
func newCluster(t *testing.T) *kube.Cluster {
	t.Helper()
	ctx := t.Context()
	if left, err := kube.Sweep(ctx); err != nil || len(left) > 0 {
		t.Logf("an earlier run left %v: %v", left, err)
	}
	programs, err := kube.Build(ctx, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	c, err := kube.Start(ctx, programs, t.TempDir(), os.Stderr)
	t.Cleanup(func() {
		if t.Failed() && c != nil {
			writeLogs(t, c)
		}
		if _, err := kube.Sweep(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err == nil {
		err = makeImages(ctx, c, programs)
	}
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// writeLogs keeps what the cluster has to say, for who looks into a failure.
func writeLogs(t *testing.T, c *kube.Cluster) {
	t.Helper()
	ctx := context.Background()
	root, err := pinned.Repository(ctx)
	dir := filepath.Join(root, ".cache", "k8s", "logs")
	err = errors.Join(err, os.RemoveAll(dir), c.WriteLogs(ctx, dir))
	t.Logf("logs, events and descriptions are in %s %v", dir, err)
}
