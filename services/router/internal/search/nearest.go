package search

import (
	"cmp"
	"maps"
	"path"
	"slices"
	"strings"

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
	slices.SortFunc(having, func(a, b []string) int { return cmp.Compare(len(a), len(b)) })
	for _, names := range having {
		for _, name := range names[:min(len(names), mostLike-len(like))] {
			like[name] = true
		}
	}
	return slices.Sorted(maps.Keys(like))
}
