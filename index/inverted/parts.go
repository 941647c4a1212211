package inverted

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/bits"
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

// Bounds on the parts of a shard. Parts beyond mostParts are not listed, and none is if words hold more than mostHeld each, on average, or more
// than mostHolders in all. Words of code hold one to five (3.4 million in 381 MB of WebKit), but a file can be made whose words of 128 letters
// hold hundreds each, and adding up their lists would take minutes and gigabytes.
const (
	mostParts   = math.MaxUint16 - 1
	mostHeld    = 16
	mostHolders = 1 << 24
)

// partBuilder adds up the posting lists of words to those of the parts that they hold.
type partBuilder struct {
	parts []string
	first [26 * 26 * 26]uint16 // number + 1 of the first part that begins with three letters, or 0

	holders sortedPool  // of each part
	left    int         // how many words may still hold parts, counting each word once
	found   []foundPart // in the current word
	slots   []uint16    // of each part, its index in found + 1, or 0
}

// An entry of a word that holds a part has, from the lowest bit on: the word's number, how often the part matches at its ends, twice at most, and
// inside, where MaxWord letters have room for 42 matches.
const (
	endsAt   = 46
	insideAt = endsAt + 2
)

// foundPart says how often a word holds a part, and where the last match ends.
type foundPart struct{ part, ends, inside, end int }

// newPartBuilder returns a builder of the parts among the components of all words.
func newPartBuilder(components *partCounter) *partBuilder {
	parts := components.parts()
	b := &partBuilder{parts: parts[:min(len(parts), mostParts)], left: min(mostHeld*int(components.n), mostHolders)}
	for i, part := range slices.Backward(b.parts) {
		b.first[threeLetters(part)] = uint16(i + 1)
	}
	b.holders.grow((len(b.parts) + groupSize - 1) / groupSize)
	b.slots = make([]uint16, len(b.parts))
	return b
}

func threeLetters[T string | []byte](text T) int {
	return (int(lower[text[0]]-'a')*26+int(lower[text[1]]-'a'))*26 + int(lower[text[2]]-'a')
}

// find finds the parts that a word holds, except the word itself. Of matches that overlap, the first counts.
func (b *partBuilder) find(word []byte) {
	for _, f := range b.found {
		b.slots[f.part] = 0
	}
	b.found = b.found[:0]
	for at := 0; at+leastPart <= len(word); at++ {
		if !isLetter(word[at]) || !isLetter(word[at+1]) || !isLetter(word[at+2]) {
			continue
		}
		first := b.first[threeLetters(word[at:])]
		if first == 0 {
			continue
		}
		for i := int(first) - 1; i < len(b.parts) && hasPrefixFolded(word[at:], b.parts[i][:leastPart]); i++ {
			if part := b.parts[i]; len(part) < len(word) && hasPrefixFolded(word[at:], part) {
				b.match(i, at, at+len(part), len(word))
			}
		}
	}
}

