package integration

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/trawl-search/trawl/internal/pinned"
	"github.com/trawl-search/trawl/internal/testrun"
)

// tool builds the pinned version of a program and runs it.
func tool(t *testing.T, p pinned.Program, args ...string) {
	t.Helper()
	path, err := pinned.Build(t.Context(), p)
	if failed, ok := errors.AsType[*pinned.BuildError](err); ok && failed.Offline() {
		t.Skipf("%s cannot be built without network: %v", p.Name, err)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir()}
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", p.Name, args, err, out)
	}
}

// TestSnapshotOfEtcd follows the runbook's backup and restore of etcd. Repos published before the
// snapshot can be searched from the start; later ones are indexed when they are put again.
func TestSnapshotOfEtcd(t *testing.T) {
	c := newCluster(t, 2)
	alpha, beta := onlyFile(t, c.dir, "alpha"), onlyFile(t, c.dir, "beta")
	c.index(t, alpha, "example.org/alpha")
	snapshot := filepath.Join(c.dir, "snapshot.db")
	tool(t, pinned.Etcdctl, "--endpoints", c.etcd, "snapshot", "save", snapshot)
	alpha.write("late.txt", "a bittern\n")
	alpha.commit("after the snapshot")
	late := c.index(t, alpha, "example.org/alpha")
	c.index(t, beta, "example.org/beta")

	c.killAll()
	member := filepath.Join(c.dir, "servers", "etcd", "member")
	was, err := os.ReadDir(member)
	if err != nil || len(was) == 0 {
		t.Fatalf("where etcd was: %v, %v", was, err)
	}
	if err := os.RemoveAll(member); err != nil {
		t.Fatal(err)
	}
	tool(t, pinned.Etcdutl, "snapshot", "restore", snapshot, "--data-dir", member, "--name", "trawl", "--initial-cluster", "trawl=http://localhost:2380",
		"--initial-advertise-peer-urls", "http://localhost:2380", "--bump-revision", "1000000000", "--mark-compacted")
	c.startAll(t, 2)
	c.expect(t, "c:heron", "example.org/alpha:a.txt")
	c.expect(t, "c:bittern")
	testrun.Eventually(t, "the bucket has all that is served", func(context.Context) error {
		out, errs, exit := command(t, "gc", "--audit", "--contents", "--etcd-endpoints", c.etcd, "--bucket-url", c.bucket())
		if exit != 0 {
			return fmt.Errorf("%s%s", out, errs)
		}
		return nil
	})
	if s := c.index(t, alpha, "example.org/alpha"); s.GetGeneration() < late.GetGeneration() {
		t.Errorf("indexed again: %v", s)
	}
	c.index(t, beta, "example.org/beta")
	c.expect(t, "c:heron", "example.org/alpha:a.txt", "example.org/beta:a.txt")
	c.expect(t, "c:bittern", "example.org/alpha:late.txt")
}
