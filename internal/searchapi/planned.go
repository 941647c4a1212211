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
	Repos  ShardRepos
	// Names is the most bytes that the names of these repos take in a message.
	Names int
	// Overlays are the changes of repos since the shard was built, ascending by repo.
	Overlays []Overlay
	// Place is where the layout that planned it has the shard. It is in no message.
	Place uint32
	// planned is nil before Prepare.
	planned *searchv1.PlannedShard
}

// Overlay is how a repo has changed since a shard of it was built, as plans carry it.
type Overlay struct {
	// Repo is the number of the repo in the shard.
	Repo uint32
	// Hidden are the replaced documents, as an encoded docstore.Set; empty: none.
	Hidden []byte
	// Branches are the repo's present branches. Places has for each the place, from 1, of
	// the shard's branch that has its documents, or 0. Empty: the branches of the shard.
	Branches []string
	Places   []uint32
}

// OverlayOf is the overlay that a root has for one of its shards, if any.
func OverlayOf(root *catalogv1.Root, ref *catalogv1.ShardRef) (o Overlay, some bool) {
	if len(ref.GetHidden())+len(ref.GetBranches()) == 0 {
		return Overlay{}, false
	}
	o.Repo, o.Hidden = ref.GetRepoNumber(), ref.GetHidden()
	if len(ref.GetBranches()) > 0 {
		o.Places = ref.GetBranches()
		for _, b := range root.GetBranches() {
			o.Branches = append(o.Branches, b.GetName())
		}
	}
	return o, len(o.Hidden)+len(o.Branches) > 0
}

// errBranches is the error of a plan with an overlay that cannot be applied.
var errBranches = errors.New("the plan needs one place for each branch of an overlay")

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
	p := &searchv1.PlannedShard{Digest: s.Digest[:]}
	s.Repos.plan(p)
	for _, o := range s.Overlays {
		if len(o.Hidden) > 0 {
			p.Hidden = append(p.Hidden, &searchv1.HiddenDocuments{Repo: o.Repo, Documents: o.Hidden})
		}
		if len(o.Branches) > 0 {
			p.Branches = append(p.Branches, &searchv1.ServedBranches{Repo: o.Repo, Names: o.Branches, Places: o.Places})
		}
	}
	return p
}

// NameSize is the most bytes that the name of a repo takes in a message.
func NameSize(name string) int { return inField(len(name)) }

// PlannedSize is the most bytes that the shard takes in the plan of a query with that
// many type:repo. Each of them may list the names of the shard's repos.
func (s *Shard) PlannedSize(typeRepos int) int {
	size := inField(len(s.Digest)) + inField(s.Repos.Bytes()) + s.Names*typeRepos + framing
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
func ParsePlanned(p *searchv1.PlannedShard) (s Shard, err error) {
	if s.Digest, err = ParseDigest(p.Digest); err != nil {
		return Shard{}, err
	}
	if s.Repos, err = parseRepos(p); err != nil {
		return Shard{}, err
	}
	for _, h := range p.Hidden {
		s.Overlays = append(s.Overlays, Overlay{Repo: h.Repo, Hidden: h.Documents})
	}
	for _, b := range p.Branches {
		s.Overlays = append(s.Overlays, Overlay{Repo: b.Repo, Branches: b.Names, Places: b.Places})
	}
	return s, nil
}

// ShardOverlays decodes the overlays of the shard's repos, by the numbers of these.
func (s *Shard) ShardOverlays() (map[int]search.Overlay, error) {
	if len(s.Overlays) == 0 {
		return nil, nil
	}
	overlays := make(map[int]search.Overlay, len(s.Overlays))
	for _, o := range s.Overlays {
		of, err := o.decode()
		if err != nil {
			return nil, fmt.Errorf("what has become of repo %d of the shard: %w", o.Repo, err)
		}
		// Parsed plans have an overlay for the documents of a repo and one for its branches.
		if before, some := overlays[int(o.Repo)]; some {
			of = search.Overlay{Hidden: before.Hidden, Branches: of.Branches}
		}
		overlays[int(o.Repo)] = of
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
