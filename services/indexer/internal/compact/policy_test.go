package compact

import (
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/testrun"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// model is a catalog without etcd: repos that are pushed to, compactions that are done at once.
type model struct {
	t        *testing.T
	rng      *rand.Rand
	cfg      Config
	now      time.Time
	revision int64
	roots    map[string]catalog.Root
	packs    map[string]catalog.Pack
	lives    map[string]int64
	// gone is when each repo was deleted whose documents a pack still has.
	gone map[remains]time.Time

	pushed, written, read uint64
	shards                int // ever made
}

// remains names a deleted repo whose documents a pack still has.
type remains struct{ pack, repo string }

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: time.Unix(1_800_000_000, 0),
		roots: map[string]catalog.Root{}, packs: map[string]catalog.Pack{}, lives: map[string]int64{}, gone: map[remains]time.Time{},
	}
	m.cfg.SetDefaults()
	return m
}

func (m *model) next() int64 { m.revision++; return m.revision }

func (m *model) ref(size uint64, delta bool) *catalogv1.ShardRef {
	m.shards++
	digest := sha256.Sum256(fmt.Append(nil, m.shards))
	return &catalogv1.ShardRef{
		Digest: digest[:], Key: catalog.ShardKey(m.next(), digest), SizeBytes: size, Delta: delta,
		Documents: 1 + size/4096, ContentBytes: size * 3 / 2, LiveDocuments: 1 + size/4096, LiveContentBytes: size * 3 / 2,
	}
}

// size returns the size of a new repo: from some KiB to a GiB, mostly small.
func (m *model) size() uint64 {
	return uint64(4<<10) << m.rng.IntN(1+m.rng.IntN(18))
}

// push pushes to a repo: a full build, or a delta that hides a little.
func (m *model) push(name string) {
	root, ok := m.roots[name]
	next := &catalogv1.Root{Repo: name}
	if ok {
		next = proto.CloneOf(root.Record)
	} else {
		m.lives[name] = m.next()
	}
	next.Generation++
	next.PublishedAt = timestamppb.New(m.now)
	if !ok || m.rng.IntN(3) == 0 {
		size := m.size()
		if ok {
			size = 0
			for _, ref := range next.Shards {
				size += share(ref)
			}
		}
		next.Shards = []*catalogv1.ShardRef{m.ref(max(size, 4<<10), false)}
	} else {
		m.delta(next)
	}
	m.pushed += next.Shards[len(next.Shards)-1].SizeBytes
	m.roots[name] = catalog.Root{Record: next, Revision: m.next()}
}

func (m *model) delta(root *catalogv1.Root) {
	base := root.Shards[0]
	size := max(share(base)/uint64(50+m.rng.IntN(500)), 4<<10)
	n := min(base.LiveDocuments/2, size/4096)
	if n > 0 {
		base.Hidden = []byte{1}
		base.LiveDocuments -= n
		base.LiveContentBytes -= min(base.LiveContentBytes, n*6144)
	}
	root.Shards = append(root.Shards, m.ref(size, true))
}

func (m *model) remove(name string) {
	delete(m.roots, name)
	delete(m.lives, name)
	for key, pack := range m.packs {
		if at := (remains{key, name}); slices.Contains(pack.Record.Repos, name) && m.gone[at].IsZero() {
			m.gone[at] = m.now
		}
	}
}

func (m *model) state() State {
	s := State{Lives: m.lives, Now: m.now}
	for _, root := range m.roots {
		s.Roots = append(s.Roots, root)
	}
	slices.SortFunc(s.Roots, func(a, b catalog.Root) int { return cmpName(a, b) })
	for _, pack := range m.packs {
		s.Packs = append(s.Packs, pack)
	}
	return s
}

func cmpName(a, b catalog.Root) int {
	switch {
	case a.Record.Repo < b.Record.Repo:
		return -1
	case a.Record.Repo > b.Record.Repo:
		return 1
	}
	return 0
}

// do does a compaction as the worker does, and checks what is planned.
func (m *model) do(c *catalogv1.Compaction) {
	var outs []*catalogv1.ShardRef
	shared := map[string]uint64{}
	var repos []string
	size, content, documents := uint64(0), uint64(0), uint64(0)
	for _, in := range c.Inputs {
		root := m.roots[in.Repo]
		if root.Revision != in.Revision {
			m.t.Fatalf("%s is planned from %d, is at %d", in.Repo, in.Revision, root.Revision)
		}
		next := proto.CloneOf(root.Record)
		next.Generation++
		out := combine(next, in.Keys)
		for _, ref := range root.Record.Shards {
			if slices.Contains(in.Keys, ref.Key) {
				m.read += share(ref) + readBlock
				shared[ref.Key] = ref.SizeBytes
				size += share(ref)
			}
		}
		content, documents = content+out.LiveContentBytes, documents+out.LiveDocuments
		outs, repos = append(outs, out), append(repos, in.Repo)
		m.roots[in.Repo] = catalog.Root{Record: next, Revision: m.next()}
	}
	made := m.ref(max(size, 1), false)
	for _, out := range outs {
		out.Key, out.Digest, out.SizeBytes = made.Key, made.Digest, made.SizeBytes
		out.ContentBytes, out.Documents, out.Compacted = content, documents, true
	}
	if len(repos) > 1 {
		m.packs[made.Key] = catalog.Pack{Record: &catalogv1.Pack{
			Key: made.Key, MadeAt: timestamppb.New(m.now), Repos: repos,
		}, Revision: m.next()}
	}
	m.written += made.SizeBytes
	for key, n := range shared {
		if _, ok := m.packs[key]; ok {
			m.read += n / 2 // the posting lists of all its repos
		}
	}
	if made.SizeBytes > 2*target*5/4 || len(repos) > maxRepos {
		m.t.Errorf("a shard of %d bytes and %d repos, because %s", made.SizeBytes, len(repos), c.Reason)
	}
}

