package words

import (
	"bytes"

	"github.com/trawl-search/trawl/index/postings"
)

// cursor walks the lexicon of a source and the lists of its words.
type cursor struct {
	source int
	x      *Index
	lists  *postings.WordLists
	block  Block
	i      int    // index of the word in the block
	next   uint32 // block
	word   []byte // the current word
	prefix uint64 // of its key
	before []byte // the last word of the block before
}

// cursors returns the cursors of all sources that have words, as a heap.
func (m *merging) cursors() (heap cursorHeap, err error) {
	for i, s := range m.sources {
		c := &cursor{source: i, x: s.Index, lists: m.lists.Lists(i), i: -1}
		more, err := c.advance()
		if err != nil {
			return nil, err
		}
		if more {
			heap = append(heap, c)
		}
	}
	for i := len(heap)/2 - 1; i >= 0; i-- {
		heap.down(i)
	}
	return heap, nil
}

// advance moves to the next word and returns false at the end. It checks that words ascend and
// consist of word bytes.
func (c *cursor) advance() (bool, error) {
	last, prefix := c.word, c.prefix
	if c.i++; c.i >= c.block.Len() {
		if c.next == c.x.Blocks() {
			return false, nil
		}
		c.before = append(c.before[:0], last...)
		last = c.before
		if err := c.x.Block(c.next, &c.block); err != nil {
			return false, err
		}
		c.next++
		c.i = 0
	}
	c.word = c.block.Word(c.i)
	c.prefix = prefixOf(c.word)
	if !isWord(c.word) || c.prefix < prefix || c.prefix == prefix && compareRest(last, c.word) >= 0 {
		return false, c.x.lexicon.Corruptf(0, "%q is not a word that comes after %q", c.word, last)
	}
	return true, nil
}

// cursorHeap is a heap of cursors, the one with the smallest word first. Among equal words, the
// cursor of the earlier source comes first.
type cursorHeap []*cursor

func (h cursorHeap) less(i, j int) bool {
	a, b := h[i], h[j]
	if a.prefix != b.prefix {
		return a.prefix < b.prefix
	}
	if c := compareRest(a.word, b.word); c != 0 {
		return c < 0
	}
	return a.source < b.source
}

// down moves the cursor at i to its place among those below it.
func (h cursorHeap) down(i int) {
	for {
		least := i
		for child := 2*i + 1; child <= 2*i+2 && child < len(h); child++ {
			if h.less(child, least) {
				least = child
			}
		}
		if least == i {
			return
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}

// next adds the smallest word of all sources to a batch, with its lists, and moves on.
func (h *cursorHeap) next(b *batch) error {
	start := len(b.text)
	b.text = append(b.text, (*h)[0].word...)
	word, prefix := b.text[start:], (*h)[0].prefix
	for len(*h) > 0 && (*h)[0].prefix == prefix && bytes.Equal((*h)[0].word, word) {
		c := (*h)[0]
		ref := c.lists.Next()
		b.refs, b.refBytes = append(b.refs, ref), b.refBytes+ref.Bytes()
		more, err := c.advance()
		if err != nil {
			return err
		}
		if !more {
			last := len(*h) - 1
			(*h)[0], *h = (*h)[last], (*h)[:last]
		}
		h.down(0)
	}
	b.ends, b.refEnds = append(b.ends, uint32(len(b.text))), append(b.refEnds, uint32(len(b.refs)))
	return nil
}
