package catalog

import (
	"cmp"
	"iter"
	"slices"
)

// Summary is what the roots of a chunk say together of their branches and languages.
type Summary struct {
	// Branches are the names of the branches, each once. Unnamed is true if a root has none.
	Branches []string
	Unnamed  bool
	// Shards are the languages in each of the chunk's shards.
	Shards []Spoken
}

// Spoken are the languages of the documents that the roots of a chunk have in a shard.
type Spoken struct {
	chunk     *Chunk
	languages []spoken
	unknown   bool
}

// spoken is a language, by its place in the chunk's words, and the number of roots that have it.
type spoken struct{ word, roots uint32 }

// Speaks reports whether a root has documents in a language in the shard. It is not known if there is a root that does not say.
func (s *Spoken) Speaks(language string) (speaks, known bool) {
	for name := range s.Languages() {
		if name == language {
			return true, !s.unknown
		}
	}
	return false, !s.unknown
}

// Languages are those that the roots name, each once, and the number of roots that do.
func (s *Spoken) Languages() iter.Seq2[string, int] {
	return func(yield func(string, int) bool) {
		for _, l := range s.languages {
			if !yield(s.chunk.words[l.word].Value(), int(l.roots)) {
				return
			}
		}
	}
}

// Known is false if a root does not name its languages.
func (s *Spoken) Known() bool { return !s.unknown }

// Summary is made when it is first asked for. It is shared: read only.
func (c *Chunk) Summary() *Summary {
	made := c.summary.Load()
	if made == nil {
		made = c.summarise()
		c.summary.Store(made)
	}
	return made
}

func (c *Chunk) summarise() *Summary {
	s := &Summary{Shards: make([]Spoken, len(c.shards))}
	type pair struct{ shard, word uint32 }
	branch, pairs := make([]bool, len(c.words)), []pair(nil) // a table would grow with the square of what a chunk has
	for at := c.Cursor(); ; {
		r, ok := at.Next()
		if !ok {
			break
		}
		code := r.code
		shards, _ := code.begin()
		for range shards {
			h := code.held(c)
			s.Shards[h.Shard].unknown = s.Shards[h.Shard].unknown || len(h.languages) == 0
			for l := h.languages; len(l) > 0; {
				pairs = append(pairs, pair{uint32(h.Shard), uint32(l.number())})
			}
		}
		branches := code.number()
		s.Unnamed = s.Unnamed || branches == 0
		for range branches {
			branch[code.number()] = true
			code.bytes(code.number() / 2)
		}
	}
	for word, is := range branch {
		if is {
			s.Branches = append(s.Branches, c.words[word].Value())
		}
	}
	for i := range s.Shards {
		s.Shards[i].chunk = c
	}
	slices.SortFunc(pairs, func(a, b pair) int { return cmp.Or(cmp.Compare(a.shard, b.shard), cmp.Compare(a.word, b.word)) })
	for i, p := range pairs {
		of := &s.Shards[p.shard]
		if i == 0 || p != pairs[i-1] {
			of.languages = append(of.languages, spoken{word: p.word})
		}
		of.languages[len(of.languages)-1].roots++
	}
	return s
}
