package shard

import (
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
)

// postings extracts all n-grams again and compares them with those in the posting lists. It
// compares sums over a hash of each posting, since lists and text are in different orders.
func (v *verifier) postings() error {
	extract := ngram.NewExtractor()
	want, err := v.contentSum(extract)
	if err != nil {
		return err
	}
	got, err := v.Text.Sum(v.tick)
	if err != nil {
		return err
	}
	if got != want {
		return v.Corruptf("posting lists do not belong to the content")
	}
	names, err := v.Docs.AppendNames(nil, 0, uint32(v.Docs.NamesLen()))
	if err != nil {
		return err
	}
	if got, err = v.Names.Sum(v.tick); err != nil {
		return err
	}
	want = 0
	extract.Extract(names, func(superblock uint32, ids []ngram.ID, masks []uint8) {
		want += superblockSum(superblock, ids, masks)
	})
	if got != want {
		return v.Corruptf("posting lists of names do not belong to the paths")
	}
	return nil
}

// contentSum returns the sum over the n-grams of all blobs. It also compares the index of words
// with the blobs.
func (v *verifier) contentSum(extract *ngram.Extractor) (sum uint64, err error) {
	words := inverted.NewVerifier(v.Words)
	var opaque []uint32
	for blob := range v.Content.Blobs() {
		if err := v.tick(); err != nil {
			return 0, err
		}
		first, err := v.Content.FirstSuperblock(blob)
		if err != nil {
			return 0, err
		}
		if err := v.read(blob); err != nil {
			return 0, err
		}
		opaque = ngram.AppendOpaque(opaque[:0], v.text)
		extract.ExtractBetween(v.text, opaque, func(superblock uint32, ids []ngram.ID, masks []uint8) {
			sum += superblockSum(first+superblock, ids, masks)
		})
		language, err := v.Rules(blob)
		if err != nil {
			return 0, err
		}
		if err := words.Add(first, v.text, opaque, language); err != nil {
			return 0, err
		}
	}
	return sum, words.Close(v.tick)
}

func superblockSum(superblock uint32, ids []ngram.ID, masks []uint8) (sum uint64) {
	for i, id := range ids {
		sum += inverted.Hash(id, superblock, masks[i])
	}
	return sum
}
