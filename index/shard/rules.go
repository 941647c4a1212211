package shard

import "github.com/trawl-search/trawl/index/symbols"

// Rules returns the rules by which the definitions of a blob were marked: those of the language of
// its first document, nil if there are none.
func (s *Shard) Rules(blob uint32) (*symbols.Language, error) {
	doc, err := s.Docs.FirstDoc(blob)
	if err != nil {
		return nil, err
	}
	language, err := s.Docs.Language(doc)
	return symbols.For(language), err
}

// OtherwiseMarked returns the blobs, ascending, with a document in another language than the one by
// whose rules the blob's definitions are marked. A shard finds them once: few identical files have
// two languages. An error of tick, which it calls now and then, ends it.
func (s *Shard) OtherwiseMarked(tick func() error) ([]uint32, error) {
	if known := s.otherwise.Load(); known != nil {
		return *known, nil
	}
	shared, err := s.Docs.SharedBlobs()
	if err != nil {
		return nil, err
	}
	found := []uint32{}
	for i := range shared.Len() {
		blob := uint32(shared.At(i))
		if i > 0 && shared.At(i-1) == uint64(blob) {
			continue // all documents of a blob are looked at once, however many there are
		}
		marked, err := s.Rules(blob)
		if err != nil {
			return nil, err
		}
		for doc, err := range s.Docs.DocsOf(blob) {
			if err != nil {
				return nil, err
			}
			language, err := s.Docs.Language(doc)
			if err != nil {
				return nil, err
			}
			if symbols.For(language) != marked {
				found = append(found, blob)
				break
			}
		}
		if err := tick(); err != nil {
			return nil, err
		}
	}
	s.otherwise.Store(&found)
	return found, nil
}
