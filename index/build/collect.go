package build

import (
	"errors"
	"sync"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// batchBytes is the size of a batch of content, unless one content is larger. A batch should stay
// in the cache while words and n-grams are extracted from it.
const batchBytes = 512 << 10

// batch has successive contents and their opaque superblocks.
type batch struct {
	text     []byte
	contents []batchContent
	opaque   []uint32
}

// batchContent is one content of a batch: where it ends, and where its opaque superblocks end.
type batchContent struct {
	first         uint32 // superblock
	text, opaques int
	language      *symbols.Language
}

func (b *batch) reset() { b.text, b.contents, b.opaque = b.text[:0], b.contents[:0], b.opaque[:0] }

// each calls f for each content until there is an error.
func (b *batch) each(f func(c batchContent, text []byte, opaque []uint32) error) error {
	text, opaques := 0, 0
	for _, c := range b.contents {
		if err := f(c, b.text[text:c.text], b.opaque[opaques:c.opaques]); err != nil {
			return err
		}
		text, opaques = c.text, c.opaques
	}
	return nil
}

// collector collects words and n-grams of contents in a workspace, which nobody else may use before
// wait. It works in batches. If there is a processor for it, another goroutine collects the words
// of a batch, and with a third processor another one its n-grams.
type collector struct {
	*workspace
	processors int

	filling, busy *batch
	done          sync.WaitGroup // work on the busy batch
	wordsErr      error
	ngramsErr     error

	memory int64 // of everything collected before the busy batch
}

// add collects a content. first is its first superblock. The caller may change the content
// afterwards.
func (c *collector) add(first uint32, text []byte, language *symbols.Language) error {
	if len(c.filling.text)+len(text) > batchBytes {
		if err := c.flush(); err != nil {
			return err
		}
	}
	b := c.filling
	b.opaque = ngram.AppendOpaque(b.opaque, text)
	if len(text) >= batchBytes { // too large to copy
		own := b.text
		b.text = text
		b.contents = append(b.contents, batchContent{first, len(text), len(b.opaque), language})
		err := errors.Join(c.flush(), c.wait())
		b.text = own
		return err
	}
	b.text = append(b.text, text...)
	b.contents = append(b.contents, batchContent{first, len(b.text), len(b.opaque), language})
	return nil
}

// flush starts collecting the current batch, and frees the other one.
func (c *collector) flush() error {
	if err := c.wait(); err != nil {
		return err
	}
	c.memory = c.workspace.memory()
	c.filling, c.busy = c.busy, c.filling
	c.start(2, func() { c.wordsErr = c.busy.each(c.addWords) })
	c.start(3, func() { c.ngramsErr = c.busy.each(c.addNgrams) })
	c.filling.reset()
	return nil
}

// start runs do in another goroutine if there are that many processors, and otherwise directly.
func (c *collector) start(processors int, do func()) {
	if c.processors < processors {
		do()
		return
	}
	c.done.Go(do)
}

// wait waits until the busy batch has been collected.
func (c *collector) wait() error {
	c.done.Wait()
	return errors.Join(c.wordsErr, c.ngramsErr)
}

// finish collects everything that is left.
func (c *collector) finish() error { return errors.Join(c.flush(), c.wait()) }
