package search_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/bits"
	"reflect"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/testrun"
)

// wordShard is a small shard with something of everything that an index of words has, and queries
// that it answers from that index.
func wordShard(t testing.TB) (data []byte, queries []query.Q) {
	t.Helper()
	var lexicon bytes.Buffer
	for i := range 300 {
		fmt.Fprintf(&lexicon, "w%02x%c ", i*5%256, 'a'+i%3)
	}
	text := strings.Repeat("quick brown fox ", 260) + "QUICK Quick qUick " + strings.Repeat("abcdefgh", 16) + "\n" +
		strings.Repeat(" ", 4096) + strings.Repeat("toolong", 30) + " quick "
	text += strings.Repeat(".", 4*4096-len(text)-7) + " \u212Aquick_" + "goes_on in what is not opaque quick"
	c := &indextest.Corpus{Repos: []indextest.Repo{{Name: "a", Branches: []string{"main"}, Documents: []indextest.Document{
		{Path: "a.txt", Content: []byte("one quick word\n"), Branches: []string{"main"}},
		{Path: "b.txt", Content: lexicon.Bytes(), Branches: []string{"main"}},
		{Path: "c.txt", Content: []byte(text), Branches: []string{"main"}},
		{Path: "d.txt", Content: []byte("one quick word\n"), Branches: []string{"main"}},
		{Path: "e.txt", Content: []byte("one quick word\n"), Branches: []string{"main"}},
	}}}}
	for _, text := range []string{
		"quick", "case:yes QUICK", "\\bqu[a-z]+k\\b", "toolong", "goes_on", "kquick", "w0", "w[0-9]5a", "quick brown", "ui or wn",
		"\"fox quick\"", "[a-h]{20}", "w[0-9a-f]", "q", "nothing", "fox\\s+quick",
	} {
		q, err := query.Parse(text, query.ParseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		queries = append(queries, q)
	}
	return buildShard(t, c), queries
}

// wordAnswers runs the queries one by one and returns their results or errors.
func wordAnswers(s *search.Shard, queries []query.Q) (found []*search.Result, errs []error) {
	for _, q := range queries {
		res, err := searchTree(s, q, search.Options{MaxFiles: 100, MaxMatchesPerFile: 1000})
		found, errs = append(found, res), append(errs, err)
	}
	return found, errs
}

// checkWordDamage opens, searches and verifies a shard with a damaged index of words and correct
// checksums. Each error is typed and names its place, memory stays within bounds, and if Verify
// finds no fault, the hits are correct.
func checkWordDamage(t testing.TB, what string, data []byte, queries []query.Q, want []*search.Result) (verified error) {
	t.Helper()
	typed := func(err error) {
		var corrupt *format.CorruptError
		if err != nil && !errors.Is(err, format.ErrVersion) && (!errors.As(err, &corrupt) || corrupt.File == "" || corrupt.Section == "") {
			t.Fatalf("%s: an error without type, file or section: %v", what, err)
		}
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f, err := format.NewFile("hostile.trawl", data)
	if err != nil {
		typed(err)
		return err
	}
	s, err := search.OpenFile(f)
	if err != nil {
		typed(err)
		return err
	}
	got, errs := wordAnswers(s, queries)
	verified = s.Verify(context.Background())
	runtime.ReadMemStats(&after)
	typed(verified)
	for i, err := range errs {
		typed(err)
		if verified != nil {
			continue
		}
		if err != nil || got[i].Stats.Matches != want[i].Stats.Matches || !reflect.DeepEqual(got[i].Files, want[i].Files) {
			t.Fatalf("%s: Verify finds no fault, and query %d finds\n%+v %v\nwant\n%+v", what, i, got[i], err, want[i])
		}
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 { // measured: up to 4 MB
		t.Fatalf("%s: %d bytes were allocated", what, used)
	}
	return verified
}

// comparedTags are the sections that Verify compares with contents, in addition to those of words: where lines begin, and which documents share
// a content.
var comparedTags = []format.Tag{format.TagLines, format.TagSharedBlobs, format.TagSharedDocs}

// TestHostileWordBytes changes bytes of the sections of words, and of others that Verify compares with contents, and writes correct checksums.
func TestHostileWordBytes(t *testing.T) {
	data, queries := wordShard(t)
	s := openShard(t, data)
	want, errs := wordAnswers(s, queries)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("sound.trawl", data)
	if err != nil {
		t.Fatal(err)
	}
	before, step := 0, testrun.Rounds(7, 1) // bytes of the sections before
	for _, info := range f.Sections() {
		found, n := 0, 0
		for i := range int(info.Length) {
			compared := slices.Contains(comparedTags, info.Tag)
			if info.Tag.String()[0] != 'W' && !compared {
				break
			}
			if i%step > 0 && !compared {
				continue
			}
			n++
			mask := []byte{0x01, 0x10, 0x80, 0xff}[i%4]
			what := fmt.Sprintf("byte %d of %s ^ %#x", i, info.Tag, mask)
			if checkWordDamage(t, what, sealed(t, data, before+i, mask), queries, want) != nil {
				found++
			}
		}
		before += int(info.Length)
		if n > 0 {
			t.Logf("%s: Verify finds %d of %d changes", info.Tag, found, n)
		}
	}
}

// resealed rewrites a shard with other sections and correct checksums.
func resealed(t testing.TB, data []byte, other map[string][]byte) []byte {
	t.Helper()
	return rewritten(t, data, func(tag format.Tag, body []byte) []byte {
		if changed, ok := other[tag.String()]; ok {
			return changed
		}
		return body
	})
}

// copiedSections returns a copy of each section.
func copiedSections(t testing.TB, data []byte) map[string][]byte {
	t.Helper()
	f, err := format.NewFile("sound.trawl", data)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string][]byte{}
	for _, info := range f.Sections() {
		sections[info.Tag.String()] = bytes.Clone(data[info.Offset:][:info.Length])
	}
	return sections
}

// hostileList encodes numbers as a list of a shard, even if they do not ascend: where two descend,
// only their lower bits do, and their higher bits are equal. There must be few.
func hostileList(t testing.TB, universe uint64, values ...uint64) []byte {
	t.Helper()
	n := uint64(len(values))
	data := binary.AppendUvarint(binary.AppendUvarint(nil, n), universe)
	low := max(bits.Len64(universe/n), 1) - 1
	lows, highs := make([]byte, (int(n)*low+7)/8), make([]byte, (n+(universe-1)>>low+1+63)/64*8)
	last := 0
	for i, v := range values {
		for b := range low {
			lows[(i*low+b)/8] |= byte(v>>b&1) << ((i*low + b) % 8)
		}
		if at := int(v>>low) + i; at < last || len(highs) > 64 {
			t.Fatalf("%v cannot be written", values)
		} else {
			highs[at/8] |= 1 << (at % 8)
			last = at + 1
		}
	}
	return append(append(data, lows...), highs...)
}

// wordCounts are counts of the damaged index.
type wordCounts struct{ words, superblocks uint32 }

// TestHostileWordSections damages the index of words in ways that take more than a byte. Verify or
// opening the shard finds each.
func TestHostileWordSections(t *testing.T) {
	data, queries := wordShard(t)
	s := openShard(t, data)
	want, errs := wordAnswers(s, queries)
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	table := copiedSections(t, data)["WTAB"]
	c := wordCounts{words: binary.LittleEndian.Uint32(table), superblocks: binary.LittleEndian.Uint32(table[4:])}
	for _, damages := range []map[string]func(map[string][]byte){c.hostileCounts(t), c.hostileLexicon(t), c.hostileLists(t)} {
		for name, damage := range damages {
			t.Run(name, func(t *testing.T) {
				sections := copiedSections(t, data)
				damage(sections)
				if checkWordDamage(t, name, resealed(t, data, sections), queries, want) == nil {
					t.Error("Verify finds no fault")
				}
			})
		}
	}
}

func put(p []byte, at int, v uint32) { binary.LittleEndian.PutUint32(p[at:], v) }

// hostileCounts are counts that do not agree with the data.
func (c wordCounts) hostileCounts(t testing.TB) map[string]func(s map[string][]byte) {
	t.Helper()
	return map[string]func(s map[string][]byte){
		"billions of superblocks": func(s map[string][]byte) {
			put(s["WTAB"], 4, 1<<31)
		},
		"superblocks beyond the content": func(s map[string][]byte) {
			put(s["WTAB"], 4, c.superblocks+2)
			s["WTAB"] = append(s["WTAB"], 0x88)
			s["WOPQ"] = hostileList(t, uint64(c.superblocks+2), uint64(c.superblocks), uint64(c.superblocks)+1)
			put(s["WINF"], 0, 2)
		},
		"billions of words": func(s map[string][]byte) {
			put(s["WTAB"], 0, 1<<31)
		},
		"more words than there are": func(s map[string][]byte) {
			put(s["WTAB"], 0, c.words+1)
		},
	}
}

// hostileLexicon has invalid words, and blocks and n-grams of other words.
func (c wordCounts) hostileLexicon(t testing.TB) map[string]func(s map[string][]byte) {
	t.Helper()
	const blockWords = 32
	lexiconBlocks := (int(c.words) + blockWords - 1) / blockWords
	return map[string]func(s map[string][]byte){
		"a newline in a word": func(s map[string][]byte) { s["WLEX"] = bytes.Replace(s["WLEX"], []byte("uick"), []byte("ui\nk"), 1) },
		"a zero in a word":    func(s map[string][]byte) { s["WLEX"] = bytes.Replace(s["WLEX"], []byte("uick"), []byte("\x00ick"), 1) },
		"a capital in small letters": func(s map[string][]byte) {
			s["WLEX"] = bytes.Replace(s["WLEX"], []byte("uick"), []byte("Uick"), 1)
		},
		"another word":       func(s map[string][]byte) { s["WLEX"] = bytes.Replace(s["WLEX"], []byte("uick"), []byte("uicl"), 1) },
		"a byte after words": func(s map[string][]byte) { s["WLEX"] = append(s["WLEX"], 0); s["WOFF"] = nil },
		"blocks of the lexicon that end before they start": func(s map[string][]byte) {
			s["WOFF"] = hostileList(t, uint64(len(s["WLEX"])+1), descending(lexiconBlocks, uint64(len(s["WLEX"])))...)
		},
		"blocks of the lexicon without bytes": func(s map[string][]byte) {
			s["WOFF"] = hostileList(t, uint64(len(s["WLEX"])+1), make([]uint64, lexiconBlocks)...)
		},
		"a lexicon without n-grams": func(s map[string][]byte) {
			s["WNGM"] = append(make([]byte, 4+4+8), 0, 0, 0, 0, 0, 0)
			s["WNPS"] = nil
		},
		"a word without bytes": func(s map[string][]byte) { s["WLEX"][blockWords/4] = 0 }, // the first one's head
		"no postings":          func(s map[string][]byte) { s["WPST"] = nil },
	}
}

// hostileLists has lists of superblocks and blobs that do not ascend or do not fit the content.
func (c wordCounts) hostileLists(t testing.TB) map[string]func(s map[string][]byte) {
	t.Helper()
	le, superblocks := binary.LittleEndian, c.superblocks
	return map[string]func(s map[string][]byte){
		"opaque superblocks that descend": func(s map[string][]byte) {
			put(s["WINF"], 0, 2)
			s["WOPQ"] = hostileList(t, uint64(superblocks), 3, 2)
		},
		"all superblocks are opaque": func(s map[string][]byte) {
			put(s["WINF"], 0, superblocks)
			all := make([]uint64, superblocks)
			for i := range all {
				all[i] = uint64(i)
			}
			s["WOPQ"] = hostileList(t, uint64(superblocks), all...)
		},
		"one superblock is opaque several times": func(s map[string][]byte) {
			s["WOPQ"] = hostileList(t, uint64(superblocks), slices.Repeat([]uint64{5}, int(le.Uint32(s["WINF"])))...)
		},
		"no superblock is opaque": func(s map[string][]byte) {
			put(s["WINF"], 0, 0)
			s["WOPQ"] = binary.AppendUvarint([]byte{0}, uint64(superblocks))
		},
		"block counts of superblocks without words": func(s map[string][]byte) {
			counts := s["WTAB"][len(s["WTAB"])-int(superblocks+1)/2:]
			counts[2] |= 0x01 // superblock 4 is opaque
		},
		"blobs that start nowhere": func(s map[string][]byte) { s["BSUP"] = hostileList(t, uint64(superblocks)+1, 0, 0, 0, 0) },
		"blobs that descend": func(s map[string][]byte) {
			s["BSUP"] = hostileList(t, uint64(superblocks)+1, 1, 0, uint64(superblocks), uint64(superblocks))
		},
		"blobs that end before opaque superblocks": func(s map[string][]byte) {
			s["BSUP"] = hostileList(t, uint64(superblocks)+1, 0, 3, 2, uint64(superblocks))
		},
	}
}

// descending returns n places. Every second one is lower than the one before it.
func descending(n int, last uint64) (values []uint64) {
	for i := range n {
		values = append(values, uint64(i)*last/uint64(n)&^3+uint64(3-i%2))
	}
	return values
}

// FuzzHostileWords looks for several changed bytes of the index of words that do harm together.
func FuzzHostileWords(f *testing.F) {
	data, queries := wordShard(f)
	sound, err := format.NewFile("sound.trawl", data)
	if err != nil {
		f.Fatal(err)
	}
	sections := copiedSections(f, data)
	var tags []string
	for _, info := range sound.Sections() {
		if tag := info.Tag.String(); tag[0] == 'W' && info.Length > 0 {
			tags = append(tags, tag)
		}
	}
	f.Add([]byte{})
	f.Add([]byte{0, 0, 1, 255, 3, 2, 0, 128})
	f.Fuzz(func(t *testing.T, patch []byte) {
		s, err := search.OpenFile(sound)
		if err != nil {
			t.Fatal(err)
		}
		want, errs := wordAnswers(s, queries)
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
		other := map[string][]byte{}
		for change := range slices.Chunk(patch[:min(len(patch), 32)/4*4], 4) {
			tag := tags[int(change[0])%len(tags)]
			if other[tag] == nil {
				other[tag] = bytes.Clone(sections[tag])
			}
			at := int(binary.LittleEndian.Uint16(change[1:])) % len(other[tag])
			other[tag][at] ^= change[3]
		}
		checkWordDamage(t, fmt.Sprintf("patch %v", patch), resealed(t, data, other), queries, want)
	})
}
