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
		if repo >= docs.Repos() || overlay.Hidden.Len() == 0 && overlay.Branches == nil {
			continue
		}
		if err := v.addOverlay(repo, overlay); err != nil {
			return err
		}
	}
	return nil
}

// addOverlay records a repo's hidden documents and its branches.
func (v *repoView) addOverlay(repo int, overlay Overlay) error {
	if v.replaced == nil {
		v.replaced, v.branches = make(map[int]replaced), make(map[int][]Branch)
	}
	if overlay.Branches != nil {
		v.branches[repo] = overlay.Branches
	}
	if overlay.Hidden.Len() == 0 {
		return nil
	}
	first, _, err := v.docs.RepoDocs(repo)
	v.replaced[repo] = replaced{first, overlay.Hidden}
	return err
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
	return n, n.findDocs()
}

// decideRepos sets in for the repos that match an atom.
func (s *search) decideRepos(q query.Q, in []bool) error {
	if set, ok := q.(*query.RepoSet); ok && len(set.Names) < len(in) {
		return s.findRepos(set, in)
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

// findRepos looks up a few names among many repos.
func (s *search) findRepos(set *query.RepoSet, in []bool) error {
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

func (n *repoNode) findDocs() error {
	for i, in := range n.in {
		if !in {
			continue
		}
		first, docs, err := n.s.docs.RepoDocs(i)
		if err != nil {
			return err
		}
		if docs > 0 {
			n.docs = n.docs.add(first, first+docs)
		}
	}
	return nil
}

// plan enumerates the blobs of the repos' documents.
func (n *repoNode) plan() (plan, error) {
	blobs, err := n.s.blobsOf(n.docs)
	return ready(&blobRuns{rest: blobs}, blobs.count()), err
}
