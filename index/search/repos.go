package search

import (
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/query"
)

// repoView is what a search knows of the repos of its shard. It is safe for concurrent use.
type repoView struct {
	docs    *docstore.Docs
	allowed func(repo int) bool // nil allows all
	hidden  []atomic.Bool       // by repo: hidden while the search runs
	// replaced are the documents that their repo no longer has, by repo. It
	// does not change while a search runs.
	replaced map[int]replaced
	// branches are the branches of a repo now, if they differ from those of the
	// shard.
	branches map[int][]Branch
}

// replaced are documents of a repo, numbered from its first one.
type replaced struct {
	first uint32
	docs  docstore.Set
}

// reset prepares the view for a search. It reuses the memory of the last one.
func (v *repoView) reset(docs *docstore.Docs, opts *Options) error {
	v.docs, v.allowed = docs, opts.Repos
	v.hidden = slices.Grow(v.hidden[:0], docs.Repos())[:docs.Repos()]
	clear(v.hidden)
	clear(v.replaced)
	clear(v.branches)
	for repo, overlay := range opts.Overlays {
		if repo >= docs.Repos() {
			continue
		}
		if v.replaced == nil {
			v.replaced, v.branches = make(map[int]replaced), make(map[int][]Branch)
		}
		if overlay.Branches != nil {
			v.branches[repo] = overlay.Branches
		}
		if overlay.Hidden.Len() > 0 {
			first, _, err := docs.RepoDocs(repo)
			if err != nil {
				return err
			}
			v.replaced[repo] = replaced{first, overlay.Hidden}
		}
	}
	return nil
}

// shows reports whether the document of the repo may be read.
func (v *repoView) shows(doc uint32, repo int) bool {
	if len(v.replaced) > 0 {
		if r, some := v.replaced[repo]; some && r.docs.Has(doc-r.first) {
			return false
		}
	}
	return v.live(repo)
}

// live reports whether the repo may be read.
func (v *repoView) live(repo int) bool {
	return (v.allowed == nil || v.allowed(repo)) && !v.hidden[repo].Load()
}

// hide excludes the documents of a repo from now on.
func (v *repoView) hide(repo int) { v.hidden[repo].Store(true) }

// repo returns the record of a repo. It keeps the last one.
func (s *search) repo(i int) (*docstore.Repo, error) {
	if s.record == nil || s.recordOf != i {
		r, err := s.docs.Repo(i)
		if err != nil {
			return nil, err
		}
		s.record, s.recordOf = &r, i
	}
	return s.record, nil
}

// repoAtom decides an atom about repos for each repo of the shard. The node is
// a constant if the result is the same for all live ones.
func (s *search) repoAtom(q query.Q) (node, error) {
	n := &repoNode{s: s, in: make([]bool, s.docs.Repos())}
	if err := s.decideRepos(q, n.in); err != nil {
		return nil, err
	}
	some, all := slices.Contains(n.in, true), !slices.Contains(n.in, false)
	if !some || all {
		return constNode(all), nil
	}
	var yes, no bool
	for i, in := range n.in {
		if in && yes || !in && no {
			continue
		}
		live := s.repos.live(i)
		yes, no = yes || live && in, no || live && !in
	}
	if !yes || !no {
		return constNode(yes), nil
	}
	for i, in := range n.in {
		if !in {
			continue
		}
		first, docs, err := s.docs.RepoDocs(i)
		if err != nil {
			return nil, err
		}
		if docs > 0 {
			n.docs = n.docs.add(first, first+docs)
		}
	}
	return n, nil
}

// decideRepos sets in for the repos that match an atom.
func (s *search) decideRepos(q query.Q, in []bool) error {
	if set, ok := q.(*query.RepoSet); ok && len(set.Names) < len(in) { // looks up a few names among many repos
		for name, wanted := range set.Names {
			i, ok, err := s.docs.FindRepo(name)
			if err != nil {
				return err
			}
			if ok {
				in[i] = wanted
			}
		}
		return nil
	}
	for i := range in {
		if err := s.tick(); err != nil {
			return err
		}
		var err error
		if in[i], err = s.decideRepo(q, i); err != nil {
			return err
		}
	}
	return nil
}

func (s *search) decideRepo(q query.Q, i int) (bool, error) {
	switch q := q.(type) {
	case *query.Repo:
		name, err := s.docs.RepoName(i)
		return err == nil && s.query.repos[q].MatchString(name), err
	case *query.RepoSet:
		name, err := s.docs.RepoName(i)
		return q.Names[name], err
	}
	r, err := s.repo(i)
	if err != nil {
		return false, err
	}
	switch q := q.(type) {
	case *query.Meta:
		v, ok := r.Meta[q.Key]
		return ok && s.query.repos[q].MatchString(v), nil
	case *query.RepoFact:
		return fact(r, q.Fact) == q.Value, nil
	}
	return false, fmt.Errorf("query node %T is not about repos", q)
}

