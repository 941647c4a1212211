package format_test

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"maps"
	"math/bits"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/symbols"
)

// Words and extended words as in section 8.
var (
	wordRun     = regexp.MustCompile(`[0-9A-Za-z_]+`)
	extendedRun = regexp.MustCompile(`[0-9A-Za-z_\x{212A}\x{017F}]+`)
)

const longestWord = 128

// definedWord is the name of the only definition of the sample, in Go.
const definedWord = "defined_field_here"

// wordModel is what the index of words must contain according to FORMAT.md.
type wordModel struct {
	words  map[string]map[uint32]wordPosting
	opaque []uint64
}

type wordPosting struct {
	mask    uint8
	count   uint64
	defined bool
}

// opaqueOf returns the opaque superblocks of a blob.
func opaqueOf(blob []byte) map[int]bool {
	opaque := map[int]bool{}
	for _, at := range extendedRun.FindAllIndex(blob, -1) {
		if at[1]-at[0] <= longestWord && len(wordRun.Find(blob[at[0]:at[1]])) == at[1]-at[0] {
			continue
		}
		for s := at[0] / 4096; s <= (at[1]-1)/4096; s++ {
			opaque[s] = true
		}
	}
	for start := 0; start < len(blob); start += 4096 {
		if isData(blob, start) {
			opaque[start/4096] = true
		}
	}
	return opaque
}

// isData reports whether the superblock at start is data.
func isData(blob []byte, start int) bool {
	places, random := 0, 0
	for at := start; at < min(start+4096, len(blob)); at += 256 {
		places++
		before := wordEnd.Find(blob[max(0, at-128):at])
		behind := wordBegin.Find(blob[at:min(len(blob), at+129)])
		if len(behind) == 0 {
			continue
		}
		word := append(slices.Clone(before), behind...)
		changes := 0
		for i, class := 1, classOf(word[0]); i < len(word); i++ {
			if word[i] != '_' && classOf(word[i]) != class {
				class = classOf(word[i])
				changes++
			}
		}
		if len(word) >= 16 && bytes.ContainsAny(word, "0123456789") && 5*changes >= 2*len(word) {
			random++
		}
	}
	return places >= 8 && 2*random >= places
}

var (
	wordEnd   = regexp.MustCompile(`\w*$`)
	wordBegin = regexp.MustCompile(`^\w*`)
)

func classOf(c byte) string {
	switch {
	case '0' <= c && c <= '9':
		return "digit"
	case 'A' <= c && c <= 'Z':
		return "capital"
	case 'a' <= c && c <= 'z':
		return "small"
	}
	return "none"
}

func (m *wordModel) add(first uint32, blob []byte) {
	opaque := opaqueOf(blob)
	for _, s := range slices.Sorted(maps.Keys(opaque)) {
		m.opaque = append(m.opaque, uint64(first)+uint64(s))
	}
	for _, at := range wordRun.FindAllIndex(blob, -1) {
		if opaque[at[0]/4096] {
			continue
		}
		word, superblock := string(blob[at[0]:at[1]]), first+uint32(at[0]/4096)
		if m.words[word] == nil {
			m.words[word] = map[uint32]wordPosting{}
		}
		p := m.words[word][superblock]
		m.words[word][superblock] = wordPosting{p.mask | 1<<(at[0]%4096/512), p.count + 1, word == definedWord}
	}
}

// sorted returns the words in the order of the lexicon.
func (m *wordModel) sorted() []string {
	return slices.SortedFunc(maps.Keys(m.words), func(a, b string) int {
		return cmp.Or(strings.Compare(strings.ToLower(a), strings.ToLower(b)), strings.Compare(a, b))
	})
}

// lexicon returns what the n-grams of the lexicon must be.
func (m *wordModel) lexicon(e *ngram.Extractor) indexed {
	sorted := m.sorted()
	in := indexed{superblocks: uint32(len(sorted)+255) / 256, masks: map[uint64]map[uint32]uint8{}}
	for i, word := range sorted {
		word = strings.ToLower(word)
		for j := range max(len(word)-2, 0) {
			in.add(windowOf(e, word[j:j+3]), uint32(i/256), uint8(1)<<(i%256/32))
		}
	}
	return in
}

// windowOf returns the n-gram of a window of three folded bytes.
func windowOf(e *ngram.Extractor, window string) (id uint64) {
	e.Extract([]byte(window), func(_ uint32, ids []ngram.ID, _ []uint8) { id = uint64(slices.Min(ids)) })
	return id
}

