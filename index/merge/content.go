package merge

import (
	"math"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// writeContent writes the blobs.
func (m *merger) writeContent(w *format.Writer) error {
	for _, in := range m.inputs {
		if in.places == nil {
			continue // it keeps no document
		}
		words, err := inverted.OpenWords(in.File)
		if err != nil {
			return err
		}
		if in.indexed = words.Marked() && !m.afresh; in.indexed { // otherwise its contents are indexed again by this version of the rules for definitions
			m.indexes = append(m.indexes, inverted.Source{File: in.File, Places: in.places})
		}
	}
	content, err := docstore.NewContentWriter(w, m.opts.Effort, m.opts.Processors)
	if err != nil {
		return err
	}
	if err := m.copyBlobs(content); err != nil {
		content.Abandon()
		return err
	}
	return content.Close()
}

// copyBlobs decodes the blobs and encodes them again.
func (m *merger) copyBlobs(to *docstore.ContentWriter) (err error) {
	var reader docstore.Reader
	var last *input
	var data []byte
	for _, blob := range m.blobs {
		data = data[:0]
		if blob.input != nil {
			if blob.input != last {
				reader.ResetOnce(blob.content)
				last = blob.input
			}
			if data, err = reader.Append(data, blob.blob, 0, math.MaxUint32); err != nil {
				return err
			}
			if err := m.pace(len(data)); err != nil {
				return err
			}
		}
		first, err := to.Add(data)
		if err != nil {
			return err
		}
		if blob.input == nil {
			continue
		}
		marked, err := blob.marked()
		if err == nil && !marked { // otherwise its postings are taken from the index of its input
			err = m.indexAgain(blob, data, first)
		}
		if err != nil {
			return err
		}
	}
	if m.again == nil {
		return nil
	}
	return m.again.finish(&m.indexes)
}

// marked reports whether the input's index is taken and its definitions of the blob are right for
// the new shard, in which the blob's first document may have another language.
func (s *source) marked() (bool, error) {
	if !s.indexed {
		return false, nil
	}
	doc, err := s.docs.FirstDoc(s.blob)
	if err != nil {
		return false, err
	}
	language, err := s.docs.Language(doc)
	return symbols.For(language) == s.language, err
}

// indexAgain indexes a blob whose first superblock in the new shard is first. It takes nothing from
// the input's index.
func (m *merger) indexAgain(blob source, content []byte, first uint32) error {
	if m.again == nil {
		m.again = &indexer{dir: m.opts.TempDir, memory: m.opts.Memory, extract: ngram.NewExtractor(), ngrams: m.ngrams, words: inverted.NewWordBuilder()}
	}
	from, length, err := blob.content.Span(blob.blob)
	if err != nil {
		return err
	}
	for i := range docstore.SuperblocksOf(uint64(length)) {
		blob.places[from+i] = inverted.Gone
	}
	return m.again.add(&m.indexes, content, first, blob.language)
}
