package shard

import (
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// verifyPostings extracts all n-grams again and compares them with those in the posting lists. It
// compares sums over a hash of each posting, since lists and text are in different orders.
func (s *search) verifyPostings() error {
	extract := ngram.NewExtractor()
	want, err := s.contentSum(extract)
	if err != nil {
		return err
	}
	got, err := s.shardText.Sum(s.tick)
	if err != nil {
		return err
	}
	if got != want {
		return s.corrupt("posting lists do not belong to the content")
	}
	names, err := s.docs.AppendNames(nil, 0, uint32(s.docs.NamesLen()))
	if err != nil {
		return err
	}
	if got, err = s.names.Sum(s.tick); err != nil {
		return err
	}
	if got != namesSum(extract, names) {
		return s.corrupt("posting lists of names do not belong to the paths")
	}
	return nil
}

// contentSum returns the sum over the n-grams of all blobs. It also compares the index of words
// with the blobs.
func (s *search) contentSum(extract *ngram.Extractor) (sum uint64, err error) {
	verifier := inverted.NewVerifier(s.words)
	var opaque []uint32
	for blob := range s.content.Blobs() {
		if err := s.tick(); err != nil {
			return 0, err
		}
		first, err := s.content.FirstSuperblock(blob)
		if err != nil {
			return 0, err
		}
		text, err := s.text.load(s, blob)
		if err != nil {
			return 0, err
		}
		opaque = ngram.AppendOpaque(opaque[:0], text)
		extract.ExtractBetween(text, opaque, func(superblock uint32, ids []ngram.ID, masks []uint8) {
			sum += superblockSum(first+superblock, ids, masks)
		})
		language, err := s.languageOfBlob(blob)
		if err != nil {
			return 0, err
		}
		if err := verifier.Add(first, text, opaque, language); err != nil {
			return 0, err
		}
	}
	return sum, verifier.Close(s.tick)
}

// languageOfBlob returns the rules by which a blob's definitions were marked: those of the language
// of its first document.
func (s *search) languageOfBlob(blob uint32) (*symbols.Language, error) {
	doc, err := s.docs.FirstDoc(blob)
	if err != nil {
		return nil, err
	}
	language, err := s.docs.Language(doc)
	return symbols.For(language), err
}

func namesSum(e *ngram.Extractor, names []byte) (sum uint64) {
	e.Extract(names, func(superblock uint32, ids []ngram.ID, masks []uint8) {
		sum += superblockSum(superblock, ids, masks)
	})
	return sum
}

func superblockSum(superblock uint32, ids []ngram.ID, masks []uint8) (sum uint64) {
	for i, id := range ids {
		sum += inverted.Hash(id, superblock, masks[i])
	}
	return sum
}
