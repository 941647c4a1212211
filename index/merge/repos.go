package merge

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// repo is a repo of the new shard, with the parts that have its documents.
type repo struct {
	record docstore.Repo
	parts  []*part
}

// gather finds the repos of all inputs, in the order of their names.
func gather(inputs []*input) ([]repo, error) {
	byName := map[string]*repo{}
	for _, in := range inputs {
		for i := range in.Repos {
			r := &in.Repos[i]
			p, err := newPart(in, r)
			if err != nil {
				return nil, err
			}
			have := byName[r.Record.Name]
			if have == nil {
				have = &repo{record: r.Record}
				byName[r.Record.Name] = have
			} else if !sameRecord(&have.record, &r.Record) {
				return nil, fmt.Errorf("%w: repo %q has two records", ErrInputs, r.Record.Name)
			}
			have.parts = append(have.parts, p)
		}
	}
	var repos []repo
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		repos = append(repos, *byName[name])
	}
	return repos, nil
}

func sameRecord(a, b *docstore.Repo) bool {
	return a.URL == b.URL && a.Archived == b.Archived && a.Fork == b.Fork && a.Public == b.Public &&
		a.Generation == b.Generation && a.Rank == b.Rank && slices.Equal(a.Branches, b.Branches) && maps.Equal(a.Meta, b.Meta)
}

// documents calls add with the parts, each time with the one whose current document is
// next in the order of path and object id.
func (r *repo) documents(add func(*part) error) error {
	var live []*part
	for _, p := range r.parts {
		more, err := p.advance()
		if err != nil {
			return err
		}
		if more {
			live = append(live, p)
		}
	}
	for len(live) > 0 {
		p := slices.MinFunc(live, comparePlace)
		if len(live) > 1 && slices.ContainsFunc(live, func(o *part) bool { return o != p && comparePlace(o, p) == 0 }) {
			return fmt.Errorf("%w: document %q of repo %q is in two inputs", ErrInputs, p.path, r.record.Name)
		}
		if err := add(p); err != nil {
			return err
		}
		more, err := p.advance()
		if err != nil {
			return err
		}
		if !more {
			live = slices.DeleteFunc(live, func(o *part) bool { return o == p })
		}
	}
	return nil
}

func comparePlace(a, b *part) int {
	return cmp.Or(bytes.Compare(a.path, b.path), bytes.Compare(a.oid, b.oid))
}
