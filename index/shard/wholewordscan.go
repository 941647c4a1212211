package shard

import (
	"cmp"
	"math"
	"weak"

	"github.com/trawl-search/trawl/index/rank"
)

// lengths returns, for each superblock, the length of its blob in superblocks, up to the longest that scores
// distinguish: one byte for 4 KiB of content. The first search for the best documents of a common word makes it. It
// stays until the next collection of garbage: a shard that is not searched holds no memory.
func (s *search) lengths() ([]uint8, error) {
	if kept := s.shard.lengths.Load(); kept != nil {
		if known := kept.Value(); known != nil {
			return *known, nil
		}
	}
	starts, err := s.content.SuperblockStarts()
	if err != nil {
		return nil, err
	}
	lengths := make([]uint8, s.content.Superblocks())
	it := starts.From(0)
	first, ok := it.Next()
	for ok {
		next, more := it.Next()
		if !more {
			next = uint64(len(lengths))
		}
		if next < first || next > uint64(len(lengths)) {
			return nil, s.corrupt("a blob has the superblocks from %d to %d of %d", first, next, len(lengths))
		}
		for i := first; i < next; i++ {
			lengths[i] = uint8(min(next-first, rank.CountedUnits))
		}
		if first, ok = next, more; first%1024 == 0 {
			if err := s.tick(); err != nil {
				return nil, err
			}
		}
	}
	kept := weak.Make(&lengths)
	s.shard.lengths.Store(&kept)
	return lengths, nil
}

// scanWholeWords looks at the documents with a whole word that may be among the best, first at those that may define
// it. Their scores let it skip most others by how often they have the word and how long they are.
func (s *search) scanWholeWords() error {
	if err := s.scanDefined(); err != nil {
		return err
	}
	lengths, err := s.lengths()
	if err != nil {
		return err
	}
	starts, err := s.content.SuperblockStarts()
	if err != nil {
		return err
	}
	shared, err := s.docs.SharedBlobs()
	if err != nil {
		return err
	}
	several := sharedBlobs{list: shared}
	several.begin(0)
	cursor := blobOfSuperblocks{starts: starts}
	tallies, opaque := s.wholeWords.atom.tallies, s.wholeWords.atom.opaque
	floor := s.leastWhole()
	for i := 0; i < len(tallies) && floor <= wholeCeilings[1][rank.Enough]; {
		if i&1023 == 0 {
			if err := s.tick(); err != nil {
				return err
			}
		}
		t := &tallies[i]
		in := wholeIn{length: int(lengths[t.superblock]), whole: rank.Enough}
		if in.length == 1 {
			in.whole = t.matches.whole()
		}
		if in.most() < floor {
			i++
			continue
		}
		blob, in, n, err := s.addUpBlob(&cursor, tallies[i:])
		if err != nil {
			return err
		}
		if i += n; holds(opaque, blob) { // its text must be read, so others go first
			continue
		}
		if err := s.lookAtWhole(blob, &in, several.documents(blob) == 1); err != nil {
			return err
		}
		floor = s.leastWhole()
	}
	for _, blob := range opaque {
		in, err := s.wholeWords.atom.in(blob)
		if err != nil {
			return err
		}
		if err := s.lookAtWhole(blob, &in, false); err != nil {
			return err
		}
	}
	return nil
}

// mayBeEnough reports whether the wanted number of documents may score more than those with only parts of words. If
// not, all words would have to be looked up in the end.
func (s *search) mayBeEnough() (bool, error) {
	if floor := s.opts.Floor; floor != nil && floor.Score-s.mostOfRepo > partOfWord {
		return true, nil
	}
	atom := s.wholeWords.atom
	wanted := s.opts.MaxFiles - len(s.best.hits) - len(s.defined) - len(atom.opaque)
	for _, a := range s.nameAtoms {
		wanted -= int(min(a.hits.docs.count(), math.MaxInt32))
	}
	starts, err := s.content.SuperblockStarts()
	if err != nil {
		return false, err
	}
	cursor := blobOfSuperblocks{starts: starts}
	for tallies := atom.tallies; len(tallies) > 0 && wanted > 0; {
		blob, in, n, err := s.addUpBlob(&cursor, tallies)
		if err := cmp.Or(err, s.tick()); err != nil {
			return false, err
		}
		if tallies = tallies[n:]; in.most() <= partOfWord {
			continue
		}
		low, err := s.inLowFolder(blob) // half of any score is below partOfWord
		if err != nil {
			return false, err
		}
		if !low {
			wanted--
		}
	}
	return wanted <= 0, nil
}

