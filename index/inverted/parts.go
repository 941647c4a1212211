package inverted

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/trawl-search/trawl/index/format"
)

// A part is a run of letters that many words hold, such as "field" in fieldName and bitfields. The posting lists of a listed part are the sum of
// those of all words that hold it, so that a text that thousands of words hold is answered from two lists.
//
// A shard lists the parts that occur as a component in at least partWords of its words, without case. The components of a word are its runs of
// letters, cut where camel case begins a new one: parse and HTTP in parseHTTP_2.
const (
	leastPart = 3
	mostPart  = 16
	// partWords bounds what the lists take to 2 % of a shard on eight repos (bench/unseen). Fewer words are found in the dictionary in less time
	// than the rest of a query takes.
	partWords = 64

	// An entry is the part, filled up with zeros, and a number: of its first list, counted from the end of those of words, and the flags of its lists.
	partEntry = mostPart + 4
	partFlags = 2 // bits
	hasEnds   = 1
	hasInside = 2
)

// Part has the numbers of the posting lists of a part, which are like those of words: a posting counts the matches in a superblock, and marks
// where one of the words is defined. Their masks have all blocks. 0 stands for a list without postings.
type Part struct {
	// Ends counts matches at the start or the end of a word, but not whole words. Inside counts the others.
	Ends, Inside uint32
}

// Part returns the posting lists of a part; ok is false if the shard does not list it. The part is in small letters.
func (x *Words) Part(text string) (p Part, ok bool, err error) {
	if len(text) < leastPart || len(text) > mostPart || x.parts.Len() == 0 {
		return p, false, nil
	}
	data, err := x.parts.Bytes(0, x.parts.Len())
	if err != nil {
		return p, false, err
	}
	var want [mostPart]byte
	copy(want[:], text)
	i := sort.Search(len(data)/partEntry, func(i int) bool { return bytes.Compare(data[i*partEntry:][:mostPart], want[:]) >= 0 })
	if i*partEntry == len(data) || !bytes.Equal(data[i*partEntry:][:mostPart], want[:]) {
		return p, false, nil
	}
	at := binary.LittleEndian.Uint32(data[i*partEntry+mostPart:])
	number := at >> partFlags
	for _, list := range []struct {
		flag uint32
		to   *uint32
	}{{hasEnds, &p.Ends}, {hasInside, &p.Inside}} {
		if at&list.flag == 0 {
			continue
		}
		if number >= x.partLists {
			return p, false, x.parts.Corruptf(int64(i*partEntry), "part list %d of %d", number, x.partLists)
		}
		*list.to = x.Len() + number
		number++
	}
	return p, true, nil
}

// components calls f with the components of a word that may be parts, in small letters. f must not keep them.
func components(word []byte, f func(component []byte)) {
	var small [mostPart]byte
	for from := 0; from < len(word); {
		if !isLetter(word[from]) {
			from++
			continue
		}
		to := from + 1
		for to < len(word) && isLetter(word[to]) && !beginsComponent(word, to) {
			to++
		}
		if n := to - from; n >= leastPart && n <= mostPart {
			for i, c := range word[from:to] {
				small[i] = lower[c]
			}
			f(small[:n])
		}
		from = to
	}
}

// beginsComponent reports whether the letter at i, which follows another one, begins a component: a capital after a small letter, or the last of
// several capitals before a small one.
func beginsComponent(word []byte, i int) bool {
	return isCapital(word[i]) && (!isCapital(word[i-1]) || i+1 < len(word) && isLetter(word[i+1]) && !isCapital(word[i+1]))
}

