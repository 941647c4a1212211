package compact

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Bounds of the policy; decision 20 has the reasons.
const (
	// fanIn is how many shards of about one size are merged into one, so that a
	// byte is rewritten once for each power of it that lies between the smallest
	// shard and the target.
	fanIn = 8
	// levels below the target: smaller shards are all of one size.
	levels = 4
	// maxRepos is how many repos a shard has at most: the record of a pack names them.
	maxRepos = 4096
	// hiddenShare and deltaShare: merging pays when one of so many documents or bytes is.
	hiddenShare, deltaShare = 8, 8
	// readShare: at least one of so many bytes that are read must be written.
	readShare = 8
	// replacedReclaims times Reclaim is how old a shard of several repos may be
	// that has documents which a later generation replaced.
	replacedReclaims = 14
	// cold is how long a repo is left alone before its large shards are made smaller.
	cold = 24 * time.Hour
)

// Reasons of compactions.
const (
	becauseDeltas  = "deltas"  // a repo has many, or much is hidden
	becauseSmall   = "small"   // many small shards
	becauseDead    = "dead"    // half of a shared shard is nobody's, or it is old
	becauseDeleted = "deleted" // a shared shard has documents of a deleted repo
	becauseCold    = "cold"    // a large shard stays, and was written in haste
)

