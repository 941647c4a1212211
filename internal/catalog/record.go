package catalog

import (
	"encoding/hex"
	"iter"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// Shard is what roots say of a shard, whatever repo they are of.
type Shard struct {
	// Digest is the SHA-256 of the object, or what a root has in its place.
	Digest string
	// Key of the object in the bucket.
	Key       string
	SizeBytes uint64
	// Repos is the number of repos in the shard, those included that are not served from it any more.
	Repos uint32
}

// Record is a root in a chunk, with what searches need of it. It can be used as long as its chunk.
//
// Its code is, in varints where nothing else is said:
//
//	2*number of shards + 1 if there is an id, id
//	for each shard: place in the chunk's shards, number of the repo in the shard, 2*bytes of languages + 1 if there is an overlay,
//	    places of the languages in the chunk's words; overlay: its bytes, number of branches, their places, hidden documents
//	number of branches, each: place of the name in the chunk's words, 2*bytes of the commit + 1 if it is hexadecimal, commit in bytes
//	generation, time of publication in milliseconds
//	0 for no URL, or 1 + its place in the chunk's words, with nameInURL in place of the name of the repo
//
// Words and shards that a chunk has are kept once in a process (package unique).
type Record struct {
	// Repo is the name.
	Repo string

	chunk *Chunk
	code  reader
}

// Held is a repo in a shard.
type Held struct {
	// Shard is a place in the shards of the chunk.
	Shard int
	// Number is that of the repo in the shard.
	Number uint32
	// Overlaid is true if documents were hidden or branches renamed since.
	Overlaid bool

	chunk *Chunk
	// languages and overlay are parts of the record's code.
	languages, overlay reader
}

// Speaks reports whether the repo has documents in a language in the shard. It is not known if no language was recorded.
func (h Held) Speaks(language string) (speaks, known bool) {
	known = len(h.languages) > 0
	for name := range h.Languages() {
		if name == language {
			return true, known
		}
	}
	return false, known
}

// Languages are those that were recorded.
func (h Held) Languages() iter.Seq[string] {
	return func(yield func(string) bool) {
		for r := h.languages; len(r) > 0; {
			if !yield(h.chunk.words[r.number()].Value()) {
				return
			}
		}
	}
}

// ID is the number that the operator gave the repo, 0 if there is none.
func (r Record) ID() uint32 {
	code := r.code
	_, id := code.begin()
	return id
}

// Shards appends the shards of the repo.
func (r Record) Shards(to []Held) []Held {
	code := r.code
	shards, _ := code.begin()
	for range shards {
		to = append(to, code.held(r.chunk))
	}
	return to
}

// SameShards reports whether a record of the same repo has the same shards, with the same overlays.
func (r Record) SameShards(as Record) bool {
	a, b := r.code, as.code
	shards, _ := a.begin()
	if others, _ := b.begin(); others != shards {
		return false
	}
	overlaid := false
	for range shards {
		h, other := a.held(r.chunk), b.held(as.chunk)
		if r.chunk.shards[h.Shard] != as.chunk.shards[other.Shard] || h.Number != other.Number || h.overlay != other.overlay {
			return false
		}
		overlaid = overlaid || h.Overlaid
	}
	return !overlaid || slices.Equal(r.Branches(nil), as.Branches(nil)) // overlays count branches
}

// Branches appends the names of the repo's branches.
func (r Record) Branches(to []string) []string {
	code := r.code
	shards, _ := code.begin()
	for range shards {
		code.held(r.chunk)
	}
	for range code.number() {
		to = append(to, r.chunk.words[code.number()].Value())
		code.bytes(code.number() / 2)
	}
	return to
}

// Commit is the commit at which a branch is served, if the root names it.
func (r Record) Commit(branch string) (commit string, found bool) {
	code := r.code
	shards, _ := code.begin()
	for range shards {
		code.held(r.chunk)
	}
	for range code.number() {
		name := r.chunk.words[code.number()].Value()
		if name == branch {
			return code.commit(), true
		}
		code.bytes(code.number() / 2)
	}
	return "", false
}

// Root is a new copy of the root without what searches do not need: fences, manifests, what indexing depends on. The time
// of its publication is cut to milliseconds.
func (r Record) Root() *catalogv1.Root {
	code := r.code
	shards, id := code.begin()
	root := &catalogv1.Root{Repo: r.Repo, Id: id}
	for range shards {
		h := code.held(r.chunk)
		shard := r.chunk.shards[h.Shard].Value()
		ref := &catalogv1.ShardRef{Digest: []byte(shard.Digest), Key: shard.Key, SizeBytes: shard.SizeBytes, Repos: shard.Repos, RepoNumber: h.Number}
		for language := range h.Languages() {
			ref.Languages = append(ref.Languages, language)
		}
		if overlay := h.overlay; h.Overlaid {
			for range overlay.number() {
				ref.Branches = append(ref.Branches, uint32(overlay.number()))
			}
			if len(overlay) > 0 {
				ref.Hidden = []byte(overlay)
			}
		}
		root.Shards = append(root.Shards, ref)
	}
	for range code.number() {
		root.Branches = append(root.Branches, &catalogv1.Branch{Name: r.chunk.words[code.number()].Value(), Commit: code.commit()})
	}
	root.Generation = code.number()
	if published := code.number(); published > 0 {
		root.PublishedAt = timestamppb.New(time.UnixMilli(int64(published)))
	}
	if url := code.number(); url > 0 {
		root.Url = strings.Replace(r.chunk.words[url-1].Value(), nameInURL, r.Repo, 1)
	}
	return root
}

// reader reads the code of a record, which only this package writes.
type reader string

func (r *reader) number() uint64 {
	if n := (*r)[0]; n < 0x80 {
		*r = (*r)[1:]
		return uint64(n)
	}
	n, shift := uint64(0), 0
	for i := 0; ; i++ {
		b := (*r)[i]
		if n |= uint64(b&0x7f) << shift; b < 0x80 {
			*r = (*r)[i+1:]
			return n
		}
		shift += 7
	}
}

func (r *reader) bytes(n uint64) reader {
	b := (*r)[:n]
	*r = (*r)[n:]
	return b
}

func (r *reader) commit() string {
	length := r.number()
	commit := string(r.bytes(length / 2))
	if length%2 == 1 {
		return hex.EncodeToString([]byte(commit))
	}
	return commit
}

func (r *reader) begin() (shards int, id uint32) {
	n := r.number()
	if n%2 == 1 {
		id = uint32(r.number())
	}
	return int(n / 2), id
}

// held reads a shard.
func (r *reader) held(c *Chunk) (h Held) {
	h.chunk = c
	h.Shard, h.Number = int(r.number()), uint32(r.number())
	languages := r.number()
	h.languages = r.bytes(languages / 2)
	if h.Overlaid = languages%2 == 1; h.Overlaid {
		h.overlay = r.bytes(r.number())
	}
	return h
}