func fact(r *docstore.Repo, f query.Fact) bool {
	switch f {
	case query.Archived:
		return r.Archived
	case query.Fork:
		return r.Fork
	}
	return r.Public
}

// repoNode matches documents of the repos set in it.
type repoNode struct {
	s    *search
	in   []bool
	docs runs // documents of those repos
}

func (n *repoNode) matches(d *document) (bool, error)    { return n.in[d.repo], nil }
func (n *repoNode) collect(*document, *gathered) error   { return nil }
func (n *repoNode) cost() uint64                         { return costConst }
func (n *repoNode) documents(uint64) (runs, bool, error) { return n.docs, true, nil }

// plan enumerates the blobs of the repos' documents.
func (n *repoNode) plan() (plan, error) {
	blobs, err := n.s.blobsOf(n.docs)
	return ready(&blobRuns{rest: blobs}, blobs.count()), err
}

// languageNode matches documents in the language with a number in the shard.
type languageNode struct {
	docs *docstore.Docs
	id   uint16
}

func (n *languageNode) plan() (plan, error) { return plan{}, nil }

func (n *languageNode) matches(d *document) (bool, error) {
	id, err := n.docs.LanguageID(d.id)
	return id == n.id, err
}

func (n *languageNode) collect(*document, *gathered) error { return nil }
func (n *languageNode) cost() uint64                       { return costColumn }

func (n *languageNode) documents(budget uint64) (runs, bool, error) {
	if uint64(n.docs.Len()/itemsPerLook) > budget {
		return nil, false, nil
	}
	found, err := n.docs.AppendLanguageRuns(nil, n.id)
	return found, err == nil, err
}

// branchNode matches documents on a branch that the query names.
type branchNode struct {
	q *query.Branch
	// wanted has, for each branch of repo, whether it is named.
	wanted []bool
	repo   int
	valid  bool
}

func (n *branchNode) documents(uint64) (runs, bool, error) { return nil, false, nil }

func (n *branchNode) plan() (plan, error)                { return plan{}, nil }
func (n *branchNode) collect(*document, *gathered) error { return nil }
func (n *branchNode) cost() uint64                       { return costColumn }

func (n *branchNode) matches(d *document) (bool, error) {
	if !n.valid || n.repo != d.repo {
		view, err := d.s.branchesNow(d.repo)
		if err != nil {
			return false, err
		}
		n.wanted = n.wanted[:0]
		for i, b := range view.now {
			n.wanted = append(n.wanted, n.q.Matches(b.Name, i))
		}
		n.repo, n.valid = d.repo, true
	}
	branches, err := d.loadBranches()
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(branches, func(b uint32) bool { return int(b) < len(n.wanted) && n.wanted[b] }), nil
}

// Overlay describes what has become of a repo since a shard of it was built. The zero value means
// that nothing has changed.
type Overlay struct {
	// Hidden documents are neither read nor counted, since the repo no longer has them. Their
	// numbers count from the repo's first document in the shard.
	Hidden docstore.Set
	// Branches are the repo's branches now, in their order; nil means those of the shard.
	Branches []Branch
}

// Branch is a branch of the repo now. It has the documents of one of the shard's branches: of
// itself, of one that it was renamed from, or of one that it differs from only in hidden documents.
type Branch struct {
	Name string
	// Place of the shard's branch among the repo's branches, from 0; another value means that it
	// has no document in the shard.
	Place int
}

// branchView maps the branches of a repo in a shard to its branches now.
type branchView struct {
	now []docstore.Branch
	// of has, for each branch of the shard, the ascending indexes of the branches now that have its
	// documents; nil if nothing has changed.
	of [][]uint32
}

// branchesNow returns the view of a repo. It keeps the last one.
func (s *search) branchesNow(repo int) (*branchView, error) {
	if s.named != nil && s.namedOf == repo {
		return s.named, nil
	}
	record, err := s.repo(repo)
	if err != nil {
		return nil, err
	}
	view := &branchView{now: record.Branches}
	if overlay := s.repos.branches[repo]; overlay != nil {
		built := record.Branches
		view = &branchView{of: make([][]uint32, len(built))}
		for i, b := range overlay {
			now := docstore.Branch{Name: b.Name}
			if b.Place >= 0 && b.Place < len(built) {
				now.Commit = built[b.Place].Commit
				view.of[b.Place] = append(view.of[b.Place], uint32(i))
			}
			view.now = append(view.now, now)
		}
	}
	s.named, s.namedOf = view, repo
	return view, nil
}

// at appends the branches that now have a document, as ascending indexes into now. built are the
// document's branches in the shard. Each branch now has one place at most.
func (v *branchView) at(dst, built []uint32) []uint32 {
	if v.of == nil {
		return append(dst, built...)
	}
	begin := len(dst)
	for _, b := range built {
		dst = append(dst, v.of[b]...)
	}
	slices.Sort(dst[begin:])
	return dst
}