func isLetter(c byte) bool  { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isCapital(c byte) bool { return 'A' <= c && c <= 'Z' }

// partCounter counts in how many words each component occurs.
type partCounter struct {
	words map[string]*partCount
	n     uint32
}

type partCount struct{ words, last uint32 }

func (c *partCounter) add(word []byte) {
	c.n++
	components(word, func(component []byte) {
		count := c.words[string(component)]
		if count == nil {
			if c.words == nil {
				c.words = map[string]*partCount{}
			}
			count = new(partCount)
			c.words[string(component)] = count
		}
		if count.last != c.n {
			count.words, count.last = count.words+1, c.n
		}
	})
}

// parts returns the parts to list, ascending.
func (c *partCounter) parts() (parts []string) {
	for part, count := range c.words {
		if count.words >= partWords {
			parts = append(parts, part)
		}
	}
	sort.Strings(parts)
	return parts
}

// partFinder finds the listed parts in words. It is safe for concurrent use.
type partFinder struct {
	parts []string
	first [26 * 26 * 26]uint16 // number + 1 of the first part that begins with three letters, or 0
}

// foundPart says how often a word holds a part, and where the last match ends.
type foundPart struct{ part, ends, inside, end int }

// mostParts bounds the parts of a shard. Those beyond are not listed.
const mostParts = math.MaxUint16 - 1

func newPartFinder(parts []string) *partFinder {
	f := &partFinder{parts: parts[:min(len(parts), mostParts)]}
	for i, part := range slices.Backward(f.parts) {
		f.first[threeLetters(part)] = uint16(i + 1)
	}
	return f
}

func threeLetters[T string | []byte](text T) int {
	return (int(lower[text[0]]-'a')*26+int(lower[text[1]]-'a'))*26 + int(lower[text[2]]-'a')
}

// appendIn appends the parts that a word holds, except the word itself. Of matches that overlap, the first counts.
func (f *partFinder) appendIn(found []foundPart, word []byte) []foundPart {
	for at := 0; at+leastPart <= len(word); at++ {
		if !isLetter(word[at]) || !isLetter(word[at+1]) || !isLetter(word[at+2]) {
			continue
		}
		first := f.first[threeLetters(word[at:])]
		if first == 0 {
			continue
		}
		for i := int(first) - 1; i < len(f.parts) && hasPrefixFolded(word[at:], f.parts[i][:leastPart]); i++ {
			if part := f.parts[i]; len(part) < len(word) && hasPrefixFolded(word[at:], part) {
				found = appendMatch(found, i, at, at+len(part), len(word))
			}
		}
	}
	return found
}

// appendMatch counts a match unless it overlaps the one before.
func appendMatch(all []foundPart, part, from, to, length int) []foundPart {
	n := slices.IndexFunc(all, func(f foundPart) bool { return f.part == part })
	if n < 0 {
		n, all = len(all), append(all, foundPart{part: part})
	}
	found := &all[n]
	if from < found.end {
		return all
	}
	if found.end = to; from == 0 || to == length {
		found.ends++
	} else {
		found.inside++
	}
	return all
}

// hasPrefixFolded reports whether a text begins with a part, which is in small letters, without case.
func hasPrefixFolded(text []byte, part string) bool {
	if len(text) < len(part) {
		return false
	}
	for i := range len(part) {
		if lower[text[i]] != part[i] {
			return false
		}
	}
	return true
}

// partBuilder adds up the posting lists of words to those of the parts that they hold.
type partBuilder struct {
	finder  *partFinder
	holders [][]partHolder // of each part
	found   []foundPart
}

// partHolder is a word that holds a part, by its number in a source.
type partHolder struct {
	source, word uint32
	sum          partSum // of each posting of the word, if it is defined there
}

// partSum counts matches of a part in a superblock. From the lowest bit on, it has 16 bits for those at the ends of words, and 16 for those inside.
// The highest of each 16 says that such a word is defined there.
type partSum uint32

const (
	insideShift = 16
	definedPart = 1 << 15
	definedBits = definedPart<<insideShift | definedPart
)

// add adds the postings of a word: matches are those in one occurrence of it.
func (s *partSum) add(matches partSum, count uint16, defined bool) {
	*s += matches &^ definedBits * partSum(count)
	if defined {
		*s |= matches & definedBits
	}
}

func newPartBuilder(parts []string) *partBuilder {
	f := newPartFinder(parts)
	return &partBuilder{finder: f, holders: make([][]partHolder, len(f.parts))}
}

// add adds a word of a source.
func (b *partBuilder) add(source, number uint32, word []byte) {
	b.found = b.finder.appendIn(b.found[:0], word)
	for _, f := range b.found {
		h := partHolder{source, number, partSum(f.inside)<<insideShift | partSum(f.ends)}
		if f.ends > 0 {
			h.sum |= definedPart
		}
		if f.inside > 0 {
			h.sum |= definedPart << insideShift
		}
		b.holders[f.part] = append(b.holders[f.part], h)
	}
}

// runs calls f for the lists of all parts, in their order. read reads the postings of a holder, without masks and in any order. blocks has the
// block count of each superblock. f must not keep the run.
func (b *partBuilder) runs(blocks []uint8, read func(h partHolder, to *run) error, f func(part int, flag uint32, r *run) error) error {
	var r run
	sums := make([]partSum, len(blocks))
	for part, holders := range b.holders {
		for _, h := range holders {
			if err := read(h, &r); err != nil {
				return err
			}
			for i, superblock := range r.superblocks {
				sums[superblock].add(h.sum, r.counts[i], r.defined[i])
			}
		}
		for _, list := range []struct{ flag, shift uint32 }{{hasEnds, 0}, {hasInside, insideShift}} {
			r.superblocks, r.masks, r.counts, r.defined = r.superblocks[:0], r.masks[:0], r.counts[:0], r.defined[:0]
			for superblock, sum := range sums {
				if sum := uint16(sum >> list.shift); sum > 0 {
					r.superblocks, r.counts = append(r.superblocks, uint32(superblock)), append(r.counts, sum&^definedPart)
					r.masks, r.defined = append(r.masks, 1<<blocks[superblock]-1), append(r.defined, sum&definedPart != 0)
				}
			}
			if len(r.superblocks) > 0 {
				if err := f(part, list.flag, &r); err != nil {
					return err
				}
			}
		}
		clear(sums)
	}
	return nil
}

// write appends the lists of the parts to those of words, and writes the section of the parts. It returns how many lists there are. read is that
// of runs.
func (b *partBuilder) write(w format.SectionWriter, lists *writer, read func(h partHolder, to *run) error) (n uint32, err error) {
	entries := make([]uint32, len(b.holders))
	err = b.runs(lists.encoder.blocks, read, func(part int, flag uint32, r *run) error {
		if entries[part] == 0 {
			entries[part] = n << partFlags
		}
		entries[part] |= flag
		n++
		return lists.append(r)
	})
	if err != nil {
		return 0, err
	}
	data := make([]byte, 0, len(entries)*partEntry)
	for i, part := range b.finder.parts {
		data = append(append(data, part...), make([]byte, mostPart-len(part))...)
		data = binary.LittleEndian.AppendUint32(data, entries[i])
	}
	if err := w.WriteSection(format.TagParts, format.Required, data); err != nil {
		return 0, fmt.Errorf("write section %s: %w", format.TagParts, err)
	}
	return n, nil
}
