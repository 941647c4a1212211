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

// writePostings writes the n-gram index of the content.
func (m *merger) writePostings(w *format.Writer) error {
	return inverted.Merge(m.ctx, w, inverted.ContentTags, m.superblocks, m.indexes, m.mergeOptions())
}

// writeWords writes the index of words.
func (m *merger) writeWords(w *format.Writer) error {
	return inverted.MergeWords(m.ctx, w, m.superblocks, m.indexes, m.ngrams, m.mergeOptions())
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
