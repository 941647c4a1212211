package shard

import (
	"cmp"

	"github.com/trawl-search/trawl/index/rank"
)

// Documents with a match in their path score more than others, and a better place in the path
// scores more. A search among whole words looks at the documents with the best place first. Once it
// has as many as are wanted, it reads no text of others.

// placeOrder is the order in which documents are looked at.
type placeOrder struct {
	// now is the place whose documents are looked at now.
	now rank.Name
	// places has the place of each document by its number; nil if no path is looked at.
	places []rank.Name
	// docs are the documents of each place.
	docs [rank.Base + 1]runs
}

// later reports whether a document belongs to another place's turn.
func (o *placeOrder) later(doc uint32) bool { return o.places != nil && o.places[doc] != o.now }

// fill orders the documents of a shard by how their paths match.
func (o *placeOrder) fill(hits *nameHits, docs uint32) {
	o.places = make([]rank.Name, docs)
	places := hits.places
	for _, run := range hits.docs {
		for doc := run.From; doc < run.To; doc++ {
			name := places[0].name
			o.places[doc], o.docs[name] = name, o.docs[name].add(doc, doc+1)
			places = places[1:]
		}
	}
}

// scanByPlace looks at the documents among whole words, those with a match in their path first.
func (s *search) scanByPlace() error {
	o, atom := &s.wholeWords.order, s.wholeWords.atom
	if atom == nil { // nothing matches: the rest of the query has excluded the shard
		return nil
	}
	if enough, err := s.mayBeEnough(); err != nil || !enough {
		return cmp.Or(err, errOverBudget)
	}
	if len(s.nameAtoms) > 0 {
		o.fill(s.nameAtoms[0].hits, s.docs.Len())
		for o.now = rank.Base; o.now > rank.NoName; o.now-- {
			if err := s.scanPlace(); err != nil {
				return err
			}
		}
	}
	return s.scanWholeWords()
}

// scanPlace looks at the documents of one place.
func (s *search) scanPlace() error {
	o := &s.wholeWords.order
	blobs, err := s.blobsOf(o.docs[o.now])
	if err != nil {
		return err
	}
	ahead := blobsAhead{most: startSuperblocks}
	if s.content.Announces() {
		ahead.blobs = blobs.numbers()
	}
	for _, run := range blobs {
		for blob := run.From; blob < run.To; blob++ {
			// The documents of a blob have its number or a higher one.
			if !s.mayDefine(blob) && !s.mayReach(s.ceiling(o.now, false), blob) {
				s.leaveOutFrom(blob)
				if len(s.defined) == 0 {
					return nil
				}
				continue
			}
			if err := cmp.Or(s.tick(), ahead.announce(s, blob), s.eachOf(blob, s.hit)); err != nil {
				return err
			}
		}
	}
	return nil
}
