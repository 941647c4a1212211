package search

import (
	"math"
	"slices"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// opaqueTallies returns the tallies of the extended words that start in opaque superblocks, where
// the text decides. It reads only those superblocks that have the n-grams of the needs, of the blobs that can match. The longest
// match has m.most bytes; 0 means that it may be longer than a piece.
func (s *search) opaqueTallies(m *matching) (tallies []tally, err error) {
	opaque, err := s.words.Opaque()
	if err != nil || opaque.Len() == 0 {
		return nil, err
	}
	candidates, some, err := s.opaqueCandidates(&opaque, m.needs)
	if err != nil {
		return nil, err
	}
	if !some {
		for it, i := opaque.From(0), 0; i < opaque.Len(); i++ {
			superblock, _ := it.Next()
			candidates = append(candidates, uint32(superblock))
		}
	}
	if s.among != nil {
		if err := s.among.findSuperblocks(s); err != nil {
			return nil, err
		}
		candidates = slices.DeleteFunc(candidates, func(superblock uint32) bool { return !s.among.has(superblock) })
	}
	wanted := opaqueRuns(&opaque, candidates, m.most)
	if err := s.announceRuns(wanted); err != nil {
		return nil, err
	}
	for _, run := range wanted {
		for run.From < run.To {
			blob, err := s.content.BlobOf(run.From)
			if err != nil {
				return nil, err
			}
			first, end, err := s.superblocksOf(blob)
			if err != nil {
				return nil, err
			}
			if run.From < first || run.From >= end {
				return nil, s.shard.Corruptf("superblock %d is not of blob %d, which has those from %d to %d", run.From, blob, first, end)
			}
			part := docstore.Run{From: run.From, To: min(run.To, end)}
			run.From = part.To
			err = s.wordRanges(m, opaquePart(&opaque, blob, first, part), math.MaxInt, func(start, _ uint32, quality rank.Quality) {
				superblock := min(first+start/docstore.SuperblockSize, part.To-1)
				if n := len(tallies); n == 0 || tallies[n-1].superblock != superblock {
					tallies = append(tallies, tally{superblock: superblock, blocks: 0xff, opaque: true})
				}
				tallies[len(tallies)-1].matches += oneOf(quality)
			})
			if err != nil {
				return nil, err
			}
		}
	}
	return tallies, nil
}

// opaqueCandidates returns the opaque superblocks, ascending, in which a needed literal or its
// rarest n-gram may start; some is false if it may start in any.
func (s *search) opaqueCandidates(opaque *eliasfano.List, needs regex.Needs) (found []uint32, some bool, err error) {
	return regex.Fold(needs, func(l regex.Literal) (found []uint32, some bool, err error) {
		candidates, some, err := s.ngramPlaces(s.shardText, s.literalWindows(l))
		if !some || err != nil {
			return nil, false, err
		}
		for superblock, _, ok := candidates.Next(); ok; superblock, _, ok = candidates.Next() {
			// A candidate after an opaque superblock stands for it: its n-gram belongs to a word that starts there.
			i := opaque.Last(uint64(superblock))
			if i < 0 || opaque.At(i)+1 < uint64(superblock) {
				continue
			}
			if own := uint32(opaque.At(i)); len(found) == 0 || found[len(found)-1] != own {
				found = append(found, own)
			}
		}
		return found, true, candidates.Err()
	}, func(parts [][]uint32) []uint32 {
		return slices.MinFunc(parts, func(a, b []uint32) int { return len(a) - len(b) })
	}, union)
}

// opaqueRuns joins the candidates with the adjacent opaque superblocks that a match can reach into.
func opaqueRuns(opaque *eliasfano.List, candidates []uint32, most int) (joined runs) {
	reach := opaque.Len()
	if most > 0 {
		reach = 1 + (most+ngram.MaxSpan)/docstore.SuperblockSize
	}
	for _, c := range candidates {
		if reach == opaque.Len() && c < joined.end() {
			continue // its whole run is there already
		}
		i := opaque.Search(uint64(c))
		first, last := c, c
		for n := 1; n <= reach && i-n >= 0 && opaque.At(i-n) == uint64(first)-1; n++ {
			first--
		}
		for n := 1; n <= reach && i+n < opaque.Len() && opaque.At(i+n) == uint64(last)+1; n++ {
			last++
		}
		joined = joined.add(first, last+1)
	}
	return joined
}

// wordPart is the superblocks [from, to) of a blob, whose words are searched.
type wordPart struct {
	blob, from, to uint32
	// head excludes the extended word that continues from the superblock before.
	head bool
	// cut says that the next superblock is opaque too, so that words may end anywhere.
	cut bool
}

// opaquePart is a run of opaque superblocks of a blob, whose first superblock is first.
func opaquePart(opaque *eliasfano.List, blob, first uint32, run docstore.Run) wordPart {
	is := func(superblock uint32) bool {
		_, found := opaque.Find(uint64(superblock))
		return found
	}
	return wordPart{
		blob: blob, from: run.From - first, to: run.To - first,
		head: run.From > first && !is(run.From-1),
		cut:  is(run.To),
	}
}

// contextBytes are read before and after the words: the longest rune.
const contextBytes = utf8.UTFMax

// wordStep is how much of a part is read at first. Each further step is twice as long.
const wordStep = 1 << 10

// wordRanges calls found for the first matches, up to wanted, in the extended words that start in a part of a blob. The expression's matches are
// within words.
func (s *search) wordRanges(m *matching, p wordPart, wanted int, found func(start, end uint32, quality rank.Quality)) (err error) {
	base, end := int64(p.from)*docstore.SuperblockSize, int64(p.to)*docstore.SuperblockSize
	at, head := 0, 0 // where the first word begins, and where one ends that may have begun before the part
	if !p.head && base > 0 {
		base, at = base-contextBytes, contextBytes
	}
	ahead := int64(ngram.MaxWord)
	if p.cut {
		ahead = max(ahead, int64(m.most))
	}
	text, all := s.buf[:0], int(end+ahead+contextBytes-base)
	for step := wordStep; len(text) < all; step *= 2 {
		had := len(text)
		n := min(step, all-had)
		if text, err = s.read(text, p.blob, uint32(base)+uint32(had), uint32(n)); err != nil {
			return err
		}
		s.buf = text
		if had == 0 && p.head {
			head = ngram.ExtendedEnd(text, 0)
		}
		for had == 0 && at < len(text) && !utf8.RuneStart(text[at]) {
			at++
		}
		limit := p.limit(text, int(end-base))
		if len(text) == had+n && len(text) < all { // the last word may go on
			limit = min(limit, ngram.ExtendedStart(text, lastRune(text)))
		}
		for start, stop := range regex.RangesWhile(m.matcher, text, at, s.goOn) {
			if start >= limit {
				break
			}
			if start < head {
				if continues, err := s.continues(p.blob, uint32(base)); err != nil {
					return err
				} else if continues {
					continue
				}
				head = 0
			}
			found(uint32(base)+uint32(start), uint32(base)+uint32(stop), rank.Of(text, start, stop))
			if wanted--; wanted == 0 {
				return nil
			}
		}
		if s.ended != nil || len(text) < had+n {
			return s.ended
		}
		at = max(at, limit)
	}
	return nil
}

// continues reports whether the word at an offset of a blob has begun before it.
func (s *search) continues(blob, at uint32) (bool, error) {
	n := min(at, contextBytes)
	text, err := s.reader.Append(s.edge[:0], blob, at-n, n)
	s.edge = text
	return ngram.ExtendedStart(text, len(text)) < len(text), err
}

// limit returns where the words of the part end in the text, if the part ends at a place.
func (p *wordPart) limit(text []byte, end int) int {
	if !p.cut && end < len(text) && ngram.ExtendedStart(text, end) < end {
		return ngram.ExtendedEnd(text, end)
	}
	return min(end, len(text))
}

// lastRune returns where the last rune of a text begins, which may not be complete.
func lastRune(text []byte) int {
	at := max(len(text)-1, 0)
	for at > 0 && !utf8.RuneStart(text[at]) {
		at--
	}
	return at
}
