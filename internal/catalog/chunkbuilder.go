package catalog

import (
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strings"
	"unique"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// chunkBuilder makes chunks, one after the other.
type chunkBuilder struct {
	full        []*Chunk
	n           int
	names, code []byte
	every       []place
	words       numbered[string]
	shards      numbered[Shard]
	most        uint32
	// record is being written, and languages those of its next shard.
	record, languages []byte
	// from is the chunk that records are copied from. For each of its words and shards, copied has one more than its number
	// here, 0 as long as none was copied.
	from   *Chunk
	copied struct{ words, shards []uint64 }
}

// numbered are values in the order of their first use.
type numbered[T comparable] struct {
	list []unique.Handle[T]
	of   map[unique.Handle[T]]uint64
}

func (n *numbered[T]) number(h unique.Handle[T]) uint64 {
	i, known := n.of[h]
	if !known {
		if n.of == nil {
			n.of = make(map[unique.Handle[T]]uint64)
		}
		i = uint64(len(n.list))
		n.list, n.of[h] = append(n.list, h), i
	}
	return i
}

// take returns the list and starts over.
func (n *numbered[T]) take() []unique.Handle[T] {
	list := slices.Clone(n.list)
	n.list = n.list[:0]
	clear(n.of)
	return list
}

// chunk returns a chunk of the roots since the last one.
func (b *chunkBuilder) chunk() *Chunk {
	text := string(append(b.names, b.code...)) // in one piece, which wastes less
	c := &Chunk{n: b.n, names: text[:len(b.names)], code: reader(text[len(b.names):]), every: slices.Clone(b.every), words: b.words.take(), shards: b.shards.take(), most: b.most}
	b.n, b.names, b.code, b.every, b.most, b.from = 0, b.names[:0], b.code[:0], b.every[:0], 0, nil
	return c
}

// fill adds a root to the chunks that are made.
func (b *chunkBuilder) fill(root *catalogv1.Root) {
	if b.put(root); b.n == mostInChunk || len(b.names)+len(b.code) >= fullChunk {
		b.full = append(b.full, b.chunk())
	}
}

// finish returns the chunks of all roots that were filled in, and starts over.
func (b *chunkBuilder) finish() (chunks []*Chunk) {
	if chunks = b.full; b.n > 0 {
		chunks = append(chunks, b.chunk())
	}
	*b = chunkBuilder{}
	return chunks
}

// add adds the record that was written.
func (b *chunkBuilder) add(repo string) {
	if b.n%placeEvery == 0 {
		b.every = append(b.every, place{uint32(len(b.names)), uint32(len(b.code))})
	}
	b.n++
	b.names = append(append(b.names, repo...), '\n')
	b.code = binary.AppendUvarint(b.code, uint64(len(repo)))
	b.code = append(binary.AppendUvarint(b.code, uint64(len(b.record))), b.record...)
	b.record = b.record[:0]
}

// put adds a root.
func (b *chunkBuilder) put(root *catalogv1.Root) {
	shards := oncePerShard(root.Shards)
	b.begin(len(shards), root.Id)
	for _, ref := range shards {
		shard := Shard{Digest: string(ref.Digest), Key: ref.Key, SizeBytes: ref.SizeBytes, Repos: ref.Repos}
		var overlay []byte
		if len(ref.Hidden)+len(ref.Branches) > 0 {
			overlay = binary.AppendUvarint(nil, uint64(len(ref.Branches)))
			for _, place := range ref.Branches {
				overlay = binary.AppendUvarint(overlay, uint64(place))
			}
			overlay = append(overlay, ref.Hidden...)
		}
		for _, language := range ref.Languages {
			b.language(b.words.number(unique.Make(language)))
		}
		b.held(b.shards.number(unique.Make(shard)), ref.RepoNumber, reader(overlay))
	}
	b.number(uint64(len(root.Branches)))
	for _, branch := range root.Branches {
		commit, isHex := []byte(branch.Commit), uint64(0)
		if raw, err := hex.DecodeString(branch.Commit); err == nil && hex.EncodeToString(raw) == branch.Commit {
			commit, isHex = raw, 1
		}
		b.branch(b.words.number(unique.Make(branch.Name)), 2*uint64(len(commit))+isHex, reader(commit))
	}
	b.number(root.Generation)
	published := int64(0)
	if root.PublishedAt != nil {
		published = max(root.PublishedAt.AsTime().UnixMilli(), 0)
	}
	b.number(uint64(published))
	if root.Url == "" {
		b.number(0)
	} else {
		b.number(1 + b.words.number(unique.Make(strings.Replace(root.Url, root.Repo, nameInURL, 1))))
	}
	b.add(root.Repo)
}

// nameInURL stands for the name of the repo in its URL. No URL has it.
const nameInURL = "\x00"

// oncePerShard are the references without those to a shard that an earlier one names.
func oncePerShard(refs []*catalogv1.ShardRef) []*catalogv1.ShardRef {
	if len(refs) < 2 {
		return refs
	}
	var once []*catalogv1.ShardRef
	seen := make(map[string]bool, len(refs))
	for _, ref := range refs {
		if !seen[string(ref.Digest)] {
			seen[string(ref.Digest)], once = true, append(once, ref)
		}
	}
	return once
}

// copy adds a record of another chunk.
func (b *chunkBuilder) copy(r Record) {
	if b.from != r.chunk {
		b.from, b.copied.words, b.copied.shards = r.chunk, make([]uint64, len(r.chunk.words)), make([]uint64, len(r.chunk.shards))
	}
	code := r.code
	shards, id := code.begin()
	b.begin(shards, id)
	for range shards {
		h := code.held(r.chunk)
		for languages := h.languages; len(languages) > 0; {
			b.language(b.word(languages.number()))
		}
		b.held(copied(&b.shards, b.copied.shards, r.chunk.shards, uint64(h.Shard)), h.Number, h.overlay)
	}
	branches := code.number()
	b.number(branches)
	for range branches {
		name, length := b.word(code.number()), code.number()
		b.branch(name, length, code.bytes(length/2))
	}
	b.number(code.number())
	b.number(code.number())
	if url := code.number(); url == 0 {
		b.number(0)
	} else {
		b.number(1 + b.word(url-1))
	}
	b.add(r.Repo)
}

// word is the number of a word of the chunk that records are copied from.
func (b *chunkBuilder) word(i uint64) uint64 {
	return copied(&b.words, b.copied.words, b.from.words, i)
}

// copied is the number of a value of the chunk that records are copied from.
func copied[T comparable](to *numbered[T], known []uint64, values []unique.Handle[T], i uint64) uint64 {
	if known[i] == 0 {
		known[i] = 1 + to.number(values[i])
	}
	return known[i] - 1
}

func (b *chunkBuilder) number(n uint64) { b.record = binary.AppendUvarint(b.record, n) }

func (b *chunkBuilder) begin(shards int, id uint32) {
	b.number(2*uint64(shards) + uint64(min(1, id)))
	if id != 0 {
		b.number(uint64(id))
	}
}

func (b *chunkBuilder) language(name uint64) { b.languages = binary.AppendUvarint(b.languages, name) }

// held writes a shard with the languages since the last one. Without an overlay that is empty.
func (b *chunkBuilder) held(shard uint64, number uint32, overlay reader) {
	b.most = max(b.most, number)
	b.number(shard)
	b.number(uint64(number))
	overlaid := uint64(min(1, len(overlay)))
	b.number(2*uint64(len(b.languages)) + overlaid)
	b.record, b.languages = append(b.record, b.languages...), b.languages[:0]
	if overlaid == 1 {
		b.number(uint64(len(overlay)))
		b.record = append(b.record, overlay...)
	}
}

func (b *chunkBuilder) branch(name, length uint64, commit reader) {
	b.number(name)
	b.number(length)
	b.record = append(b.record, commit...)
}
