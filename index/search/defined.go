package search

import (
	"cmp"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/regex"
	"github.com/trawl-search/trawl/index/symbols"
)

// A document scores more if it defines a literal of the query as a whole word, or has a name that the words of
// the query make up. These documents are few, and posting lists know them:
// the bounds of all others leave both out.

// nameIn says where a literal is a whole word. All lists of blobs ascend.
type nameIn struct {
	literal regex.Literal
	// marked are the blobs marked as defining it.
	marked []uint32
	// byText are the blobs that hold it and have a document in another language than the one that the marks
	// follow.
	byText []uint32
	// blobs are all blobs that hold it, if the caller asked for them.
	blobs []uint32
}

// mayDefine reports whether the literal may be defined in a blob.
func (in *nameIn) mayDefine(blob uint32) bool {
	return holds(in.marked, blob) || holds(in.byText, blob)
}

// defines reports whether a document defines the literal, by the rules for its own language. The score of a
// document must not depend on the other documents with its content in the shard.
func (in *nameIn) defines(d *document) (bool, error) {
	if !holds(in.byText, d.blob) {
		return holds(in.marked, d.blob), nil
	}
	s := d.s
	rules, err := s.rulesOf(d.id)
	if err != nil {
		return false, err
	}
	marked, err := s.shard.Rules(d.blob)
	switch {
	case err != nil || rules == nil:
		return false, err
	case rules == marked:
		return holds(in.marked, d.blob), nil
	}
	return in.definesByText(d, rules)
}

// definesByText looks for the definition in the text, outside of opaque superblocks.
func (in *nameIn) definesByText(d *document, rules *symbols.Language) (bool, error) {
	s := d.s
	text, err := s.text.load(s, d.blob)
	if err != nil {
		return false, err
	}
	first, err := s.content.FirstSuperblock(d.blob)
	if err != nil {
		return false, err
	}
	opaque, err := s.words.Opaque()
	if err != nil {
		return false, err
	}
	for _, symbol := range s.symbolsOf(rules, d.blob, text) {
		for at := int(symbol.Start); at < int(symbol.End); at++ {
			if !ngram.IsWord(text[at]) || at > 0 && ngram.IsWord(text[at-1]) {
				continue
			}
			end := at
			for end < len(text) && ngram.IsWord(text[end]) {
				end++
			}
			if !in.isWord(text[at:end]) {
				continue
			}
			if _, hidden := opaque.Find(uint64(first) + uint64(at/docstore.SuperblockSize)); !hidden {
				return true, nil
			}
		}
	}
	return false, nil
}

func (in *nameIn) isWord(word []byte) bool {
	if in.literal.CaseSensitive {
		return string(word) == in.literal.Text
	}
	return strings.EqualFold(string(word), in.literal.Text)
}

// nameIn returns where a literal is a whole word; all asks for nameIn.blobs.
func (s *search) nameIn(m *matching, all bool) (in nameIn, err error) {
	literal, ok := m.needs.(regex.Literal)
	if !ok || !m.withinWords || m.followed {
		return in, nil
	}
	known := s.knownOf(m)
	if known.name != nil {
		return *known.name, nil
	}
	in.literal = literal
	words, lists, err := s.spellings(literal)
	if err != nil {
		return in, err
	}
	if in.marked, err = s.blobsOfWords(words, definitionsOnly); err != nil {
		return in, err
	}
	other, err := s.shard.OtherwiseMarked(s.tick)
	if err != nil {
		return in, err
	}
	for _, list := range lists {
		if in.byText, err = s.appendThoseOf(in.byText, list, other); err != nil {
			return in, err
		}
	}
	in.byText = union([][]uint32{in.byText})
	if all {
		if in.blobs, err = s.blobsOfWords(words, allCounts); err != nil {
			return in, err
		}
	}
	known.name = &in
	return in, nil
}

// compound says where the words of the query make up a name.
type compound struct {
	blobs []uint32 // ascending
	names []nameIn
}

// prepareCompound finds the blobs with a name that the query's words make up.
func (s *search) prepareCompound() error {
	s.compound = compound{}
	for _, m := range s.query.compound {
		in, err := s.nameIn(m, true)
		if err != nil {
			return err
		}
		s.compound.blobs = append(s.compound.blobs, in.blobs...)
		if s.words.Marked() {
			s.compound.names = append(s.compound.names, in)
		}
	}
	slices.Sort(s.compound.blobs)
	s.defined = append(s.defined, s.compound.blobs...)
	return nil
}

// in reports whether a document has such a name, and whether it defines one.
func (c *compound) in(d *document) (some, defined bool, err error) {
	some = holds(c.blobs, d.blob)
	for i := range c.names {
		if defined || !some || err != nil {
			break
		}
		defined, err = c.names[i].defines(d)
	}
	return some, defined, err
}

// appendThoseOf appends the blobs of some, which ascend, that have a word.
func (s *search) appendThoseOf(blobs []uint32, list inverted.List, some []uint32) ([]uint32, error) {
	defer s.explain.during(PhasePostings)()
	it := &s.wordIterator
	it.Reset(list)
	for _, blob := range some {
		first, end, err := s.superblocksOf(blob)
		if err := cmp.Or(err, s.tick()); err != nil {
			return blobs, err
		}
		if !it.SeekGE(first) {
			break
		}
		if it.Superblock() < end {
			blobs = append(blobs, blob)
		}
	}
	return blobs, it.Err()
}

func holds(blobs []uint32, blob uint32) bool {
	if len(blobs) == 0 {
		return false
	}
	_, ok := slices.BinarySearch(blobs, blob)
	return ok
}
