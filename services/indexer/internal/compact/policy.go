package compact

import (
	"cmp"
	"math/bits"
	"slices"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Bounds of the policy; decision 20 explains them.
const (
	// fanIn is how many shards of about the same size are merged into one. A byte is
	// rewritten once for each power of fanIn between the smallest shard and the target.
	fanIn = 8
	// levels of size below the target. Smaller shards all count as one size.
	levels = 4
	// maxRepos bounds the repos of a shard, which its pack record names.
	maxRepos = 4096
	// hiddenShare and deltaShare: merging pays when more than one in that many
	// documents is hidden, or one in that many bytes is a delta's.
	hiddenShare, deltaShare = 8, 8
	// readShare: a compaction writes at least one in that many bytes that it reads.
	readShare = 8
	// replacedReclaims times Reclaim is the age at which a shared shard is rewritten
	// for the documents that later generations replaced.
	replacedReclaims = 14
	// cold is how long a repo must be unchanged before its large shards are compressed
	// harder.
	cold = 24 * time.Hour
)

// Reasons of compactions.
const (
	becauseDeltas  = "deltas"  // a repo has many, or much of it is hidden
	becauseSmall   = "small"   // many small shards
	becauseDead    = "dead"    // half of a shared shard is dead, or an old one has dead parts
	becauseDeleted = "deleted" // a shared shard has documents of a deleted repo
	becauseCold    = "cold"    // a large shard that stays was compressed for speed
)

// Plan returns the compactions that are due, pressing ones first.
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

// planner collects the compactions of one plan.
type planner struct {
	*Config
	*view

	plan []*catalogv1.Compaction
}

// most is the size in bytes that merged shards hardly exceed.
const most = 2 * target

// add plans a compaction and marks its repos as busy.
func (p *planner) add(reason string, inputs []*catalogv1.CompactionInput, repos ...*repo) {
	for _, r := range repos {
		r.busy = true
	}
	slices.SortFunc(inputs, func(a, b *catalogv1.CompactionInput) int { return cmp.Compare(a.Repo, b.Repo) })
	p.plan = append(p.plan, &catalogv1.Compaction{
		Inputs: inputs, Reason: reason, Pressing: reason == becauseDeleted, PlannedAt: timestamppb.New(p.Now),
	})
}

// deltas merges the shards of single repos. Taking a repo out of a shared shard means
// reading much of it, so several of its repos must need that at once.
func (p *planner) deltas() {
	leaving := map[string][]*repo{} // by shared shard
	for _, r := range p.repos {
		if r.busy {
			continue
		}
		refs := p.mergeable(r)
		if at := slices.IndexFunc(refs, p.shared); at >= 0 {
			leaving[refs[at].GetKey()] = append(leaving[refs[at].GetKey()], r)
			refs = p.manyDeltas(r)
		}
		if refs != nil {
			p.add(becauseDeltas, []*catalogv1.CompactionInput{input(r, refs)}, r)
		}
	}
	for _, o := range p.objects {
		p.unshare(o, leaving[o.key])
	}
}

// shared reports whether a shard holds several repos.
func (p *planner) shared(ref *catalogv1.ShardRef) bool { return p.byKey[ref.GetKey()].shared }

// manyDeltas returns the deltas to merge among themselves if there are too many, else
// nil.
func (p *planner) manyDeltas(r *repo) []*catalogv1.ShardRef {
	var deltas []*catalogv1.ShardRef
	for _, ref := range r.Record.GetShards() {
		if ref.GetDelta() {
			deltas = append(deltas, ref)
		}
	}
	if len(deltas) <= p.Deltas {
		return nil
	}
	return inOrder(r, fit(tier(deltas)))
}

// unshare moves repos from a shared shard into a new one together with all their other
// shards, if they are large enough to justify reading it.
func (p *planner) unshare(o *object, repos []*repo) {
	sum := uint64(0)
	var inputs []*catalogv1.CompactionInput
	var leaving []*repo
	for _, r := range repos {
		if r.busy || sum+r.own > most {
			continue
		}
		sum += r.own
		leaving, inputs = append(leaving, r), append(inputs, input(r, r.Record.GetShards()))
	}
	if len(leaving) > 0 && sum*readShare >= o.size {
		p.add(becauseDeltas, inputs, leaving...)
	}
}

// mergeable returns the shards of a repo to merge into one, in the root's order, nil
// if merging does not pay.
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
	chosen = fit(chosen)
	if len(chosen) == 1 && hidden(chosen[0]) == 0 {
		return nil
	}
	return inOrder(r, chosen)
}

// hidden counts the hidden documents of a repo's own shard. For a shared shard it
// counts the documents of other repos too, since a root does not count those apart.
func hidden(ref *catalogv1.ShardRef) uint64 {
	if len(ref.GetHidden()) == 0 {
		return 0
	}
	return ref.GetDocuments() - min(ref.GetDocuments(), ref.GetLiveDocuments())
}

// affordable returns all deltas and the bases, the smallest first, that may be
// rewritten for this many bytes of deltas.
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

// tier returns the smallest deltas up to the first gap in size: the next one is more
// than twice as large as all of them together. A byte is thus rewritten a few times
// for each power of two by which a delta grows.
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

// bySize returns the shards in ascending order of their live bytes.
func bySize(refs []*catalogv1.ShardRef) []*catalogv1.ShardRef {
	sorted := slices.Clone(refs)
	slices.SortStableFunc(sorted, func(a, b *catalogv1.ShardRef) int { return cmp.Compare(share(a), share(b)) })
	return sorted
}

