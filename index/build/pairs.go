package build

import (
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
)

// pairs holds the n-grams of one blob until its first superblock is known. Its
// memory is reused.
type pairs struct {
	ids   []ngram.ID
	masks []uint8
	ends  []superblockEnd
}

// superblockEnd says where the pairs of a superblock end.
type superblockEnd struct {
	superblock uint32
	end        int
}

// extract takes all windows of a text.
func (p *pairs) extract(e *ngram.Extractor, text []byte) {
	p.reset()
	e.Extract(text, p.take)
}

// extractBetween takes the windows that the index of words does not stand for.
func (p *pairs) extractBetween(e *ngram.Extractor, text []byte, opaque []uint32) {
	p.reset()
	e.ExtractBetween(text, opaque, p.take)
}

func (p *pairs) reset() { p.ids, p.masks, p.ends = p.ids[:0], p.masks[:0], p.ends[:0] }

func (p *pairs) take(superblock uint32, ids []ngram.ID, masks []uint8) {
	p.ids, p.masks = append(p.ids, ids...), append(p.masks, masks...)
	p.ends = append(p.ends, superblockEnd{superblock, len(p.ids)})
}

// addTo adds the pairs of a blob whose first superblock is first.
func (p *pairs) addTo(b *postings.Builder, first uint32) error {
	start := 0
	for _, s := range p.ends {
		if err := b.Add(first+s.superblock, p.ids[start:s.end], p.masks[start:s.end]); err != nil {
			return err
		}
		start = s.end
	}
	return nil
}