// sweep forgets packs that no root names, as the collector does in the end.
func (m *model) sweep() {
	named := map[string]bool{}
	for _, root := range m.roots {
		for _, ref := range root.Record.Shards {
			named[ref.Key] = true
		}
	}
	for key := range m.packs {
		if !named[key] {
			delete(m.packs, key)
		}
	}
	for what, at := range m.gone {
		if _, there := m.packs[what.pack]; !there {
			delete(m.gone, what)
		} else if m.now.Sub(at) > m.cfg.Reclaim+time.Hour+m.cfg.Every { // the model looks once an hour
			m.t.Fatalf("documents of %s, deleted %v ago, are in a shard", what.repo, m.now.Sub(at))
		}
	}
}

// amplification returns the bytes that are stored, those that are live, and the number of shards.
func (m *model) amplification() (stored, live uint64, shards int) {
	objects := map[string]uint64{}
	for _, root := range m.roots {
		for _, ref := range root.Record.Shards {
			objects[ref.Key] = ref.SizeBytes
			live += share(ref)
		}
	}
	for _, n := range objects {
		stored += n
	}
	return stored, live, len(objects)
}

// TestPolicyIsBounded pushes to many repos at random for weeks. The bounds are those of decision
// 20.
func TestPolicyIsBounded(t *testing.T) {
	repos, days := testrun.Rounds(600, 1500), testrun.Rounds(16, 18)
	m := newModel(t, testrun.Seed(t))
	for i := range repos {
		m.push(fmt.Sprintf("repo-%04d", i))
	}
	for step := range days * 24 {
		m.now = m.now.Add(time.Hour)
		for range repos / 60 {
			// A few are pushed to much more often than others.
			m.push(fmt.Sprintf("repo-%04d", int(float64(repos)*m.rng.Float64()*m.rng.Float64()*m.rng.Float64())))
		}
		if step%6 == 0 {
			m.remove(fmt.Sprintf("repo-%04d", m.rng.IntN(repos)))
		}
		// A compaction can make another one due: in a minute or two, not at once.
		for range 4 {
			m.now = m.now.Add(m.cfg.Every / 4)
			for _, c := range m.cfg.Plan(m.state()) {
				m.do(c)
			}
			m.sweep()
		}
		m.check()
	}
	stored, live, shards := m.amplification()
	t.Logf("%d repos, %d shards, %.2f times the space, %.2f times the writes of indexing, %.2f the reads",
		len(m.roots), shards, float64(stored)/float64(live), float64(m.written)/float64(m.pushed), float64(m.read)/float64(m.pushed))
	if m.written > 6*m.pushed || m.read > 12*m.pushed {
		t.Errorf("%d bytes written and %d read for %d that were pushed", m.written, m.read, m.pushed)
	}
}

// check holds the catalog against the bounds.
func (m *model) check() {
	stored, live, shards := m.amplification()
	if stored > 2*live+target {
		m.t.Fatalf("%d bytes are stored of %d that live", stored, live)
	}
	large, deltas := 0, 0
	for name, root := range m.roots {
		own := uint64(0)
		n := 0
		for _, ref := range root.Record.Shards {
			own += share(ref)
			if ref.Delta {
				n++
			}
		}
		if n > m.cfg.Deltas {
			m.t.Fatalf("%s has %d deltas", name, n)
		}
		if deltas += n; own >= small {
			large++
		}
	}
	// Besides the large shards and the deltas: full shards, some of each level, and the pushes of
	// the last minutes.
	most := large + deltas + int(2*live/target) + (levels+2)*fanIn + len(m.roots)/60 + 60
	if shards > most {
		m.t.Fatalf("%d shards, more than %d: %d large repos, %d deltas, %d bytes", shards, most, large, deltas, live)
	}
}

// TestNothingIsDueTwice: what is planned is not planned again, and repos are in one
// compaction at a time.
func TestNothingIsDueTwice(t *testing.T) {
	m := newModel(t, 7)
	for i := range 500 {
		m.push(fmt.Sprintf("repo-%04d", i))
	}
	m.now = m.now.Add(time.Hour)
	s := m.state()
	seen := map[string]bool{}
	for _, c := range m.cfg.Plan(s) {
		for _, in := range c.Inputs {
			if seen[in.Repo] {
				t.Errorf("%s is planned twice", in.Repo)
			}
			seen[in.Repo] = true
		}
		s.Planned = append(s.Planned, catalog.Compaction{Entry: catalog.Entry[*catalogv1.Compaction]{Record: c}})
	}
	if len(seen) < 300 {
		t.Errorf("only %d of 500 repos are planned", len(seen))
	}
	if again := m.cfg.Plan(s); len(again) > 0 {
		t.Errorf("%d compactions more: %v", len(again), again[0])
	}
}