// fit returns the smallest shards that one shard can be merged of, but at least one.
func fit(refs []*catalogv1.ShardRef) []*catalogv1.ShardRef {
	sum := uint64(0)
	for i, ref := range bySize(refs) {
		if sum += share(ref); sum > most && i > 0 {
			return bySize(refs)[:i]
		}
	}
	return refs
}

// inOrder returns the shards in the order of the repo's root.
func inOrder(r *repo, refs []*catalogv1.ShardRef) []*catalogv1.ShardRef {
	var ordered []*catalogv1.ShardRef
	for _, ref := range r.Record.GetShards() {
		if slices.Contains(refs, ref) {
			ordered = append(ordered, ref)
		}
	}
	return ordered
}

// segment is a unit of packing: all repos of a shared shard, or one repo.
type segment struct {
	repos []*repo
	// live and read are the bytes that are written and read for it.
	live, read uint64
	// reason to rewrite it even alone, "" if there is none.
	reason string
}

// packs merges small repos into shared shards, and rewrites shared shards.
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
	// Segments that must be rewritten take small ones along.
	chosen := due
	for _, segments := range byLevel {
		if len(segments) >= fanIn {
			chosen = append(chosen, segments...)
		}
	}
	p.group(chosen)
}

// level returns the level of a size: 0 up to the target divided by fanIn^levels.
func (p *planner) level(live uint64) int {
	least := max(uint64(target)>>(3*levels), 1)
	return min((bits.Len64(live/least)+2)/3, levels)
}

// segments returns the candidates: small repos of their own that are settled, and
// shared shards that are not full or have too many dead bytes.
func (p *planner) segments() (all []segment) {
	for _, r := range p.repos {
		if r.busy || p.sharing(r) || r.own >= small || !p.settled(r, p.Settle) || len(r.Record.GetShards()) == 0 {
			continue
		}
		all = append(all, segment{repos: []*repo{r}, live: r.own, read: r.own})
	}
	for _, o := range p.objects {
		if !o.shared || o.busy() {
			continue
		}
		s := segment{repos: o.repos, read: o.size, reason: p.rewriteReason(o)}
		for _, r := range o.repos {
			s.live += r.own
		}
		s.live = min(s.live, most)
		if s.reason != "" || o.live < target/2 && len(o.repos) < maxRepos/2 {
			all = append(all, s)
		}
	}
	return all
}

// sharing reports whether a repo has documents in a shared shard.
func (p *planner) sharing(r *repo) bool {
	return slices.ContainsFunc(r.Record.GetShards(), p.shared)
}

// rewriteReason returns why a shared shard must be rewritten, "" if it need not be.
func (p *planner) rewriteReason(o *object) string {
	age := p.Now.Sub(o.made)
	switch {
	case o.deleted && age >= p.Reclaim:
		return becauseDeleted
	case o.live < o.size/2, o.live < o.size*99/100 && age >= replacedReclaims*p.Reclaim:
		return becauseDead
	}
	return ""
}

// group plans shards of these segments, the smallest first, some at a time that can be read
// together. A single segment is rewritten only if it has a reason.
func (p *planner) group(segments []segment) {
	slices.SortStableFunc(segments, func(a, b segment) int {
		return cmp.Or(cmp.Compare(boolInt(b.reason == becauseDeleted), boolInt(a.reason == becauseDeleted)), cmp.Compare(a.live, b.live))
	})
	var some []segment
	read := uint64(0)
	for _, s := range segments {
		if read+s.read > 2*most && len(some) > 0 {
			p.divide(some)
			some, read = nil, 0
		}
		some, read = append(some, s), read+s.read
	}
	p.divide(some)
}

// divide plans shards of about the target's size. Relatives follow each other, so that most share
// a shard, which stores equal contents once.
func (p *planner) divide(segments []segment) {
	reasons := map[*repo]string{}
	var repos []*repo
	for _, s := range segments {
		for _, r := range s.repos {
			if !r.busy { // in two shared shards: the first one takes it
				r.busy = true
				repos, reasons[r] = append(repos, r), s.reason
			}
		}
	}
	if len(segments) < 2 && (len(segments) == 0 || segments[0].reason == "") {
		for _, r := range repos {
			r.busy = false
		}
		return
	}
	var pack []*repo
	live := uint64(0)
	for _, r := range related(repos) {
		if live >= target || live+r.own > most || len(pack) == maxRepos {
			p.pack(pack, reasons)
			pack, live = nil, 0
		}
		pack, live = append(pack, r), live+r.own
	}
	p.pack(pack, reasons)
}

// pack plans one shard of these repos.
func (p *planner) pack(repos []*repo, reasons map[*repo]string) {
	if len(repos) == 0 {
		return
	}
	reason := ""
	var inputs []*catalogv1.CompactionInput
	for _, r := range repos {
		if reason == "" || reasons[r] == becauseDeleted {
			reason = reasons[r]
		}
		inputs = append(inputs, input(r, r.Record.GetShards()))
	}
	p.add(cmp.Or(reason, becauseSmall), inputs, repos...)
}

// cold plans to compress large shards harder that were never compacted.
func (p *planner) cold() {
	for _, r := range p.repos {
		if r.busy || r.own < small || !p.settled(r, cold) {
			continue
		}
		for _, ref := range r.Record.GetShards() {
			if !ref.GetCompacted() && !ref.GetDelta() && ref.GetSizeBytes() <= most {
				p.add(becauseCold, []*catalogv1.CompactionInput{input(r, []*catalogv1.ShardRef{ref})}, r)
				break // the others are planned from the next root
			}
		}
	}
}
