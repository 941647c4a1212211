package shard

import "slices"

// planFilter finds the documents that may match by their paths and columns, if counting enough
// words in them makes that worthwhile.
func (s *search) planFilter(b *bulk) error {
	n, ok := s.root.(*andNode)
	if !ok {
		return nil
	}
	least := -1
	for _, c := range n.rest {
		if a, ok := c.(*atomNode); ok {
			if w, ok := a.content.(*wordAtom); ok && (least < 0 || len(w.hits.blobs) < least) {
				least = len(w.hits.blobs)
			}
		}
	}
	if least < 0 {
		return nil
	}
	if err := n.decide(looksPerCount * uint64(least)); err != nil || !n.filtered {
		return err
	}
	blobs, err := n.filterBlobs()
	b.docs, b.within, b.filtered = n.filter, &blobRuns{rest: blobs}, true
	b.onPaths = slices.ContainsFunc(s.nameAtoms, func(a *nameAtom) bool { return !a.placed })
	return err
}

// looksPerCount is how many paths may be looked at for each document that is then counted instead
// of looked at. It is a guess.
const looksPerCount = 2

// leaveOutNamed removes the named blobs that the filter excludes.
func (b *bulk) leaveOutNamed() {
	if !b.filtered {
		return
	}
	within := *b.within
	b.named = slices.DeleteFunc(b.named, func(n namedBlob) bool {
		blob, ok, _ := within.seek(n.blob)
		return !ok || blob != n.blob
	})
}

// letThrough counts the documents of a blob that the filter lets through.
func (s *search) letThrough(blob uint32) (n int, err error) {
	for doc, err := range s.docs.DocsOf(blob) {
		if err != nil {
			return 0, err
		}
		if s.bulk.docs.has(doc) {
			n++
		}
	}
	return n, nil
}