// match counts a match unless it overlaps the one before.
func (b *partBuilder) match(part, from, to, length int) {
	if b.slots[part] == 0 {
		b.found = append(b.found, foundPart{part: part})
		b.slots[part] = uint16(len(b.found)) // a word has at most 128 places, with 14 parts each
	}
	found := &b.found[b.slots[part]-1]
	if from < found.end {
		return
	}
	if found.end = to; from == 0 || to == length {
		found.ends++
	} else {
		found.inside++
	}
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

// add adds a word, whose number must have at most 46 bits. again says that the word has been added under another number.
func (b *partBuilder) add(number uint64, word []byte, again bool) {
	if len(b.parts) == 0 {
		return
	}
	if b.find(word); !again {
		if b.left -= len(b.found); b.left < 0 {
			b.parts, b.holders = nil, sortedPool{}
			return
		}
	}
	for _, f := range b.found {
		b.holders.add(uint32(f.part), uint64(f.inside)<<insideAt|uint64(f.ends)<<endsAt|number)
	}
}

// partSum counts matches of a part in a superblock. From the lowest bit on, it has 16 bits for those at the ends of words, and 16 for those inside.
// The highest of each 16 says that such a word is defined there.
type partSum uint32

const (
	insideShift = 16
	definedPart = 1 << 15
	definedBits = definedPart<<insideShift | definedPart
)

// holderOf returns the word of an entry, and the matches in one that is defined.
func holderOf(entry uint64) (word uint64, matches partSum) {
	ends, inside := partSum(entry>>endsAt&3), partSum(entry>>insideAt)%(1<<(numberAt-insideAt))
	if ends > 0 {
		ends |= definedPart
	}
	if inside > 0 {
		inside |= definedPart
	}
	return entry % (1 << endsAt), inside<<insideShift | ends
}

// errPartCount says that lists have more matches of a part in a superblock than there is room for: three letters and the byte that ends a word or
// begins the next match leave less than MaxCount.
var errPartCount = errors.New("more matches of a part of words than a superblock has room for")

// add adds the postings of a word: matches are those in one occurrence of it. It returns false if there are more than a superblock has room for.
func (s *partSum) add(matches partSum, count uint16, defined bool) bool {
	for shift := 0; shift <= insideShift; shift += insideShift {
		each, sum := uint32(matches>>shift)&(definedPart-1), uint32(*s>>shift)&(definedPart-1)
		if sum+each*uint32(count) > MaxCount {
			return false
		}
	}
	*s += matches &^ definedBits * partSum(count)
	if defined {
		*s |= matches & definedBits
	}
	return true
}

// partSums has the sums of one part in all superblocks.
type partSums struct {
	sums []partSum
	used []uint64 // a bit for each sum
}

// add adds a posting of a word, see partSum.add.
func (s *partSums) add(superblock uint32, matches partSum, count uint16, defined bool) bool {
	s.used[superblock/64] |= 1 << (superblock % 64)
	return s.sums[superblock].add(matches, count, defined)
}

// addList adds those postings of a word's list that have a place.
func (s *partSums) addList(it *Iterator, list List, matches partSum, places []uint32) error {
	it.Reset(list)
	for superblocks, counts := it.Block(); len(superblocks) > 0; superblocks, counts = it.Block() {
		for i, superblock := range superblocks {
			if to := places[superblock]; to != Gone && !s.add(to, matches, counts[i], it.DefinedAt(i)) {
				return errPartCount
			}
		}
	}
	return it.Err()
}

// write appends the lists of the parts to those of words, and writes the section of the parts. It returns how many lists there are. add adds the
// postings of words to the sums of a part that they hold, see holderOf.
func (b *partBuilder) write(w format.SectionWriter, to *writer, add func(to *partSums, holders []uint64) error) (n uint32, err error) {
	lists := [...]struct {
		flag, shift uint32
		run
	}{{flag: hasEnds}, {flag: hasInside, shift: insideShift}}
	blocks := to.encoder.blocks
	s := &partSums{make([]partSum, len(blocks)), make([]uint64, len(blocks)/64+1)}
	data := make([]byte, 0, len(b.parts)*partEntry)
	b.holders.sort(len(b.parts))
	for part, text := range b.parts {
		g, start, end := b.holders.run(uint32(part))
		for holders := range g.parts(start, end) {
			if err := add(s, holders); err != nil {
				return 0, err
			}
		}
		for i := range lists {
			list := &lists[i].run
			*list = run{list.superblocks[:0], list.masks[:0], list.counts[:0], list.defined[:0]}
		}
		for i, word := range s.used {
			for s.used[i] = 0; word != 0; word &= word - 1 {
				superblock := uint32(i*64 + bits.TrailingZeros64(word))
				for i := range lists {
					list := &lists[i]
					if sum := uint16(s.sums[superblock] >> list.shift); sum > 0 {
						list.superblocks, list.counts = append(list.superblocks, superblock), append(list.counts, sum&^definedPart)
						list.masks, list.defined = append(list.masks, 1<<blocks[superblock]-1), append(list.defined, sum&definedPart != 0)
					}
				}
				s.sums[superblock] = 0
			}
		}
		entry := uint32(0)
		for i := range lists {
			if len(lists[i].superblocks) == 0 {
				continue
			}
			if err := to.append(&lists[i].run); err != nil {
				return 0, err
			}
			if entry == 0 {
				entry = n << partFlags
			}
			entry |= lists[i].flag
			n++
		}
		data = append(append(data, text...), make([]byte, mostPart-len(text))...)
		data = binary.LittleEndian.AppendUint32(data, entry)
	}
	if err := w.WriteSection(format.TagParts, format.Required, data); err != nil {
		return 0, fmt.Errorf("write section %s: %w", format.TagParts, err)
	}
	return n, nil
}
