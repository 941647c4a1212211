package compact

import (
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/catalog"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// State is what a plan is made from.
type State struct {
	// Roots as of one revision; Packs, Lives and Planned are not older.
	Roots []catalog.Root
	Packs []catalog.Pack
	// Lives are the revisions that made repos desired.
	Lives map[string]int64
	// Planned is what is planned already, and may be under way.
	Planned []catalog.Compaction
	Now     time.Time
}

// repo is a repo of the roots.
type repo struct {
	catalog.Root

	// busy: a compaction of it is planned.
	busy bool
	// own is what its live documents take of all its shards, in bytes.
	own uint64
}

func (r *repo) name() string { return r.Record.GetRepo() }

// object is a shard as all roots see it.
type object struct {
	key   string
	size  uint64
	repos []*repo
	// live is what the live documents take of it: at most size.
	live uint64
	// shared: it was made of several repos. One of which it is not known of how
	// many, after a restore, counts as one with deleted repos, made long ago.
	shared  bool
	deleted bool
	made    time.Time
	delta   bool
}

func (o *object) busy() bool {
	for _, r := range o.repos {
		if r.busy {
			return true
		}
	}
	return false
}

// share is what a root's live documents take of a shard, in bytes.
func share(ref *catalogv1.ShardRef) uint64 {
	size := ref.GetSizeBytes()
	switch {
	case !told(ref):
		return size
	case ref.GetContentBytes() > 0:
		return min(size, uint64(float64(size)*float64(ref.GetLiveContentBytes())/float64(ref.GetContentBytes())))
	case ref.GetDocuments() > 0:
		return min(size, uint64(float64(size)*float64(ref.GetLiveDocuments())/float64(ref.GetDocuments())))
	}
	return size
}

// told says whether a root tells which of a shard's documents are its own.
func told(ref *catalogv1.ShardRef) bool {
	return ref.GetCompacted() || ref.GetLiveDocuments()+ref.GetLiveContentBytes()+ref.GetLiveSkippedDocuments() > 0 || len(ref.GetHidden()) > 0
}

// liveDocuments, liveContent and liveSkipped are the root's own in a shard.
func liveDocuments(ref *catalogv1.ShardRef) uint64 {
	if told(ref) {
		return ref.GetLiveDocuments()
	}
	return ref.GetDocuments()
}

func liveContent(ref *catalogv1.ShardRef) uint64 {
	if told(ref) {
		return ref.GetLiveContentBytes()
	}
	return ref.GetContentBytes()
}

// view is a state by repos and objects.
type view struct {
	State

	repos   []*repo
	objects []*object // in the order in which roots name them first
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
			v.judge(o, pack)
		}
	}
	return v
}

func (v *view) add(r *repo, ref *catalogv1.ShardRef) {
	o := v.byKey[ref.GetKey()]
	if o == nil {
		o = &object{key: ref.GetKey(), size: ref.GetSizeBytes(), delta: ref.GetDelta()}
		v.byKey[o.key] = o
		v.objects = append(v.objects, o)
	}
	own := share(ref)
	o.repos, o.live, r.own = append(o.repos, r), min(o.size, o.live+own), r.own+own
	if len(o.repos) > 1 || told(ref) && ref.GetCompacted() && ref.GetLiveDocuments() < ref.GetDocuments() && len(ref.GetHidden()) == 0 {
		o.shared, o.deleted = true, true // unless a pack tells
	}
}

// judge notes which repos of a pack are deleted, those that came back included.
func (v *view) judge(o *object, pack catalog.Pack) {
	o.shared, o.deleted, o.made = true, false, pack.Record.GetMadeAt().AsTime()
	for _, name := range pack.Record.GetRepos() {
		if life, desired := v.Lives[name]; !desired || life > pack.Revision {
			o.deleted = true
		}
	}
	o.deleted = o.deleted || pack.Record.GetUnknown()
}

// settled says whether a repo was left alone for so long.
func (v *view) settled(r *repo, long time.Duration) bool {
	return v.Now.Sub(r.Record.GetPublishedAt().AsTime()) >= long
}

// input is what a compaction takes of a repo, as it is planned.
func input(r *repo, refs []*catalogv1.ShardRef) *catalogv1.CompactionInput {
	in := &catalogv1.CompactionInput{Repo: r.name(), Revision: r.Revision}
	for _, ref := range refs {
		in.Keys = append(in.Keys, ref.GetKey())
	}
	return in
}

// stale says whether nothing of a planned compaction can be done any more.
func stale(c catalog.Compaction, revisions map[string]int64) bool {
	for _, in := range c.Record.GetInputs() {
		if revisions[in.GetRepo()] == in.GetRevision() {
			return false
		}
	}
	return true
}

// halves are the two compactions that a failing one is split into, so that what
// makes it fail is alone in the end.
func halves(c *catalogv1.Compaction) []*catalogv1.Compaction {
	n := len(c.GetInputs()) / 2
	first, second := proto.CloneOf(c), proto.CloneOf(c)
	first.Inputs, second.Inputs = first.Inputs[:n], second.Inputs[n:]
	for _, half := range []*catalogv1.Compaction{first, second} {
		half.Attempts, half.NotBefore = 0, nil
	}
	return []*catalogv1.Compaction{first, second}
}
