package searchapi

import (
	"errors"
	"fmt"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/search"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Shard names a shard and the repos in it that the caller may see.
type Shard struct {
	Digest Digest
	// Repos are in ascending order, which is the shard's own.
	Repos []string
	// Overlays are the changes of repos since the shard was built, by repo.
	Overlays map[string]Overlay
	// planned is nil before Prepare.
	planned *searchv1.PlannedShard
}

// Overlay is how a repo has changed since a shard of it was built, as plans carry it.
type Overlay struct {
	// Hidden are the replaced documents, as an encoded docstore.Set; empty: none.
	Hidden []byte
	// Branches are the repo's present branches. Places has for each the place, from 1, of
	// the shard's branch that has its documents, or 0. Empty: the branches of the shard.
	Branches []string
	Places   []uint32
}

// OverlayOf is the overlay that a root has for one of its shards, if any.
func OverlayOf(root *catalogv1.Root, ref *catalogv1.ShardRef) (o Overlay, some bool) {
	o.Hidden = ref.GetHidden()
	if len(ref.GetBranches()) > 0 {
		o.Places = ref.GetBranches()
		for _, b := range root.GetBranches() {
			o.Branches = append(o.Branches, b.GetName())
		}
	}
	return o, len(o.Hidden)+len(o.Branches) > 0
}

// Errors of a malformed plan.
var (
	errOverlay  = errors.New("the plan has an overlay of a repo that is not planned")
	errBranches = errors.New("the plan needs one place for each branch of an overlay")
)

// Prepare makes the part that is the same in the plans of all queries. Afterwards the
// shard and the message that Planned returns must not be changed.
func (s *Shard) Prepare() { s.planned = s.plan() }

// Planned is the shard's entry in a plan.
func (s *Shard) Planned() *searchv1.PlannedShard {
	if s.planned != nil {
		return s.planned
	}
	return s.plan()
}

func (s *Shard) plan() *searchv1.PlannedShard {
	p := &searchv1.PlannedShard{Digest: s.Digest[:], Repos: s.Repos}
	if len(s.Overlays) == 0 {
		return p
	}
	for i, name := range s.Repos {
		o := s.Overlays[name]
		if len(o.Hidden) > 0 {
			p.Hidden = append(p.Hidden, &searchv1.HiddenDocuments{Repo: uint32(i), Documents: o.Hidden})
		}
		if len(o.Branches) > 0 {
			p.Branches = append(p.Branches, &searchv1.ServedBranches{Repo: uint32(i), Names: o.Branches, Places: o.Places})
		}
	}
	return p
}

// PlannedSize is the most bytes that the shard takes in the plan of a query with that
// many type:repo. Each of them may list the shard's repos once more.
func (s *Shard) PlannedSize(typeRepos int) int {
	names := 0
	for _, name := range s.Repos {
		names += inField(len(name))
	}
	size := inField(len(s.Digest)) + names*(1+typeRepos) + framing
	for _, o := range s.Overlays {
		size += 2*(framing+numberField) + inField(len(o.Hidden)) + framing + numberBytes*len(o.Places)
		for _, name := range o.Branches {
			size += inField(len(name))
		}
	}
	return size
}

// The most bytes that a number of 32 bits takes, alone and as a field.
const (
	numberBytes = 5
	numberField = 1 + numberBytes
)

// ParsePlanned is the reverse of Planned.
func ParsePlanned(p *searchv1.PlannedShard) (Shard, error) {
	d, err := ParseDigest(p.Digest)
	if err != nil {
		return Shard{}, err
	}
	s := Shard{Digest: d, Repos: p.Repos}
	if len(p.Hidden)+len(p.Branches) > 0 {
		s.Overlays = make(map[string]Overlay, len(p.Hidden)+len(p.Branches))
	}
	for _, h := range p.Hidden {
		if int(h.Repo) >= len(p.Repos) {
			return Shard{}, errOverlay
		}
		s.Overlays[p.Repos[h.Repo]] = Overlay{Hidden: h.Documents}
	}
	for _, b := range p.Branches {
		if int(b.Repo) >= len(p.Repos) {
			return Shard{}, errOverlay
		}
		o := s.Overlays[p.Repos[b.Repo]]
		o.Branches, o.Places = b.Names, b.Places
		s.Overlays[p.Repos[b.Repo]] = o
	}
	return s, nil
}

// ShardOverlays decodes the overlays of the shard's repos, by name.
func (s *Shard) ShardOverlays() (map[string]search.Overlay, error) {
	if len(s.Overlays) == 0 {
		return nil, nil
	}
	overlays := make(map[string]search.Overlay, len(s.Overlays))
	for name, o := range s.Overlays {
		decoded, err := o.decode()
		if err != nil {
			return nil, fmt.Errorf("what has become of %s: %w", name, err)
		}
		overlays[name] = decoded
	}
	return overlays, nil
}

func (o *Overlay) decode() (decoded search.Overlay, err error) {
	if len(o.Branches) != len(o.Places) {
		return decoded, errBranches
	}
	for i, name := range o.Branches {
		decoded.Branches = append(decoded.Branches, search.Branch{Name: name, Place: int(o.Places[i]) - 1})
	}
	decoded.Hidden, err = docstore.ParseSet(o.Hidden)
	return decoded, err
}
