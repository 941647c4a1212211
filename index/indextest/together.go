package indextest

import (
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
)

// together returns how the words of the query stand together in the lines of the content. It judges
// each superblock on its own, unless it is opaque: the lines that begin in it, up to its end.
func (e evaluation) together(q query.Q) (best rank.Together) {
	words := bareTexts(q)
	if e.Skipped || len(words) < 2 || slices.ContainsFunc(words, func(s *query.Substring) bool { return !isWord(s.Pattern) }) {
		return rank.Scattered
	}
	opaque := ngram.AppendOpaque(nil, e.Content)
	for at := 0; at < len(e.Content); at += ngram.SuperblockSize {
		if slices.Contains(opaque, uint32(at/ngram.SuperblockSize)) {
			continue
		}
		part := string(e.Content[at:min(at+ngram.SuperblockSize, len(e.Content))])
		for i, line := range strings.Split(part, "\n") {
			if i > 0 || at == 0 {
				best = max(best, togetherIn(line, words))
			}
		}
	}
	return best
}

// togetherIn is together for one line.
func togetherIn(line string, words []*query.Substring) rank.Together {
	counted := line[:min(len(line), rank.LineBytes)]
	small := func(text string) string { return string(smallLetters([]byte(text))) }
	exact, sequence := true, ""
	for _, w := range words {
		if w.CaseSensitive && !strings.Contains(counted, w.Pattern) || !strings.Contains(small(counted), small(w.Pattern)) {
			return rank.Scattered
		}
		exact, sequence = exact && w.CaseSensitive, sequence+" "+w.Pattern
	}
	if len(words) == 2 {
		return rank.OneLine
	}
	if sequence = sequence[1:]; !exact {
		line, counted, sequence = small(line), small(counted), small(sequence)
	}
	for at := range counted {
		end := at + len(sequence)
		if strings.HasPrefix(counted[at:], sequence) && (at == 0 || !ngram.IsWord(line[at-1])) && (end == len(line) || !ngram.IsWord(line[end])) {
			return rank.InSequence
		}
	}
	return rank.OneLine
}

// bareTexts returns the texts that may match anywhere and must match.
func bareTexts(q query.Q) (texts []*query.Substring) {
	if and, ok := q.(*query.And); ok {
		for _, c := range and.Children {
			if s, ok := c.(*query.Substring); ok && s.Scope == query.Either {
				texts = append(texts, s)
			}
		}
	}
	return texts
}

func isWord(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r > 0x7f || !ngram.IsWord(byte(r)) })
}
