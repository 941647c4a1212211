package compact

import (
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// hiding is a shard of 1 MiB and 1,000 documents, n of which were replaced.
func (m *model) hiding(n uint64) *catalogv1.ShardRef {
	ref := m.ref(1<<20, false)
	ref.Documents, ref.LiveDocuments, ref.ContentBytes, ref.LiveContentBytes = 1000, 1000-n, 1_000_000, 1_000_000-1000*n
	if n > 0 {
		ref.Hidden = []byte{1}
	}
	return ref
}

// root serves shards of one repo since now.
func (m *model) root(name string, refs ...*catalogv1.ShardRef) {
	m.lives[name] = m.next()
	m.roots[name] = catalog.Root{Revision: m.next(), Record: &catalogv1.Root{
		Repo: name, Generation: 1, Shards: refs, PublishedAt: timestamppb.New(m.now),
	}}
}

// pack serves a shard that two repos share equally. Each has 500 documents in it. replaced is how
// many of those were replaced.
func (m *model) pack(replaced uint64) {
	shard := m.hiding(0)
	for _, name := range []string{"a", "b"} {
		own := m.hiding(0)
		own.Key, own.Digest, own.Compacted = shard.Key, shard.Digest, true
		own.LiveDocuments, own.LiveContentBytes = 500-replaced, 500_000-1000*replaced
		m.root(name, own)
		m.lives[name] = 0 // before the shard
	}
	m.packs[shard.Key] = catalog.Pack{Revision: m.next(), Record: &catalogv1.Pack{
		Key: shard.Key, MadeAt: timestamppb.New(m.now), Repos: []string{"a", "b"},
	}}
}

// TestReplacedDocuments: a shard with many replaced documents is rewritten. With fewer of them, or
// sooner, it is not.
func TestReplacedDocuments(t *testing.T) {
	const day = 24 * time.Hour
	small := func(m *model) *catalogv1.ShardRef { return m.ref(4<<10, true) }
	for name, test := range map[string]struct {
		fill   func(*model)
		age    time.Duration
		reason string
		shards int // to be merged into one
	}{
		"an eighth of a base":             {func(m *model) { m.root("a", m.hiding(125), small(m)) }, 0, "", 0},
		"more than that":                  {func(m *model) { m.root("a", m.hiding(126), small(m)) }, 0, becauseDeltas, 2},
		"one base of two":                 {func(m *model) { m.root("a", m.hiding(126), m.hiding(125), small(m)) }, 0, becauseDeltas, 2},
		"of a base that is alone":         {func(m *model) { m.root("a", m.hiding(126)) }, 0, becauseDeltas, 1},
		"half of a shared shard":          {func(m *model) { m.pack(250) }, 0, "", 0},
		"more than half of it":            {func(m *model) { m.pack(251) }, 0, becauseDead, 2},
		"few, in a shared shard for long": {func(m *model) { m.pack(6) }, 14 * day, becauseDead, 2},
		"few, for less long":              {func(m *model) { m.pack(6) }, 14*day - time.Second, "", 0},
		"less than a hundredth for ever":  {func(m *model) { m.pack(4) }, 100 * day, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			m := newModel(t, 1)
			test.fill(m)
			m.now = m.now.Add(test.age)
			plan := m.cfg.Plan(m.state())
			if test.reason == "" {
				if len(plan) > 0 {
					t.Errorf("due is %v", plan)
				}
				return
			}
			if len(plan) != 1 || plan[0].Reason != test.reason || plan[0].Pressing {
				t.Fatalf("due is %v, want one because %s", plan, test.reason)
			}
			var keys []string
			for _, in := range plan[0].Inputs {
				keys = append(keys, in.Keys...)
			}
			if slices.Sort(keys); len(keys) != test.shards {
				t.Errorf("of %q", keys)
			}
			m.do(plan[0])
			if again := m.cfg.Plan(m.state()); len(again) > 0 {
				t.Errorf("it is due again: %v", again)
			}
		})
	}
}