// decodeWords decodes a block of WLEX, and counts the encodings that it uses.
func decodeWords(t *testing.T, block []byte, n int, seen map[string]int) (words []string) {
	t.Helper()
	spellings := bitReader{data: block}
	entries := block[(n+3)/4:]
	next := func() int {
		c := entries[0]
		entries = entries[1:]
		return int(c)
	}
	last := ""
	for range n {
		head := next()
		shared, size := head&15, head>>4
		if shared == 15 {
			shared += next()
			seen["more shared"]++
		}
		if size == 15 {
			size += next()
			seen["more bytes"]++
		}
		small := last[:shared] + string(entries[:size])
		entries = entries[size:]
		last = small
		spelling := spellings.bits(2)
		seen["spelling "+strconv.FormatUint(spelling, 10)]++
		switch spelling {
		case 1:
			small = strings.ToUpper(small[:1]) + small[1:]
		case 2:
			small = strings.ToUpper(small)
		case 3:
			word := ""
			for group := range slices.Chunk([]byte(small), 63) {
				capitals, used := binary.Uvarint(entries)
				entries = entries[used:]
				for i := range group {
					if capitals>>i&1 == 1 {
						group[i] -= 'a' - 'A'
					}
				}
				word += string(group)
			}
			small = word
		}
		words = append(words, small)
	}
	if len(entries) != 0 {
		t.Fatalf("%d bytes follow a block of words", len(entries))
	}
	return words
}

func TestSpecOfTermDictionary(t *testing.T) {
	s, sh := readSpec(t), sample(t)
	n := counts(t, s, sh)
	sorted := sh.words.sorted()
	if n["opaque"] != uint64(len(sh.words.opaque)) {
		t.Errorf("WINF is %v, of %d opaque superblocks", n, len(sh.words.opaque))
	}
	ends, _, _ := readList(t, sh.sections["WOFF"])
	var words []string
	seen, from := map[string]int{}, uint64(0)
	for i, end := range ends {
		words = append(words, decodeWords(t, sh.sections["WLEX"][from:end], min(len(sorted)-i*32, 32), seen)...)
		from = end
	}
	if from != n["length of WLEX"] || !slices.Equal(words, sorted) {
		t.Errorf("words are\n%q\nwant\n%q", words, sorted)
	}
	var samples []byte
	for i := 0; i < len(sorted); i += 64 * 32 {
		samples = append(samples, (strings.ToLower(sorted[i]) + strings.Repeat("\x00", 16))[:16]...)
	}
	if !bytes.Equal(sh.sections["WSMP"], samples) || len(s.rows(t, "WSMP")) != 1 {
		t.Errorf("WSMP is %q, not %q", sh.sections["WSMP"], samples)
	}
	for _, row := range s.rows(t, "Blocks of WLEX 3") {
		if seen["spelling "+row[0]] == 0 {
			t.Errorf("the sample has no word of spelling %s", row[0])
		}
	}
	if seen["more shared"] == 0 || seen["more bytes"] == 0 || len(words) <= 256 || len(s.rows(t, "Blocks of WLEX 3")) != 4 {
		t.Errorf("the sample does not show all: %v of %d words", seen, len(words))
	}
	if opaque, _, _ := readList(t, sh.sections["WOPQ"]); !slices.Equal(opaque, sh.words.opaque) {
		t.Errorf("opaque %v, want %v", opaque, sh.words.opaque)
	}
}

