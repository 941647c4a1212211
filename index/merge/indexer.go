package merge

import (
	"bufio"
	"errors"
	"fmt"
	"os"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/inverted"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// indexer indexes contents again whose definitions other rules found: those of another version, or
// for another language. When the postings fill the memory, they become an index in a temporary file,
// which is merged like the indexes of the inputs.
type indexer struct {
	dir     string
	memory  int64
	extract *ngram.Extractor
	ngrams  *inverted.NgramBuilder
	words   *inverted.WordBuilder
	opaque  []uint32

	places []uint32 // of the next index's superblocks
	files  []*format.File
}

// add indexes a blob whose superblocks have the places from place on. It will be in the last of the indexes, which flush adds.
func (x *indexer) add(indexes *[]inverted.Source, content []byte, place uint32, language *symbols.Language) error {
	if x.ngrams.MemoryUsed()+x.words.Memory() > x.memory {
		if err := x.flush(indexes); err != nil {
			return err
		}
	}
	first := uint32(len(x.places))
	for i := range docstore.SuperblocksOf(uint64(len(content))) {
		x.places = append(x.places, place+i)
	}
	x.opaque = ngram.AppendOpaque(x.opaque[:0], content)
	var err error
	x.extract.ExtractBetween(content, x.opaque, x.ngrams.Adder(first, &err))
	if err == nil {
		err = x.words.Add(first, content, x.opaque, language)
	}
	if err != nil {
		return fmt.Errorf("index a content again: %w", err)
	}
	return nil
}

// finish flushes after the last blob, and frees what is not needed any more.
func (x *indexer) finish(indexes *[]inverted.Source) error {
	err := x.flush(indexes)
	x.extract, x.words = nil, nil
	return err
}

// flush adds the index of the contents since the last one, if there are any.
func (x *indexer) flush(indexes *[]inverted.Source) error {
	if len(x.places) == 0 {
		return nil
	}
	file, err := writeTemporary(x.dir, x.write)
	if err != nil {
		return fmt.Errorf("write a temporary index: %w", err)
	}
	x.files = append(x.files, file)
	*indexes = append(*indexes, inverted.Source{File: file, Places: x.places})
	x.places = nil
	return nil
}

// write writes the index.
func (x *indexer) write(w *format.Writer) error {
	superblocks := uint32(len(x.places))
	if err := x.ngrams.Write(w, inverted.ContentTags, superblocks); err != nil {
		return err
	}
	return x.words.Write(w, superblocks, x.ngrams)
}

// writeTemporary opens a temporary file with the sections that write writes. It removes the name of the file.
func writeTemporary(dir string, write func(*format.Writer) error) (f *format.File, err error) {
	file, err := os.CreateTemp(dir, "index-")
	if err != nil {
		return nil, fmt.Errorf("make a temporary file: %w", err)
	}
	defer func() {
		err = errors.Join(err, os.Remove(file.Name()), file.Close())
		if err != nil && f != nil {
			_ = f.Close() // err has the reason
			f = nil
		}
	}()
	buffer := bufio.NewWriterSize(file, 1<<20)
	w := format.NewWriter(buffer)
	if err := write(w); err != nil {
		return nil, err
	}
	if err := errors.Join(w.Close(), buffer.Flush()); err != nil {
		return nil, err
	}
	return format.OpenFile(file.Name())
}

// close frees the space of all indexes.
func (x *indexer) close() (err error) {
	for _, f := range x.files {
		err = errors.Join(err, f.Close())
	}
	return err
}
