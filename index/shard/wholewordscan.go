package shard

import (
	"cmp"
	"math"
	"weak"

	"github.com/trawl-search/trawl/index/rank"
)

// lengths returns the length of each superblock's blob in superblocks, up to the longest that scores tell apart: a
// byte for 4 KiB of content. It is made when the best documents of a common word are asked for, and kept
// until the next collection of garbage: a shard that is not searched holds no memory.
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

// scanWholeWords looks at the documents with a whole word that may be among the best, those in which it may be
// defined first: with what they score, most others are passed for how often they have the word and how long
// they are.
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
		if i += n; holds(opaque, blob) { // its text has to be read: others are done first
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

// mayBeEnough reports whether as many documents as are wanted may score more than those with parts of words only.
// Otherwise all words are looked up in the end.
func (s *search) mayBeEnough() (bool, error) {
	if floor := s.opts.Floor; floor != nil && floor.Score > partOfWord {
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
		low, err := s.inLowFolder(blob) // half of any score is less
		if err != nil {
			return false, err
		}
		if !low {
			wanted--
		}
	}
	return wanted <= 0, nil
}

// addUpBlob adds up the first tallies, as many as are of one blob. Opaque superblocks do not count.
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

// blobOf returns the blob of a superblock, and the superblock behind the last one of the blob.
func (s *search) blobOf(cursor *blobOfSuperblocks, superblock uint32) (blob, end uint32, err error) {
	at := cursor.of(superblock)
	if end = uint32(cursor.first) + cursor.superblocks(s.content.Superblocks()); at < 0 || end <= superblock {
		return 0, 0, s.corrupt("superblock %d belongs to no blob", superblock)
	}
	return uint32(at), end, nil
}

// leastWhole is the least score by which a document may be among the best, and better than all that have parts of words
// only, if nothing is defined and no path matches.
func (s *search) leastWhole() float64 {
	least := math.Nextafter(partOfWord, math.Inf(1))
	if s.best.limit > 0 && s.best.full() {
		least = max(least, s.best.hits[0].score)
	}
	if floor := s.opts.Floor; floor != nil && s.losesTies {
		return max(least, math.Nextafter(floor.Score, math.Inf(1)))
	} else if floor != nil {
		return max(least, floor.Score)
	}
	return least
}

// scanDefined looks at the documents in which the word may be defined.
func (s *search) scanDefined() error {
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
		if err := s.eachOf(blob, s.hit); err != nil {
			return err
		}
	}
	return nil
}

// lookAtWhole looks at the documents of a blob, of which there may be a single one, if they may be among the best
// and their word is not defined.
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
