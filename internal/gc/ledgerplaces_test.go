package gc

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/catalog"
	"github.com/trawl-search/trawl/internal/membership"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// indexerDisk is an indexer: what is on its disk, and what it works on.
type indexerDisk struct {
	name string
	told int64
	away bool
	// copies are of repos, by the life that they belong to.
	copies map[int64]string
	// life is that of the repo in a job, claim that of a compaction. Since is its fencing token, or a
	// revision before it: etcd may have granted a claim whose answer is still on its way.
	life, since int64
	claim       *catalog.Claim
}

// indexerActs loses a claim, or the record of the disk while it keeps a claim. An
// indexer that loses both is away, and nobody waits for it.
func (m *ledgerModel) indexerActs(x *indexerDisk) {
	switch {
	case x.away:
		x.away = false
		m.tell(membership.IndexerDisk, x.name, x.told)
	case x.claim == nil:
	case m.one(3):
		m.endClaim(x.claim.Fence())
	case !isLost(x.claim.Lost()):
		x.away = true
		m.forget(x.name)
	}
}

func isLost(lost <-chan struct{}) bool {
	select {
	case <-lost:
		return true
	default:
		return false
	}
}

// endClaim ends the claim with a fencing token.
func (m *ledgerModel) endClaim(fence int64) {
	client, prefix := m.etcd.Client(nil), catalog.DefaultPrefix+"claims/"
	all, err := m.truth.ListCompactions(context.Background())
	if err != nil {
		m.t.Error(err)
	}
	for _, c := range all {
		resp, err := client.Get(context.Background(), prefix+c.Name)
		if err == nil && len(resp.Kvs) == 1 && resp.Kvs[0].CreateRevision == fence {
			m.etcd.Expire(prefix + c.Name)
		}
	}
}

// sweep removes the copies of lives that are over, and reports the disk clean if the
// indexer works on none of them.
func (m *ledgerModel) sweep(x *indexerDisk) {
	revision, err := m.truth.CurrentRevision(context.Background())
	if err != nil {
		m.t.Error(err)
	}
	lives, err := m.truth.Lives(context.Background())
	if err != nil {
		m.t.Error(err)
	}
	over := func(life int64, repo string) bool { return lives[repo] != life }
	maps.DeleteFunc(x.copies, func(life int64, repo string) bool { return life != x.life && over(life, repo) })
	if x.life > 0 && over(x.life, x.copies[x.life]) {
		return
	}
	if x.since > 0 {
		revision = min(revision, x.since)
	}
	if x.told = revision; !x.away {
		m.tell(membership.IndexerDisk, x.name, revision)
	}
}

// searcherDisk is the disk of a searcher that looks at the roots now and then.
type searcherDisk struct {
	name   string
	away   bool
	wanted int64 // revision of the roots that it saw last
	files  map[string]*file
}

// file is a shard on a disk.
type file struct {
	content []byte
	dropped bool
	last    int64 // revision of the last roots that had it, once it is dropped
}

func (m *ledgerModel) searcherActs(s *searcherDisk) {
	switch m.rng.IntN(8) {
	case 0:
		if s.away {
			m.comeBack(s)
		} else {
			s.away = true
			m.forget(s.name)
		}
	case 1, 2, 3:
		m.follow(s)
	case 4, 5:
		m.drop(s, 1+m.rng.IntN(4))
	default:
		if !s.away {
			m.tell(membership.SearcherDisk, s.name, s.cleared())
		}
	}
}

// comeBack starts as a new process: it does not know what the files are.
func (m *ledgerModel) comeBack(s *searcherDisk) {
	if !s.away {
		return
	}
	s.away, s.wanted = false, 0
	for _, f := range s.files {
		f.dropped, f.last = true, 0
	}
	m.tell(membership.SearcherDisk, s.name, 0)
}

func (m *ledgerModel) follow(s *searcherDisk) {
	if s.away {
		return
	}
	revision, err := m.truth.CurrentRevision(context.Background())
	if err != nil {
		m.t.Error(err)
	}
	live := m.live()
	for key, f := range s.files {
		if !f.dropped && !slices.Contains(live, key) {
			f.dropped, f.last = true, s.wanted
		}
	}
	for _, key := range live {
		if strings.HasPrefix(key, "shards/") {
			s.files[key] = &file{content: m.content(key)}
		}
	}
	s.wanted = revision
}

// drop removes some files that are no longer wanted.
func (m *ledgerModel) drop(s *searcherDisk, most int) {
	for _, key := range slices.Sorted(maps.Keys(s.files)) {
		if s.files[key].dropped && s.wanted > 0 && most > 0 {
			delete(s.files, key)
			most--
		}
	}
}

func (s *searcherDisk) cleared() int64 {
	cleared := s.wanted
	for _, f := range s.files {
		if f.dropped {
			cleared = min(cleared, f.last)
		}
	}
	return cleared
}

// checkPlaces compares the report of each deletion with what is there.
func (m *ledgerModel) checkPlaces() {
	for pack, err := range m.truth.ListPacks(context.Background()) {
		if err != nil {
			m.t.Error(err)
		}
		m.noted[pack.Record.GetKey()] = true
	}
	objects := map[string]*file{}
	for _, key := range m.stored() {
		objects[key] = &file{content: m.content(key)}
	}
	for _, d := range m.deletions {
		got, err := m.truth.Deletion(context.Background(), d.repo, d.revision)
		if err != nil {
			m.t.Error(err)
			continue
		}
		if got.Gone() {
			m.gone++
		}
		m.checkPlace("the bucket", d, objects, !got.InBucket(), got)
		for _, disk := range got.Disks {
			m.checkDisk(disk, d, got)
		}
	}
}

func (m *ledgerModel) checkDisk(disk *catalogv1.Disk, d deletion, got *catalog.Deletion) {
	for _, s := range m.searchers {
		if s.name == disk.GetName() {
			m.checkPlace(s.name, d, s.files, !got.OnDisk(disk), got)
		}
	}
	for _, x := range m.indexers {
		for life, repo := range x.copies {
			if x.name == disk.GetName() && repo == d.repo && life < d.revision && !got.OnDisk(disk) {
				m.t.Errorf("%s, deleted at %d, is said to be gone from %s: a copy of the life %d is there", d.repo, d.revision, x.name, life)
			}
		}
	}
}

// checkPlace: a clean place has nothing of the repo, except noted packs while the
// report counts some.
func (m *ledgerModel) checkPlace(place string, d deletion, files map[string]*file, clean bool, got *catalog.Deletion) {
	for key, f := range files {
		fence, _ := catalog.KeyFence(key)
		if fence >= d.revision && key != m.alien || !bytes.Contains(f.content, fmt.Appendf(nil, " of %s ", d.repo)) {
			continue
		}
		if got.Gone() || clean && (!m.noted[key] || got.Packs == 0) {
			m.t.Errorf("%s, deleted at %d, is said to be gone from %s (all: %v): %s is there", d.repo, d.revision, place, got.Gone(), key)
		}
	}
}