// Plan says which compactions are due, the most pressing first.
func (c *Config) Plan(s State) []*catalogv1.Compaction {
	v := newView(s)
	p := &planner{Config: c, view: v}
	p.deltas()
	p.packs()
	p.cold()
	slices.SortStableFunc(p.plan, func(a, b *catalogv1.Compaction) int {
		return cmp.Compare(boolInt(b.Pressing), boolInt(a.Pressing))
	})
	return p.plan
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

type planner struct {
	*Config
	*view

	plan []*catalogv1.Compaction
}

// most is the size that no merged shard passes by much.
func (p *planner) most() uint64 { return 2 * uint64(p.Target) }

func (p *planner) add(reason string, inputs []*catalogv1.CompactionInput, repos ...*repo) {
	for _, r := range repos {
		r.busy = true
	}
	slices.SortFunc(inputs, func(a, b *catalogv1.CompactionInput) int { return cmp.Compare(a.Repo, b.Repo) })
	p.plan = append(p.plan, &catalogv1.Compaction{
		Inputs: inputs, Reason: reason, Pressing: reason == becauseDeleted, PlannedAt: timestamppb.New(p.Now),
	})
}

// deltas merges shards of one repo. To take one repo out of a shared shard costs
// reading much of it, so that several of its repos must want that.
func (p *planner) deltas() {
	wanting := map[string][]*repo{}
	for _, r := range p.repos {
		if r.busy {
			continue
		}
		refs := p.mergeable(r)
		if at := slices.IndexFunc(refs, p.shared); at >= 0 {
			wanting[refs[at].GetKey()] = append(wanting[refs[at].GetKey()], r)
			refs = p.crowded(r)
		}
		if refs != nil {
			p.add(becauseDeltas, []*catalogv1.CompactionInput{input(r, refs)}, r)
		}
	}
	for _, o := range p.objects {
		p.leave(o, wanting[o.key])
	}
}

func (p *planner) shared(ref *catalogv1.ShardRef) bool { return p.byKey[ref.GetKey()].shared }

// crowded are deltas that are merged among themselves because there are too many.
func (p *planner) crowded(r *repo) []*catalogv1.ShardRef {
	var deltas []*catalogv1.ShardRef
	for _, ref := range r.Record.GetShards() {
		if ref.GetDelta() {
			deltas = append(deltas, ref)
		}
	}
	if len(deltas) <= p.Deltas {
		return nil
	}
	return inOrder(r, fit(tier(deltas), p.most()))
}

// leave moves the repos that want it from a shared shard into one of their own,
// with all that they have, if that is enough for reading it.
func (p *planner) leave(o *object, wanting []*repo) {
	sum := uint64(0)
	var inputs []*catalogv1.CompactionInput
	var leaving []*repo
	for _, r := range wanting {
		if r.busy || sum+r.own > p.most() {
			continue
		}
		sum += r.own
		leaving, inputs = append(leaving, r), append(inputs, input(r, r.Record.GetShards()))
	}
	if len(leaving) > 0 && sum*readShare >= o.size {
		p.add(becauseDeltas, inputs, leaving...)
	}
}

// mergeable are the shards of a repo that are to become one, in the root's order;
// nil where that does not pay.
func (p *planner) mergeable(r *repo) []*catalogv1.ShardRef {
	var deltas, chosen []*catalogv1.ShardRef
	var base, delta uint64
	for _, ref := range r.Record.GetShards() {
		switch {
		case ref.GetDelta():
			deltas, delta = append(deltas, ref), delta+share(ref)
		default:
			base += share(ref)
			if hidden(ref)*hiddenShare > ref.GetDocuments() {
				chosen = append(chosen, ref)
			}
		}
	}
	switch {
	case len(deltas) > 0 && delta*deltaShare > base:
		chosen = p.affordable(r, delta)
	case len(chosen) > 0:
		chosen = append(chosen, deltas...)
	case len(deltas) > p.Deltas:
		chosen = tier(deltas)
	default:
		return nil
	}
	chosen = fit(chosen, p.most())
	if len(chosen) == 1 && hidden(chosen[0]) == 0 {
		return nil
	}
	return inOrder(r, chosen)
}

// hidden counts the documents of a root's own shard that are not served. In one
// that is shared it is not known which of the others are.
func hidden(ref *catalogv1.ShardRef) uint64 {
	if len(ref.GetHidden()) == 0 {
		return 0
	}
	return ref.GetDocuments() - min(ref.GetDocuments(), ref.GetLiveDocuments())
}

// affordable are all deltas and the shards below them, the smallest first, that
// may be rewritten for so many bytes of deltas.
func (p *planner) affordable(r *repo, delta uint64) []*catalogv1.ShardRef {
	refs := bySize(r.Record.GetShards())
	var chosen []*catalogv1.ShardRef
	base := uint64(0)
	for _, ref := range refs {
		if !ref.GetDelta() {
			if base += share(ref); base > deltaShare*delta {
				continue
			}
		}
		chosen = append(chosen, ref)
	}
	return chosen
}

// tier are the smallest deltas, so many that the next one is more than twice as
// large as they are together: so a byte is rewritten a few times for each power of
// two that a delta has grown by.
func tier(deltas []*catalogv1.ShardRef) []*catalogv1.ShardRef {
	sorted := bySize(deltas)
	n, sum, best := 0, uint64(0), 2
	for n < len(sorted) {
		sum += share(sorted[n])
		if n++; n < len(sorted) && share(sorted[n]) <= 2*sum {
			best = n + 1
		}
	}
	return sorted[:min(best, len(sorted))]
}

func bySize(refs []*catalogv1.ShardRef) []*catalogv1.ShardRef {
	sorted := slices.Clone(refs)
	slices.SortStableFunc(sorted, func(a, b *catalogv1.ShardRef) int { return cmp.Compare(share(a), share(b)) })
	return sorted
}

// fit takes the smallest first as long as they are not too much together.
func fit(refs []*catalogv1.ShardRef, most uint64) []*catalogv1.ShardRef {
	sum := uint64(0)
	for i, ref := range bySize(refs) {
		if sum += share(ref); sum > most && i > 0 {
			return bySize(refs)[:i]
		}
	}
	return refs
}

func inOrder(r *repo, refs []*catalogv1.ShardRef) []*catalogv1.ShardRef {
	var ordered []*catalogv1.ShardRef
	for _, ref := range r.Record.GetShards() {
		if slices.Contains(refs, ref) {
			ordered = append(ordered, ref)
		}
	}
	return ordered
}

// segment is what is packed together: the repos of a shared shard, or one repo.
type segment struct {
	repos []*repo
	// live is what comes out, read what must be read for it, in bytes.
	live, read uint64
	// reason why it must be rewritten even alone; empty: it need not.
	reason string
}

// packs puts small repos together, and rewrites shared shards.
func (p *planner) packs() {
	var byLevel [levels + 1][]segment
	var due []segment
	for _, s := range p.segments() {
		if s.reason != "" {
			due = append(due, s)
			continue
		}
		byLevel[p.level(s.live)] = append(byLevel[p.level(s.live)], s)
	}
	// What must be rewritten takes the smallest with it, which are free to go.
	chosen := due
	for _, segments := range byLevel {
		if len(segments) >= fanIn {
			chosen = append(chosen, segments...)
		}
	}
	p.fill(chosen)
}

// level of a size: 0 for all below the target by fanIn to the power of levels.
func (p *planner) level(live uint64) int {
	least := max(uint64(p.Target)>>(3*levels), 1)
	return min((bits.Len64(live/least)+2)/3, levels)
}

// segments are the candidates: small repos on their own that were left alone, and
// shared shards that are not full, or have too much that is dead.
func (p *planner) segments() (all []segment) {
	for _, r := range p.repos {
		if r.busy || p.sharing(r) || r.own >= uint64(p.Small) || !p.settled(r, p.Settle) || len(r.Record.GetShards()) == 0 {
			continue
		}
		all = append(all, segment{repos: []*repo{r}, live: r.own, read: r.own})
	}
	for _, o := range p.objects {
		if !o.shared || o.busy() {
			continue
		}
		s := segment{repos: o.repos, read: o.size, reason: p.dead(o)}
		for _, r := range o.repos {
			s.live += r.own
		}
		s.live = min(s.live, p.most())
		if s.reason != "" || o.live < uint64(p.Target)/2 && len(o.repos) < maxRepos/2 {
			all = append(all, s)
		}
	}
	return all
}

// sharing says whether a repo has documents in a shared shard.
func (p *planner) sharing(r *repo) bool {
	return slices.ContainsFunc(r.Record.GetShards(), func(ref *catalogv1.ShardRef) bool { return p.byKey[ref.GetKey()].shared })
}

// dead says why a shared shard must be rewritten, if it must.
func (p *planner) dead(o *object) string {
	age := p.Now.Sub(o.made)
	switch {
	case o.deleted && age >= p.Reclaim:
		return becauseDeleted
	case o.live < o.size/2, o.live < o.size*99/100 && age >= replacedReclaims*p.Reclaim:
		return becauseDead
	}
	return ""
}

// fill makes shards of about the target's size out of segments, the smallest
// first. One of them alone is rewritten only if it must be.
func (p *planner) fill(segments []segment) {
	slices.SortStableFunc(segments, func(a, b segment) int {
		return cmp.Or(cmp.Compare(boolInt(b.reason == becauseDeleted), boolInt(a.reason == becauseDeleted)), cmp.Compare(a.live, b.live))
	})
	var pack []segment
	var live, read uint64
	repos := 0
	flush := func() {
		p.pack(pack)
		pack, live, read, repos = nil, 0, 0, 0
	}
	for _, s := range segments {
		full := live >= uint64(p.Target) || live+s.live > p.most() || read+s.read > 2*p.most() || repos+len(s.repos) > maxRepos
		if full && len(pack) > 0 {
			flush()
		}
		pack, live, read, repos = append(pack, s), live+s.live, read+s.read, repos+len(s.repos)
	}
	flush()
}

func (p *planner) pack(segments []segment) {
	reason := ""
	var inputs []*catalogv1.CompactionInput
	var repos []*repo
	for _, s := range segments {
		if reason == "" || s.reason == becauseDeleted {
			reason = s.reason
		}
		for _, r := range s.repos {
			if r.busy { // in two shared shards: the first one takes it
				continue
			}
			r.busy = true
			repos, inputs = append(repos, r), append(inputs, input(r, r.Record.GetShards()))
		}
	}
	if len(segments) < 2 && reason == "" || len(inputs) == 0 {
		for _, r := range repos {
			r.busy = false
		}
		return
	}
	p.add(cmp.Or(reason, becauseSmall), inputs, repos...)
}

// cold makes large shards smaller that have stayed as they were first written.
func (p *planner) cold() {
	for _, r := range p.repos {
		if r.busy || r.own < uint64(p.Small) || !p.settled(r, cold) {
			continue
		}
		for _, ref := range r.Record.GetShards() {
			if !ref.GetCompacted() && !ref.GetDelta() && ref.GetSizeBytes() <= p.most() {
				p.add(becauseCold, []*catalogv1.CompactionInput{input(r, []*catalogv1.ShardRef{ref})}, r)
				break // one at a time: the others are planned from the next root
			}
		}
	}
}
