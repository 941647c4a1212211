package catalog

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"unique"
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
	// root, overlay, commit, hex and url are memory for one root after the other.
	root                      rootFields
	overlay, commit, hex, url []byte
	// from is the chunk that records are copied from. For each of its words and shards, copied has one more than its number
	// here, 0 as long as none was copied.
	from   *Chunk
	copied struct{ words, shards []uint64 }
}

// numbered are values in the order of their first use.
type numbered[T comparable] struct {
	list []unique.Handle[T]
	of   map[T]uint64
}

func (n *numbered[T]) number(value T) uint64 {
	i, known := n.of[value]
	if !known {
		if n.of == nil {
			n.of = make(map[T]uint64)
		}
		h := unique.Make(value)
		i = uint64(len(n.list))
		n.list, n.of[h.Value()] = append(n.list, h), i
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
func (b *chunkBuilder) fill(root *rootFields) {
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

// add adds the record that was written, of the repo whose name was just appended.
func (b *chunkBuilder) add(name int) {
	if b.n%placeEvery == 0 {
		b.every = append(b.every, place{uint32(len(b.names) - name), uint32(len(b.code))})
	}
	b.n++
	b.names = append(b.names, '\n')
	b.code = binary.AppendUvarint(b.code, uint64(name))
	b.code = append(binary.AppendUvarint(b.code, uint64(len(b.record))), b.record...)
	b.record = b.record[:0]
}

// put adds a root.
func (b *chunkBuilder) put(root *rootFields) {
	shards := oncePerShard(root.shards)
	b.begin(len(shards), root.id)
	for i := range shards {
		s := &shards[i]
		b.overlay = b.overlay[:0]
		if places := root.places[s.places.from:s.places.to]; len(s.hidden)+len(places) > 0 {
			b.overlay = binary.AppendUvarint(b.overlay, uint64(len(places)))
			for _, place := range places {
				b.overlay = binary.AppendUvarint(b.overlay, uint64(place))
			}
			b.overlay = append(b.overlay, s.hidden...)
		}
		for _, language := range root.languages[s.languages.from:s.languages.to] {
			b.language(b.text(language))
		}
		b.held(b.shard(s), s.number, reader(b.overlay))
	}
	b.number(uint64(len(root.branches)))
	for _, branch := range root.branches {
		commit, isHex := branch.commit, uint64(0)
		raw, err := hex.AppendDecode(b.commit[:0], commit)
		b.commit, b.hex = raw, hex.AppendEncode(b.hex[:0], raw)
		if err == nil && bytes.Equal(b.hex, commit) {
			commit, isHex = raw, 1
		}
		b.branch(b.text(branch.name), 2*uint64(len(commit))+isHex, reader(commit))
	}
	b.number(root.generation)
	b.number(root.published.millis())
	if len(root.url) == 0 {
		b.number(0)
	} else {
		b.url = b.url[:0]
		before, after, named := bytes.Cut(root.url, root.repo)
		if b.url = append(b.url, before...); named {
			b.url = append(append(b.url, nameInURL...), after...)
		}
		b.number(1 + b.text(b.url))
	}
	b.names = append(b.names, root.repo...)
	b.add(len(root.repo))
}

// text is the number of a word. A chunk has few different ones, which are looked up without a copy; so are its shards.
func (b *chunkBuilder) text(word []byte) uint64 {
	if i, known := b.words.of[string(word)]; known {
		return i
	}
	return b.words.number(string(word))
}

func (b *chunkBuilder) shard(s *shardFields) uint64 {
	if i, known := b.shards.of[Shard{Digest: string(s.digest), Key: string(s.key), SizeBytes: s.size, Repos: s.repos}]; known {
		return i
	}
	return b.shards.number(Shard{Digest: string(s.digest), Key: string(s.key), SizeBytes: s.size, Repos: s.repos})
}

// nameInURL stands for the name of the repo in its URL. No URL has it.
const nameInURL = "\x00"

// oncePerShard are the shards without those that an earlier one names.
func oncePerShard(shards []shardFields) []shardFields {
	if len(shards) < 2 {
		return shards
	}
	var once []shardFields
	seen := make(map[string]bool, len(shards))
	for _, s := range shards {
		if !seen[string(s.digest)] {
			seen[string(s.digest)], once = true, append(once, s)
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
	b.names = append(b.names, r.Repo...)
	b.add(len(r.Repo))
}

// word is the number of a word of the chunk that records are copied from.
func (b *chunkBuilder) word(i uint64) uint64 {
	return copied(&b.words, b.copied.words, b.from.words, i)
}

// copied is the number of a value of the chunk that records are copied from.
func copied[T comparable](to *numbered[T], known []uint64, values []unique.Handle[T], i uint64) uint64 {
	if known[i] == 0 {
		known[i] = 1 + to.number(values[i].Value())
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
