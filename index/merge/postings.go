package merge

import (
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
	"github.com/trawl-search/trawl/index/words"
)

// heldSections is the most sections that wait for others at the same time.
const heldSections = 2

func (m *merger) mergeOptions() postings.MergeOptions {
	return postings.MergeOptions{
		Processors: m.opts.Processors,
		Pace:       m.pace,
		Spill:      inorder.BufferConfig{Dir: m.opts.TempDir, Memory: max(m.opts.Memory/heldSections, 1)},
	}
}

// guardIndexes runs a function that reads the indexes.
func (m *merger) guardIndexes(fn func() error) error {
	files := make([]*format.File, len(m.indexes))
	for i := range m.indexes {
		files[i] = m.indexes[i].file
	}
	return format.GuardFiles(files, fn)
}

// writePostings writes the n-gram index of the content.
func (m *merger) writePostings(w *format.Writer) error {
	return m.guardIndexes(func() error {
		var sources []postings.Source
		for _, from := range m.indexes {
			x, err := postings.Open(from.file, postings.ContentTags)
			if err != nil {
				return err
			}
			sources = append(sources, postings.Source{Index: x, Places: from.places})
		}
		return postings.Merge(m.ctx, w, postings.ContentTags, m.superblocks, sources, m.mergeOptions())
	})
}

// writeWords writes the index of words.
func (m *merger) writeWords(w *format.Writer) error {
	return m.guardIndexes(func() error {
		var sources []words.Source
		for _, from := range m.indexes {
			x, err := words.Open(from.file)
			if err != nil {
				return err
			}
			sources = append(sources, words.Source{Index: x, Places: from.places})
		}
		return words.Merge(m.ctx, w, m.superblocks, sources, m.origins, m.ngrams, m.mergeOptions())
	})
}

// writeNames writes the n-gram index of the names. They are one text, in which windows reach from
// path to path, and an omitted document moves everything after it. So their n-grams are extracted
// again.
func (m *merger) writeNames(w *format.Writer) (err error) {
	ngram.NewExtractor().Extract(m.names, func(superblock uint32, ids []ngram.ID, masks []uint8) {
		if err == nil {
			err = m.ngrams.Add(superblock, ids, masks)
		}
	})
	if err != nil {
		return err
	}
	superblocks := (len(m.names) + docstore.SuperblockSize - 1) / docstore.SuperblockSize
	return m.ngrams.Write(w, postings.NameTags, uint32(superblocks))
}
