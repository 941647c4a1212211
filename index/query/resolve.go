package query

import "fmt"

// ResolveRepos replaces each Type of KindRepo, the innermost first, by the
// RepoSet of the names that list returns for its child. It calls list once for
// each. An error of list ends the resolution.
func ResolveRepos(q Q, list func(Q) (names []string, err error)) (Q, error) {
	var failed error
	resolved := Map(q, func(n Q) Q {
		t, ok := n.(*Type)
		if !ok || t.Kind != KindRepo || failed != nil {
			return n
		}
		names, err := list(t.Child)
		if err != nil {
			failed = fmt.Errorf("listing the repos for %s: %w", t, err)
		}
		return NewRepoSet(names...)
	})
	if failed != nil {
		return nil, failed
	}
	return Simplify(resolved), nil
}

// NewRepoSet makes the set of the named repos.
func NewRepoSet(names ...string) *RepoSet {
	set := make(map[string]bool, len(names))
	for _, n := range names {
		set[n] = true
	}
	return &RepoSet{Names: set}
}
