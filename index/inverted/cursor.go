package inverted

import (
	"bytes"
	"cmp"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/heap"
	"github.com/trawl-search/trawl/index/ngram"
)

// cursor walks the terms of a source, with their lists.
type cursor struct {
	source int
	index  *Index
	ends   endReader
	next   uint32 // term
	terms  uint32 // n-grams, or words without the parts
	key    uint64 // the current n-gram, or the prefix of the current word's key
	ngrams eliasfano.Iterator

	words  *Words // nil for n-grams
	block  Block
	i      int    // index of the word in the block
	word   []byte // the current word
	before []byte // the last word of the block before
}

// cursors returns the cursors of all sources that have terms, as a heap.
func (m *merger) cursors() (all cursorHeap, err error) {
	for i, s := range m.sources {
		c := &cursor{source: i, index: s.index, words: s.words, ends: newEndReader(s.table), ngrams: s.table.ngrams.From(0), i: -1}
		if c.terms = s.index.terms; s.words != nil {
			c.terms = s.words.Len()
		}
		more, err := c.advance()
		if err != nil {
			return nil, err
		}
		if more {
			all = append(all, c)
		}
	}
	heap.Init(all, compareCursors)
	return all, nil
}

// advance moves to the next term and returns false at the end. It checks that terms ascend, and that words consist of word bytes.
func (c *cursor) advance() (bool, error) {
	if c.next == c.terms {
		return false, nil
	}
	c.next++
	key := c.key
	if c.words == nil {
		id, ok := c.ngrams.Next()
		if c.key = id; !ok || id <= key && c.next > 1 || id >= ngram.Space {
			return false, c.index.table.Corruptf(headSize, "n-gram %d follows %d", id, key)
		}
		return true, nil
	}
	last := c.word
	if c.i++; c.i >= c.block.Len() {
		c.before = append(c.before[:0], last...)
		last = c.before
		if err := c.words.Block((c.next-1)/BlockWords, &c.block); err != nil {
			return false, err
		}
		c.i = 0
	}
	c.word = c.block.Word(c.i)
	c.key = prefixOf(c.word)
	if !ngram.IsWords(c.word) || c.key < key || c.key == key && compareRest(last, c.word) >= 0 {
		return false, c.words.dictionary.Corruptf(0, "%q is not a word that comes after %q", c.word, last)
	}
	return true, nil
}

// cursorHeap is a heap of cursors, the one with the smallest term first. Among equal terms, the
// cursor of the earlier source comes first.
type cursorHeap []*cursor

func compareCursors(a, b **cursor) int {
	if c := cmp.Compare((*a).key, (*b).key); c != 0 {
		return c
	}
	if c := compareRest((*a).word, (*b).word); c != 0 {
		return c
	}
	return (*a).source - (*b).source
}

// next adds the smallest term of all sources to a batch, with its lists, and moves on.
func (h *cursorHeap) next(b *batch) error {
	start, key := len(b.text), (*h)[0].key
	b.text = append(b.text, (*h)[0].word...)
	word := b.text[start:]
	for len(*h) > 0 && (*h)[0].key == key && bytes.Equal((*h)[0].word, word) {
		c := (*h)[0]
		at := c.ends.read()
		b.refs, b.refBytes = append(b.refs, listRef{c.source, c.next - 1, at}), b.refBytes+at.bytes()
		more, err := c.advance()
		if err != nil {
			return err
		}
		if more {
			heap.Fix(*h, 0, compareCursors)
		} else {
			*h = heap.Pop(*h, compareCursors)
		}
	}
	b.keys, b.ends, b.refEnds = append(b.keys, key), append(b.ends, uint32(len(b.text))), append(b.refEnds, uint32(len(b.refs)))
	return nil
}

// endReader finds the lists of all terms, one after the other.
type endReader struct {
	ends eliasfano.Iterator
	last span // of the term before
}

func newEndReader(t *table) endReader { return endReader{ends: t.ends.From(0)} }

// read returns the place of the next list.
func (r *endReader) read() span {
	end, _ := r.ends.Next()
	r.last = span{r.last.to, int64(end)}
	return r.last
}
