package searchwire

import (
	"errors"
	"fmt"

	"github.com/trawl-search/trawl/index/docset"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// errHidden is the error of a plan that hides documents of no repo.
var errHidden = errors.New("documents of a repo that is not planned are hidden")

// Planned is how a plan names the shard.
func (s *Shard) Planned() *searchv1.PlannedShard {
	p := &searchv1.PlannedShard{Digest: s.Digest[:], Repos: s.Repos}
	if len(s.Hidden) == 0 {
		return p
	}
	for i, name := range s.Repos {
		if documents := s.Hidden[name]; len(documents) > 0 {
			p.Hidden = append(p.Hidden, &searchv1.HiddenDocuments{Repo: uint32(i), Documents: documents})
		}
	}
	return p
}

// ParsePlanned is the reverse of Planned.
func ParsePlanned(p *searchv1.PlannedShard) (Shard, error) {
	d, err := ParseDigest(p.Digest)
	if err != nil {
		return Shard{}, err
	}
	s := Shard{Digest: d, Repos: p.Repos}
	for _, h := range p.Hidden {
		if int(h.Repo) >= len(p.Repos) {
			return Shard{}, errHidden
		}
		if s.Hidden == nil {
			s.Hidden = make(map[string][]byte, len(p.Hidden))
		}
		s.Hidden[p.Repos[h.Repo]] = h.Documents
	}
	return s, nil
}

// HiddenSets decodes what is hidden in the shard, by repo.
func (s *Shard) HiddenSets() (map[string]docset.Set, error) {
	if len(s.Hidden) == 0 {
		return nil, nil
	}
	sets := make(map[string]docset.Set, len(s.Hidden))
	for name, code := range s.Hidden {
		set, err := docset.Parse(code)
		if err != nil {
			return nil, fmt.Errorf("hidden documents of %s: %w", name, err)
		}
		sets[name] = set
	}
	return sets, nil
}
