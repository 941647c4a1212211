package postings

import (
	"encoding/binary"
	"fmt"

	"github.com/trawl-search/trawl/index/eliasfano"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
)

// tableWriter collects the n-gram offset table. It keeps its memory for the next one.
type tableWriter struct {
	ids, listEnds, maskEnds []uint64
	data                    []byte
}

func (t *tableWriter) reset() {
	t.ids, t.listEnds, t.maskEnds = t.ids[:0], t.listEnds[:0], t.maskEnds[:0]
}

// add adds the next n-gram, with the ends of its list and its masks.
func (t *tableWriter) add(id, listEnd, maskEnd uint64) {
	t.ids, t.listEnds, t.maskEnds = append(t.ids, id), append(t.listEnds, listEnd), append(t.maskEnds, maskEnd)
}

// write writes the table of an index with those block counts, one for each superblock.
func (t *tableWriter) write(w format.SectionWriter, tag format.Tag, blocks []uint8, postings uint64) error {
	data := t.data[:0]
	data = append(data, ngramLayout)
	data = binary.LittleEndian.AppendUint32(data, uint32(len(blocks)))
	data = binary.LittleEndian.AppendUint64(data, postings)
	var err error
	for _, list := range []struct {
		values   []uint64
		universe uint64
	}{{t.ids, ngram.Space}, {t.listEnds, universe(t.listEnds)}, {t.maskEnds, universe(t.maskEnds)}} {
		if data, err = eliasfano.Append(data, list.values, list.universe); err != nil {
			return fmt.Errorf("encode %d values below %d: %w", len(list.values), list.universe, err)
		}
	}
	t.data = appendBlockCounts(data, blocks)
	if err := w.WriteSection(tag, format.Required, t.data); err != nil {
		return fmt.Errorf("write the n-gram offset table: %w", err)
	}
	return nil
}

// universe returns one more than the last end.
func universe(ends []uint64) uint64 {
	if len(ends) == 0 {
		return 0
	}
	return ends[len(ends)-1] + 1
}