// addUpBlob adds up the first n tallies, which belong to one blob. Opaque superblocks do not count.
func (s *search) addUpBlob(cursor *blobOfSuperblocks, tallies []tally) (blob uint32, in wholeIn, n int, err error) {
	blob, end, err := s.blobOf(cursor, tallies[0].superblock)
	if err != nil {
		return 0, in, 0, err
	}
	in.length = int(min(end-uint32(cursor.first), rank.CountedUnits))
	for ; n < len(tallies) && tallies[n].superblock < end; n++ {
		in.whole += tallies[n].matches.whole()
	}
	return blob, in, n, nil
}

// blobOf returns the blob of a superblock, and the superblock after the blob's last one.
func (s *search) blobOf(cursor *blobOfSuperblocks, superblock uint32) (blob, end uint32, err error) {
	at := cursor.of(superblock)
	if end = uint32(cursor.first) + cursor.superblocks(s.content.Superblocks()); at < 0 || end <= superblock {
		return 0, 0, s.corrupt("superblock %d belongs to no blob", superblock)
	}
	return uint32(at), end, nil
}

// leastWhole returns the lowest score, without the rank of the repo, with which a document may be among the best and beats all that have
// only parts of words, if it defines nothing and no path matches.
func (s *search) leastWhole() float64 {
	least := math.Nextafter(partOfWord, math.Inf(1))
	if s.best.limit > 0 && s.best.full() {
		least = max(least, s.best.hits[0].score-s.mostOfRepo)
	}
	if floor := s.opts.Floor; floor != nil && s.losesTies {
		return max(least, math.Nextafter(floor.Score-s.mostOfRepo, math.Inf(1)))
	} else if floor != nil {
		return max(least, floor.Score-s.mostOfRepo)
	}
	return least
}

// scanDefined looks at the documents that may define the word.
func (s *search) scanDefined() error {
	ahead := blobsAhead{blobs: s.defined, most: startSuperblocks}
	for i, blob := range s.defined {
		if i > 0 && s.defined[i-1] == blob {
			continue
		}
		// The documents of a blob have its number or a higher one.
		if !s.mayReach(rank.Bound(rank.Content(rank.Word, rank.Enough, 1)+rank.Defined(s.terms), s.terms, rank.NoName, false), blob) {
			s.leaveOut()
			break
		}
		most, err := s.wholeWords.atom.most(blob)
		if err := cmp.Or(err, s.tick()); err != nil {
			return err
		}
		if !s.mayReach(rank.Bound(most, s.terms, rank.NoName, false), blob) {
			s.leaveOut()
			continue
		}
		if err := cmp.Or(ahead.announce(s, blob), s.eachOf(blob, s.hit)); err != nil {
			return err
		}
	}
	return nil
}

// lookAtWhole looks at the documents of a blob if they may be among the best and the blob does not define the word.
// single says that the blob has one document.
func (s *search) lookAtWhole(blob uint32, in *wholeIn, single bool) error {
	if err := s.tick(); err != nil {
		return err
	}
	most := in.most()
	if most < s.leastWhole() || s.mayDefine(blob) || !s.mayReach(rank.Bound(most, s.terms, rank.NoName, false), blob) {
		return nil
	}
	if single && !s.mayReach(rank.Bound(most, s.terms, rank.NoName, !s.asksForLow), blob) {
		if low, err := s.inLowFolder(blob); low || err != nil {
			return err
		}
	}
	return s.eachOf(blob, s.hit)
}
