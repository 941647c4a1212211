package merge

import (
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
)

// heldSections is the most sections that wait for others at the same time.
const heldSections = 2

func (m *merger) mergeOptions() inverted.MergeOptions {
	return inverted.MergeOptions{
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
		var sources []inverted.Source
		for _, from := range m.indexes {
			x, err := inverted.Open(from.file, inverted.ContentTags)
			if err != nil {
				return err
			}
			sources = append(sources, inverted.Source{Index: x, Places: from.places})
		}
		return inverted.Merge(m.ctx, w, inverted.ContentTags, m.superblocks, sources, m.mergeOptions())
	})
}

// writeWords writes the index of words.
func (m *merger) writeWords(w *format.Writer) error {
	return m.guardIndexes(func() error {
		var sources []inverted.WordSource
		for _, from := range m.indexes {
			x, err := inverted.OpenWords(from.file)
			if err != nil {
				return err
			}
			sources = append(sources, inverted.WordSource{Words: x, Places: from.places})
		}
		return inverted.MergeWords(m.ctx, w, m.superblocks, sources, m.ngrams, m.mergeOptions())
	})
}

// writeNames writes the n-gram index of the names. They are one text, in which windows reach from
// path to path, and an omitted document moves everything after it. So their n-grams are extracted
// again.
func (m *merger) writeNames(w *format.Writer) (err error) {
	if ngram.NewExtractor().Extract(m.names, m.ngrams.Adder(0, &err)); err != nil {
		return err
	}
	superblocks := docstore.SuperblocksOf(uint64(len(m.names)))
	return m.ngrams.Write(w, inverted.NameTags, superblocks)
}
