package restore_test

import (
	"crypto/sha256"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/restore"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// copySource puts a copy of a source into the bucket.
func (w *world) copySource(name, owner string, version uint64, removed bool) (key string, record *catalogv1.Source) {
	w.t.Helper()
	record = &catalogv1.Source{
		Spec:      &ingestv1.Source{Name: name, Kind: "github", Owner: owner, Token: &ingestv1.SecretRef{File: "acme"}},
		AppliedAt: timestamppb.New(time.Unix(1_800_000_000, 0)), Removed: removed,
	}
	data, err := proto.Marshal(record)
	w.must(err)
	key = catalog.SourceKey(name, version, sha256.Sum256(data))
	w.put(key, data)
	return key, record
}

// sources restores the sources, and returns the report of each.
func (w *world) sources(dry bool) (told []restore.Source) {
	w.t.Helper()
	r := restore.Restorer{Store: w.store, Bucket: w.bucket, DryRun: dry}
	w.must(r.Sources(w.t.Context(), func(s restore.Source) error { told = append(told, s); return nil }))
	return told
}

// TestSources: each source comes back in its last state, even if that is removed. A
// source that was applied since is kept, and one whose newest copy is damaged is
// reported.
func TestSources(t *testing.T) {
	w := newWorld(t)
	w.copySource("a", "old", 9, true)
	_, a := w.copySource("a", "new", 10, false)
	w.copySource("b", "b", 100, false)
	_, b := w.copySource("b", "b", 101, true)
	w.copySource("c", "lost", 102, false)
	w.copySource("damaged", "removed since?", 1, false)
	damaged, wrong := w.copySource("damaged", "x", 2, true)
	wrong.Removed = false
	data, err := proto.Marshal(wrong)
	w.must(err)
	w.put(damaged, data)
	other, _ := w.copySource("other", "x", 3, false)
	moved := strings.Replace(other, "sources/other/", "sources/moved/", 1)
	_, record := w.copySource("other", "x", 3, false)
	data, err = proto.Marshal(record)
	w.must(err)
	w.put(moved, data)
	w.put("sources/a/"+strings.Repeat("9", 20)+"-rubbish.pb", []byte("rubbish"))

	if told := w.sources(true); len(told) != 6 {
		t.Errorf("a dry run tells of %+v", told)
	}
	for _, err := range w.store.ListSources(t.Context()) {
		t.Errorf("a dry run wrote something: %v", err)
	}
	_, err = w.store.ApplySources(t.Context(), []*ingestv1.Source{{Name: "c", Kind: "github", Owner: "since"}})
	w.must(err)
	want := []restore.Source{
		{Name: "a"}, {Name: "b", Removed: true}, {Name: "c", Kept: true},
		{Name: "damaged", Problem: damaged + " is damaged: apply it again"},
		{Name: "moved", Problem: moved + " is damaged: apply it again"}, {Name: "other"},
	}
	if told := w.sources(false); !slices.Equal(told, want) {
		t.Errorf("told of %+v, want %+v", told, want)
	}
	for name, want := range map[string]*catalogv1.Source{"a": a, "b": b} {
		if got, err := w.store.GetSource(t.Context(), name); err != nil || !proto.Equal(got.Record, want) {
			t.Errorf("%v, %v, want %v", got.Record, err, want)
		}
	}
	if got, err := w.store.GetSource(t.Context(), "c"); err != nil || got.Record.GetSpec().GetOwner() != "since" {
		t.Errorf("%v, %v", got.Record, err)
	}
	if _, err := w.store.GetSource(t.Context(), "damaged"); err == nil {
		t.Error("a source came back that may have been removed")
	}
}
