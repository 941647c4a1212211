package search

import (
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// spelled is the words [from, to) that equal a literal without case.
type spelled struct{ from, to uint32 }

// spelledAs returns the words that equal a literal, whose word bytes are text.
func (s *search) spelledAs(literal regex.Literal, text string) (in spelled, err error) {
	in, known := s.spelled[literal]
	if known {
		return in, nil
	}
	if in.from, in.to, err = s.words.Spellings(text, &s.lexicon); err != nil {
		return in, err
	}
	if s.spelled == nil {
		s.spelled = map[regex.Literal]spelled{}
	}
	s.spelled[literal] = in
	return in, nil
}

// spellings returns the spellings of a literal and their lists; nil if no word has such bytes.
func (s *search) spellings(literal regex.Literal) (words []wordMatch, lists []inverted.List, err error) {
	text, ok := wordText(literal)
	if !ok {
		return nil, nil, nil
	}
	in, err := s.spelledAs(literal, text)
	if err != nil {
		return nil, nil, err
	}
	words = make([]wordMatch, 0, in.to-in.from)
	for word := in.from; word < in.to; word++ {
		if literal.CaseSensitive {
			if err := s.words.Block(word/blockWords, &s.lexicon); err != nil {
				return nil, nil, err
			}
			if string(s.lexicon.Word(int(word%blockWords))) != text {
				continue
			}
		}
		list, err := s.words.List(word)
		if err != nil {
			return nil, nil, err
		}
		words, lists = append(words, wordMatch{word, oneOf(rank.Word)}), append(lists, list)
	}
	s.stats.ListsRead += uint64(len(lists))
	return words, lists, nil
}
