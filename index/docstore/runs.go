package docstore

import (
	"bytes"

	"github.com/trawl-search/trawl/index/eliasfano"
)

// Run is a run of documents or of blobs: From ≤ n < To.
type Run struct{ From, To uint32 }

// AppendBlobRuns appends the blobs of the documents in runs, which ascend and do not overlap.
// firsts gets, ascending, the blobs whose first document is in a run. repeats gets, in the order of
// the documents, the blobs of documents that are not the first of their blob.
func (d *Docs) AppendBlobRuns(firsts []Run, repeats []uint32, docs []Run) ([]Run, []uint32, error) {
	if d.info.repeats == 0 {
		return append(firsts, docs...), repeats, nil
	}
	list, err := d.repeatDocs.List()
	if err != nil {
		return firsts, repeats, err
	}
	var before repeatsBefore
	for _, run := range docs {
		// Each document that is not a repeat has the next blob.
		before.seek(&list, run.From)
		from := run.From - min(uint32(before.n), run.From)
		for before.some && before.next < uint64(run.To) {
			blob, err := d.repeatBlobs.number(uint32(before.n), d.content.blobs)
			if err != nil {
				return firsts, repeats, err
			}
			repeats = append(repeats, blob)
			before.step()
		}
		before.doc = run.To
		to := run.To - min(uint32(before.n), run.To)
		if to > d.content.blobs {
			return firsts, repeats, d.repeatDocs.Corruptf("the documents before %d have %d blobs of %d", run.To, to, d.content.blobs)
		}
		if from < to {
			firsts = append(firsts, Run{from, to})
		}
	}
	return firsts, repeats, nil
}

// repeatsBefore counts the repeats before ascending documents.
type repeatsBefore struct {
	it   eliasfano.Iterator
	n    int    // repeats before doc
	next uint64 // the next repeat, if there is one
	some bool
	doc  uint32
}

// nearDocs is the distance in documents up to which repeats are stepped over rather than looked up.
const nearDocs = 64

func (r *repeatsBefore) seek(list *eliasfano.List, doc uint32) {
	if r.doc == 0 || doc-r.doc > nearDocs {
		r.n = list.Search(uint64(doc))
		r.it = list.From(r.n)
		r.next, r.some = r.it.Next()
	}
	for r.some && r.next < uint64(doc) {
		r.step()
	}
	r.doc = doc
}

func (r *repeatsBefore) step() {
	r.n++
	r.next, r.some = r.it.Next()
}

// AppendLanguageRuns appends the documents in the language with this number.
func (d *Docs) AppendLanguageRuns(dst []Run, language uint16) ([]Run, error) {
	width := int(d.languages.width)
	if width == 0 { // there is at most one language
		if d.info.docs > 0 && language == 0 {
			dst = append(dst, Run{0, d.info.docs})
		}
		return dst, nil
	}
	data, err := d.languages.section.All()
	if err != nil {
		return dst, err
	}
	item := appendNumber(nil, uint32(language), width)
	for at := 0; at < len(data); {
		i := bytes.Index(data[at:], item)
		if i < 0 {
			break
		}
		if at += i; at%width != 0 {
			at++ // the end of one number and the start of the next
			continue
		}
		from := at
		for at < len(data) && bytes.Equal(data[at:at+width], item) {
			at += width
		}
		dst = append(dst, Run{uint32(from / width), uint32(at / width)})
	}
	return dst, nil
}