func TestSpecOfWordPostings(t *testing.T) {
	s, sh := readSpec(t), sample(t)
	x := readIndexSpec(t, s)
	n := counts(t, s, sh)
	values := map[string]uint64{}
	_, lists, blocks := s.record(t, "Tables", sh.sections["WTAB"], values, "ngrams")
	sorted := sh.words.sorted()
	terms := len(sorted) + int(n["part lists"])
	if values["terms"] != uint64(terms) || values["text superblocks"] != n["superblocks"] ||
		len(lists["ends"]) != terms || uint64(len(blocks)) != (n["superblocks"]+1)/2 {
		t.Fatalf("WTAB is %v with %d ends", values, len(lists["ends"]))
	}
	from, total, longest := uint64(0), uint64(0), 0
	names := append(sorted, sh.words.listParts(t, sh.sections["WPRT"], blocks)...)
	if len(names) != terms || len(names)-len(sorted) < 4 {
		t.Fatalf("%d words and %d lists of parts, not %d", len(sorted), len(names)-len(sorted), n["part lists"])
	}
	for i, word := range names {
		want := sh.words.words[word]
		superblocks, postings := x.postings(t, sh.sections["WPST"][from:lists["ends"][i]], n["superblocks"], blocks, true)
		from = lists["ends"][i]
		total += uint64(len(superblocks))
		longest = max(longest, len(superblocks))
		if len(superblocks) != len(want) || !slices.IsSorted(superblocks) {
			t.Fatalf("%q has %d postings, want %d", word, len(superblocks), len(want))
		}
		for j, superblock := range superblocks {
			if postings[j] != want[uint32(superblock)] {
				t.Fatalf("%q in superblock %d: %v, want %v", word, superblock, postings[j], want[uint32(superblock)])
			}
		}
	}
	if total != values["postings"] || from != n["length of WPST"] || longest <= 128 {
		t.Errorf("%d postings of %d, at most %d of a word, or bytes that no list has", total, values["postings"], longest)
	}
	if !slices.ContainsFunc(slices.Collect(maps.Values(sh.words.words[definedWord])), func(p wordPosting) bool { return p.defined }) {
		t.Error("the sample has no definition")
	}
	finder, _ := s.fixed(t, "WDEF", sh.sections["WDEF"])
	compare(t, "WDEF", finder, map[string]uint64{"finder": symbols.Version})
	last := map[uint32]uint8{}
	for _, list := range sh.words.words {
		for superblock, p := range list {
			last[superblock] |= p.mask
		}
	}
	for superblock := range uint32(n["superblocks"]) {
		count := blocks[superblock/2] >> (superblock % 2 * 4) & 15
		if last[superblock]>>count != 0 || count > 0 && last[superblock]>>(count-1) == 0 {
			t.Errorf("superblock %d has words in %08b and block count %d", superblock, last[superblock], count)
		}
	}
}

// Words are cut between these letters, before parts of them are counted.
var (
	smallCapital = regexp.MustCompile(`([a-z])([A-Z])`)
	lastCapital  = regexp.MustCompile(`([A-Z])([A-Z][a-z])`)
	letters      = regexp.MustCompile(`[A-Za-z]+`)
)

// listParts checks the section of the parts. It adds the postings of each list, under a name that no word has, to those of words, and returns the
// names in the order of the lists.
func (m *wordModel) listParts(t *testing.T, section, blocks []byte) (lists []string) {
	t.Helper()
	words := slices.Collect(maps.Keys(m.words))
	holders := map[string]int{}
	for _, word := range words {
		cut := lastCapital.ReplaceAllString(smallCapital.ReplaceAllString(word, "${1}_${2}"), "${1}_${2}")
		own := map[string]bool{}
		for _, component := range letters.FindAllString(cut, -1) {
			own[strings.ToLower(component)] = true
		}
		for component := range own {
			holders[component]++
		}
	}
	var parts []string
	for component, n := range holders {
		if n >= 64 && len(component) >= 3 && len(component) <= 16 {
			parts = append(parts, component)
		}
	}
	slices.Sort(parts)
	if len(section) != 20*len(parts) {
		t.Fatalf("WPRT has %d bytes for %d parts", len(section), len(parts))
	}
	for _, part := range parts {
		if name := strings.TrimRight(string(section[:16]), "\x00"); name != part || !slices.Contains(parts, "field") {
			t.Fatalf("WPRT has %q, want %q of %q", name, part, parts)
		}
		flags := uint32(0)
		for i, list := range []string{"ends", "insides"} {
			postings := map[uint32]wordPosting{}
			for _, word := range words {
				m.addPart(postings, word, part, list == "ends", blocks)
			}
			if len(postings) > 0 {
				flags |= 1 << i
				m.words[list+" of "+part] = postings
				lists = append(lists, list+" of "+part)
			}
		}
		if at, first := le.Uint32(section[16:]), uint32(len(lists)-bits.OnesCount32(flags)); at != first<<2|flags {
			t.Errorf("%q has the lists %#x, want %#x", part, at, first<<2|flags)
		}
		section = section[20:]
	}
	return lists
}

// addPart adds what the lists of a part have of a word: of matches at its ends, or of the others.
func (m *wordModel) addPart(to map[uint32]wordPosting, word, part string, ends bool, blocks []byte) {
	matches := uint64(0)
	for at := 0; len(part) < len(word); {
		i := strings.Index(strings.ToLower(word[at:]), part)
		if i < 0 {
			break
		}
		if from := at + i; (from == 0 || from+len(part) == len(word)) == ends {
			matches++
		}
		at += i + len(part)
	}
	if matches == 0 {
		return
	}
	for superblock, p := range m.words[word] {
		sum := to[superblock]
		count := blocks[superblock/2] >> (superblock % 2 * 4) & 15
		to[superblock] = wordPosting{uint8(1<<count - 1), sum.count + matches*p.count, sum.defined || p.defined}
	}
}
