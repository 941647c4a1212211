package merge

import (
	"math"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/words"
)

// writeContent writes the blobs.
func (m *merger) writeContent(w *format.Writer) error {
	if err := m.takeIndexes(); err != nil {
		return err
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

// takeIndexes takes the indexes of the inputs of which something stays. Those whose n-grams
// are of an older scheme, as all of format version 1 are, are made again.
func (m *merger) takeIndexes() error {
	for _, in := range m.inputs {
		if in.places == nil {
			continue
		}
		ngrams, err := postings.Open(in.File, postings.ContentTags)
		if err != nil {
			return err
		}
		switch {
		case ngrams.Scheme() == ngram.Runes:
			in.index = int32(len(m.indexes))
			m.indexes = append(m.indexes, index{in.File, in.places})
		case m.upgrade == nil:
			m.upgrade = newIndexer(m.opts.TempDir, m.opts.Memory, m.ngrams)
		}
	}
	return nil
}

// copyBlobs decodes the blobs and has them encoded anew.
func (m *merger) copyBlobs(to *docstore.ContentWriter) (err error) {
	var reader docstore.Reader
	var last *input
	var data []byte
	for _, blob := range m.blobs {
		data = data[:0]
		if blob.input != nil {
			if blob.input != last {
				reader.Reset(blob.content)
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
		if err := m.origin(blob, data, first); err != nil {
			return err
		}
	}
	if m.upgrade == nil {
		return nil
	}
	return m.upgrade.finish(&m.indexes)
}

// origin notes where the postings of the next blob are. It has that content, and its first
// superblock is first.
func (m *merger) origin(blob source, content []byte, first uint32) (err error) {
	origin := words.Blob{Source: -1}
	switch {
	case blob.input == nil:
	case blob.index >= 0:
		origin = words.Blob{Source: blob.index, Number: blob.blob}
	default:
		origin, err = m.upgrade.add(&m.indexes, content, first)
	}
	m.origins = append(m.origins, origin)
	return err
}
