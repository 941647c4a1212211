package search

import (
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/regex"
)

// wordReader finds the matches in the words that start in some superblocks of a blob, none of them
// opaque. It knows their number, so it stops at the last one.
type wordReader struct {
	s      *search
	m      *matching
	blob   uint32
	wanted int
	found  func(start, end uint32, quality rank.Quality) bool

	begin uint32 // offset of the text in the blob
	head  int    // length of a word that may have started before begin
}

// wordStep is how much of a blob is read at once. It divides a superblock.
const wordStep = 1 << 10

// read reads superblocks [from, to), counted from the blob's first one. Matches in a word that
// started before them do not belong to them.
func (r *wordReader) read(from, to uint32) error {
	r.begin = from * docstore.SuperblockSize
	end := int((to - from) * docstore.SuperblockSize)
	text := r.s.buf[:0]
	for at := 0; r.wanted > 0 && at < end; {
		had := len(text)
		var err error
		text, err = r.s.reader.Append(text, r.blob, r.begin+uint32(had), wordStep)
		r.s.buf = text
		if err != nil {
			return err
		}
		limit := len(text)
		if len(text)-had == wordStep { // otherwise the blob ends here
			limit = ngram.ExtendedStart(text, len(text))
		}
		if at == 0 && r.begin > 0 {
			r.head = ngram.ExtendedEnd(text[:limit], 0)
		}
		if limit <= at {
			if len(text) == had {
				return nil
			}
			continue // the text ends within a word
		}
		if more, err := r.match(text[:limit], at, end); !more || err != nil {
			return err
		}
		if at = limit; len(text) == had {
			return nil
		}
	}
	return nil
}

// match finds the matches in text[at:] that start before end; more says whether the caller wants
// others.
func (r *wordReader) match(text []byte, at, end int) (more bool, err error) {
	for start, stop := range regex.RangesFrom(r.m.matcher, text, at) {
		if start < r.head {
			if own, err := r.ownHead(); err != nil {
				return false, err
			} else if !own {
				continue
			}
		}
		if start >= end && ngram.ExtendedStart(text, start) >= end {
			return false, nil
		}
		r.wanted--
		if !r.found(r.begin+uint32(start), r.begin+uint32(stop), rank.Of(text, start, stop)) {
			return false, nil
		}
	}
	return true, nil
}

// ownHead reports whether the word at the start of the text begins there.
func (r *wordReader) ownHead() (bool, error) {
	before := min(r.begin, contextBytes)
	text, err := r.s.reader.Append(r.s.edge[:0], r.blob, r.begin-before, before)
	r.s.edge = text
	if err != nil {
		return false, err
	}
	own := ngram.ExtendedStart(text, len(text)) == len(text)
	if own {
		r.head = 0
	}
	return own, nil
}
