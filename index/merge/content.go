package merge

import (
	"math"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
)

// writeContent writes the blobs.
func (m *merger) writeContent(w *format.Writer) error {
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
		if _, err := to.Add(data); err != nil {
			return err
		}
	}
	return nil
}

// writePostings writes the n-gram index of the content.
func (m *merger) writePostings(w *format.Writer) error {
	var sources []postings.Source
	for _, in := range m.inputs {
		if in.places == nil { // nothing of it stays
			continue
		}
		index, err := postings.Open(in.File, postings.ContentTags)
		if err != nil {
			return err
		}
		sources = append(sources, postings.Source{Index: index, Places: in.places})
	}
	return postings.Merge(m.ctx, w, postings.ContentTags, m.superblocks, sources, postings.MergeOptions{
		Processors: m.opts.Processors,
		Pace:       m.pace,
	})
}

// writeNames writes the n-gram index of the names. They are one text, in which windows reach
// from path to path, and where all that comes after a document left out stands in other
// places: their n-grams are found again.
func (m *merger) writeNames(w *format.Writer) (err error) {
	index := postings.NewBuilder(postings.Config{})
	ngram.NewExtractor().Extract(m.names, func(superblock uint32, ids []ngram.ID, masks []uint8) {
		if err == nil {
			err = index.Add(superblock, ids, masks)
		}
	})
	if err != nil {
		return err
	}
	superblocks := (len(m.names) + docstore.SuperblockSize - 1) / docstore.SuperblockSize
	return index.Write(w, postings.NameTags, uint32(superblocks))
}
