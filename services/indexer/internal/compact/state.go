package compact

import (
	"slices"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// State is the input of a plan.
type State struct {
	// Roots are as of one revision; Packs, Lives and Planned are not older.
	Roots []catalog.Root
	Packs []catalog.Pack
	// Lives maps desired repos to the revisions that made them desired.
	Lives map[string]int64
	// Planned are the compactions that are planned or running.
	Planned []catalog.Compaction
	Now     time.Time
}

// repo is a repo with a root.
type repo struct {
	catalog.Root

	// busy: it is part of a planned compaction.
	busy bool
	// own is the number of bytes that its live documents take in all its shards.
	own uint64
}

func (r *repo) name() string { return r.Record.GetRepo() }

// object is a shard with what all roots say about it.
type object struct {
	key   string
	size  uint64
	repos []*repo
	// live is the number of its bytes that live documents take, at most size.
	live uint64
	// shared: it was made of several repos. Without the record of its pack, as after a
	// restore, it counts as made long ago and holding deleted repos.
	shared  bool
	deleted bool
	made    time.Time
	delta   bool
}

func (o *object) busy() bool {
	return slices.ContainsFunc(o.repos, func(r *repo) bool { return r.busy })
}

// share returns the number of a shard's bytes that the root's live documents take.
func share(ref *catalogv1.ShardRef) uint64 {
	size := ref.GetSizeBytes()
	switch {
	case ref.GetContentBytes() > 0:
		return min(size, uint64(float64(size)*float64(ref.GetLiveContentBytes())/float64(ref.GetContentBytes())))
	case ref.GetDocuments() > 0:
		return min(size, uint64(float64(size)*float64(ref.GetLiveDocuments())/float64(ref.GetDocuments())))
	}
	return size
}

// view indexes a state by repos and objects.
type view struct {
	State

	repos   []*repo
	objects []*object // in the order of their first mention by a root
	byKey   map[string]*object
}

func newView(s State) *view {
	v := &view{State: s, byKey: map[string]*object{}}
	busy := map[string]bool{}
	for _, c := range s.Planned {
		for _, input := range c.Record.GetInputs() {
			busy[input.GetRepo()] = true
		}
	}
	for _, root := range s.Roots {
		r := &repo{Root: root, busy: busy[root.Record.GetRepo()]}
		v.repos = append(v.repos, r)
		for _, ref := range root.Record.GetShards() {
			v.add(r, ref)
		}
	}
	for _, pack := range s.Packs {
		if o := v.byKey[pack.Record.GetKey()]; o != nil {
			v.applyPack(o, pack)
		}
	}
	return v
}

// add counts a root's reference to a shard.
func (v *view) add(r *repo, ref *catalogv1.ShardRef) {
	o := v.byKey[ref.GetKey()]
	if o == nil {
		o = &object{key: ref.GetKey(), size: ref.GetSizeBytes(), delta: ref.GetDelta()}
		v.byKey[o.key] = o
		v.objects = append(v.objects, o)
	}
	own := share(ref)
	o.repos, o.live, r.own = append(o.repos, r), min(o.size, o.live+own), r.own+own
	if len(o.repos) > 1 || ref.GetRepos() > 1 {
		o.shared, o.deleted = true, true // unless a pack is known
	}
}

// applyPack sets when a shared shard was made and whether a repo in it was deleted
// since, even if the repo was put again. Every repo in it was desired when the claim
// was made whose fencing token ends the key.
func (v *view) applyPack(o *object, pack catalog.Pack) {
	claimed, _ := catalog.KeyFence(pack.Record.GetKey())
	o.shared, o.deleted, o.made = true, false, pack.Record.GetMadeAt().AsTime()
	for _, name := range pack.Record.GetRepos() {
		if life, desired := v.Lives[name]; !desired || life > claimed {
			o.deleted = true
		}
	}
	o.deleted = o.deleted || pack.Record.GetUnknown()
}

// settled reports whether the last publication of a repo is at least that long ago.
func (v *view) settled(r *repo, ago time.Duration) bool {
	return v.Now.Sub(r.Record.GetPublishedAt().AsTime()) >= ago
}

// input returns the part of a compaction that merges these shards of a repo.
func input(r *repo, refs []*catalogv1.ShardRef) *catalogv1.CompactionInput {
	in := &catalogv1.CompactionInput{Repo: r.name(), Revision: r.Revision}
	for _, ref := range refs {
		in.Keys = append(in.Keys, ref.GetKey())
	}
	return in
}

// stale reports whether all roots of a planned compaction have changed.
func stale(c catalog.Compaction, revisions map[string]int64) bool {
	return !slices.ContainsFunc(c.Record.GetInputs(), func(in *catalogv1.CompactionInput) bool {
		return revisions[in.GetRepo()] == in.GetRevision()
	})
}

// halves returns the two compactions that a failing one is split into.
func halves(c *catalogv1.Compaction) []*catalogv1.Compaction {
	n := len(c.GetInputs()) / 2
	first, second := proto.CloneOf(c), proto.CloneOf(c)
	first.Inputs, second.Inputs = first.Inputs[:n], second.Inputs[n:]
	for _, half := range []*catalogv1.Compaction{first, second} {
		half.Attempts, half.NotBefore = 0, nil
	}
	return []*catalogv1.Compaction{first, second}
}
