package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/embedded"
	"github.com/trawl-search/trawl/internal/gc"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// store is an etcd and a bucket in a folder, and the flags that lead to them.
type store struct {
	t       *testing.T
	catalog *catalog.Store
	bucket  bucket.Bucket
	flags   []string
}

func newStore(t *testing.T) *store {
	t.Helper()
	etcd, err := embedded.StartEtcd(t.Context(), embedded.Config{
		NoSync: true,
		Dir:    t.TempDir(), Heartbeat: 10 * time.Millisecond, Election: 100 * time.Millisecond, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { etcd.Close() })
	dir := t.TempDir()
	folder, err := bucket.OpenFolder(dir, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { folder.Close() })
	return &store{
		t: t, catalog: catalog.New(etcd.Client(), ""), bucket: folder,
		flags: []string{"gc", "--etcd-endpoints", etcd.Endpoint(), "--bucket-url", "file://" + dir, "--hold", "1s"},
	}
}

// publish makes a generation of one shard and returns its key.
func (s *store) publish(content string) string {
	s.t.Helper()
	ctx := s.t.Context()
	_, _, err := s.catalog.PutDesired(ctx, &catalogv1.Desired{Name: "repo"})
	if err != nil {
		s.t.Fatal(err)
	}
	lease, err := s.catalog.AcquireLease(ctx, "repo", time.Minute)
	if err != nil {
		s.t.Fatal(err)
	}
	key := catalog.ShardKey(lease.Fence(), [32]byte{1})
	s.put(key, content)
	_, err = s.catalog.Publish(ctx, lease, lease.Root(), &catalogv1.Root{
		Repo: "repo", Generation: lease.NextGeneration(), Epoch: lease.Desired().GetEpoch(),
		Shards: []*catalogv1.ShardRef{{Digest: []byte{1}, Key: key, SizeBytes: uint64(len(content))}},
	})
	if err := errors.Join(err, lease.Release(ctx)); err != nil {
		s.t.Fatal(err)
	}
	return key
}

func (s *store) put(key, content string) {
	s.t.Helper()
	err := s.bucket.Put(s.t.Context(), key, bytes.NewReader([]byte(content)), bucket.PutOptions{Size: int64(len(content))})
	if err != nil {
		s.t.Fatal(err)
	}
}

// gc runs the command and expects words in what it prints.
func (s *store) gc(exit int, words string, args ...string) string {
	s.t.Helper()
	got, out, errs := run(s.t, nil, append(s.flags, args...)...)
	if got != exit || !strings.Contains(out+errs, words) {
		s.t.Errorf("trawl gc %v: exit %d, want %d and %q in\n%s%s", args, got, exit, words, out, errs)
	}
	return out
}

func TestGC(t *testing.T) {
	s := newStore(t)
	garbage := s.publish("old content")
	used := s.publish("new")
	there := func(key string) bool {
		_, err := s.bucket.Stat(context.Background(), key)
		return err == nil
	}
	s.gc(0, "would condemn    1 object   11 B", "--dry-run")
	s.gc(0, garbage, "--audit")
	s.gc(0, "orphan: 1 object, 11 B", "--audit")
	s.gc(0, "condemned        1 object   11 B")
	testrun.Until(t, "the garbage is gone", func() bool {
		var report gc.Report
		if err := json.Unmarshal([]byte(s.gc(0, "kept", "--json")), &report); err != nil || report.Kept.Objects != 1 {
			t.Fatalf("%+v, %v", report, err)
		}
		return !there(garbage)
	})
	if !there(used) {
		t.Error("what is used is gone")
	}
	s.gc(1, "wrong digest", "--audit", "--contents")
	s.put(used, "other")
	s.gc(1, "wrong size: 1 object", "--audit")
	if err := s.bucket.Delete(t.Context(), used); err != nil {
		t.Fatal(err)
	}
	s.gc(1, `"problem":"missing"`, "--audit", "--json")
	s.gc(1, "trawl repos reindex", "--audit")
}

// TestNoBucketThere: what reads a bucket that others have filled makes none where there is none.
func TestNoBucketThere(t *testing.T) {
	s := newStore(t)
	missing := filepath.Join(t.TempDir(), "nosuch")
	for _, args := range [][]string{{"restore"}, {"restore", "--dry-run"}, {"gc"}, {"gc", "--dry-run"}, {"gc", "--audit"}} {
		exit, out, errs := run(t, nil, append(args, s.flags[1], s.flags[2], "--bucket-url", "file://"+missing)...)
		if _, err := os.Stat(missing); err == nil || exit != 1 || !strings.Contains(errs, missing) {
			t.Errorf("%v: exit %d, the folder: %v: %s%s", args, exit, err, out, errs)
		}
	}
}

func TestRestore(t *testing.T) {
	s := newStore(t)
	s.publish("content")
	s.flags[0] = "restore"
	s.flags = s.flags[:len(s.flags)-2] // restore has no flag for a hold
	s.gc(1, "this etcd is not empty, and a restore needs an empty one: it has records of the kind")
	s.gc(1, `skip "nosuch"`, "--dry-run", "--skip", "nosuch")
	s.gc(0, "0 repos would be searched again; nothing was written", "--dry-run") // the shard of this test has no manifest
	s.gc(0, "without --dry-run this fails: this etcd is not empty", "--dry-run")
	s.put(catalog.ManifestPrefix+"00/1-00-0000000000000001.pb", "rubbish")
	s.gc(0, "1 object among the manifests cannot be read", "--dry-run")
	s.gc(0, "not a manifest", "--dry-run", "--json")
}
