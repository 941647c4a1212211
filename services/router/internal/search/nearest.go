package search

import (
	"cmp"
	"context"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// mostLike bounds the names that are compared with one that does not exist.
const mostLike = 5000

// nearest are the names of repos that differ least from one that does not exist.
func (l *Layout) nearest(name string) []string { return searchapi.Nearest(name, l.like(name)) }

// like are all names if they are not too many. Else they are the first in the same folder, and the first with a third of the last
// part of the name; the rarest third counts most.
func (l *Layout) like(name string) []string {
	if l.repos <= mostLike {
		return slices.Collect(l.names())
	}
	like := make(map[string]bool)
	folder := path.Dir(name) + "/"
	for name := range l.namesAfter(folder) {
		if !strings.HasPrefix(name, folder) || len(like) == mostLike/2 {
			break
		}
		like[name] = true
	}
	var having [][]string
	for _, third := range searchapi.Thirds(strings.ToLower(path.Base(name))) {
		var names []string
		for name := range l.namesWith(third, true) {
			if names = append(names, name); len(names) == mostLike {
				break
			}
		}
		having = append(having, names)
	}
	return withRarest(like, having)
}

// withRarest adds names to those that are like another one until they are mostLike. Having are the names with each third of it, of which
// the rarest comes first.
func withRarest(like map[string]bool, having [][]string) []string {
	slices.SortFunc(having, func(a, b []string) int { return cmp.Compare(len(a), len(b)) })
	for _, names := range having {
		for _, name := range names[:min(len(names), mostLike-len(like))] {
			like[name] = true
		}
	}
	return slices.Sorted(maps.Keys(like))
}

// branchesLike are the names of branches, and their parts that end with a slash, if no branch matches a pattern: all names, or else
// the first with a third of the pattern, as in like. None is false if a branch matches, or if ctx ends before all were looked at.
func (l *Layout) branchesLike(ctx context.Context, pattern string) (like []string, none bool) {
	thirds := searchapi.Thirds(strings.ToLower(path.Base(pattern)))
	all, having := make(map[string]bool), make([]map[string]bool, len(thirds))
	for i := range having {
		having[i] = make(map[string]bool)
	}
	add := func(name string) {
		if len(all) <= mostLike {
			all[name] = true
		}
		lower := strings.ToLower(name)
		for i, third := range thirds {
			if len(having[i]) < mostLike && strings.Contains(lower, third) {
				having[i][name] = true
			}
		}
	}
	b := &query.Branch{Pattern: pattern}
	var names []string
	for _, c := range l.chunks {
		if ctx.Err() != nil {
			return nil, false
		}
		for r := range c.all() {
			names = r.Branches(names[:0])
			for i, name := range names {
				if b.Matches(name, i) {
					return nil, false
				}
				add(name)
				for at := range name {
					if name[at] == '/' {
						add(name[:at+1]) // a part of names is a value, too
					}
				}
			}
		}
	}
	if len(all) <= mostLike {
		return slices.Sorted(maps.Keys(all)), true
	}
	some := make([][]string, len(having))
	for i, names := range having {
		some[i] = slices.Sorted(maps.Keys(names))
	}
	return withRarest(make(map[string]bool), some), true
}
