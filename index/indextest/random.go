package indextest

import (
	"bytes"
	"cmp"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Random makes a small corpus of things that indexes get wrong. Documents are
// empty, of one byte, without a final newline, with CRLF, with CJK, with
// letters that fold together only beyond ASCII (the Kelvin sign, long s), or
// not UTF-8. Texts cross every power of two that a block may have. One content
// is at several paths and in several repos, and one path has several contents
// on different branches. There are skipped documents, paths with newlines and
// invalid UTF-8, and a repo without documents. Repos have ranks if the seed is
// odd. The same seed gives the same corpus.
func Random(seed uint64) *Corpus {
	m := maker{rng: rand.New(rand.NewPCG(seed, 1)), folders: folders, fileNames: fileNames}
	m.content = m.randomContent
	c := m.corpus(fmt.Sprintf("indextest.Random(%d)", seed))
	if seed%2 == 1 {
		for i := range c.Repos {
			c.Repos[i].Rank = uint8((seed + uint64(i)*47) % 101)
		}
	}
	return c
}

// maker makes a random corpus.
type maker struct {
	rng                *rand.Rand
	content            func() []byte // makes a content
	folders, fileNames []string
	words              []string // of Words
	pool               [][]byte // contents that several documents share
}

// corpus makes a few repos.
func (m *maker) corpus(name string) *Corpus {
	c := &Corpus{Name: name}
	for range 1 + m.rng.IntN(8) {
		m.pool = append(m.pool, m.content())
	}
	names := slices.Clone(repoNames)
	m.rng.Shuffle(len(names), func(i, j int) { names[i], names[j] = names[j], names[i] })
	for _, name := range names[:1+m.rng.IntN(4)] {
		c.Repos = append(c.Repos, m.repo(name))
	}
	c.sort()
	return c
}

var (
	repoNames     = []string{"github.com/org/alpha", "github.com/org/alphabet", "git.example.com/Tools", "local/ſmall", "a", "github.com/Org/beta"}
	branchNames   = []string{"main", "dev", "release/1.0", "release/1.1", "Main"}
	languageNames = []string{"", "Go", "C", "C++", "Markdown"}
	folders       = []string{"", "src/", "src/net/", "Docs/", "vendor/kelvin/", "日本/", "a b/"}
	fileNames     = []string{"main.go", "Main.go", "README", "x", "tcp_probe.c", "\u212Aelvin.txt", "line\nbreak", "bad\xff\xfe.c", "tab\tname", "界.md", "a\"b\\c"}
)

func pick[T any](m *maker, from []T) T { return from[m.rng.IntN(len(from))] }

func (m *maker) chance(percent int) bool { return m.rng.IntN(100) < percent }

func (m *maker) repo(name string) Repo {
	r := Repo{Name: name, Archived: m.chance(30), Fork: m.chance(30), Public: m.chance(60)}
	r.Branches = slices.Clone(branchNames[:1+m.rng.IntN(len(branchNames))])
	m.rng.Shuffle(len(r.Branches), func(i, j int) { r.Branches[i], r.Branches[j] = r.Branches[j], r.Branches[i] })
	if m.chance(60) {
		r.Meta = map[string]string{"team": pick(m, []string{"infra", "search", "infra\nsearch", ""})}
	}
	paths := map[string]bool{}
	for range m.rng.IntN(12) {
		paths[pick(m, m.folders)+pick(m, m.fileNames)] = true
	}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		r.Documents = append(r.Documents, m.versions(path, r.Branches)...)
	}
	return r
}

// versions returns the documents at one path: each branch has one of a few
// contents, or none.
func (m *maker) versions(path string, branches []string) []Document {
	var docs []Document
	for _, b := range branches {
		if len(docs) > 0 && m.chance(20) {
			continue
		}
		if len(docs) == 0 || m.chance(30) {
			docs = append(docs, m.document(path, docs))
		}
		d := &docs[m.rng.IntN(len(docs))]
		d.Branches = append(d.Branches, b)
	}
	return slices.DeleteFunc(docs, func(d Document) bool { return len(d.Branches) == 0 })
}

// document returns a document that differs in content from the others at its
// path.
func (m *maker) document(path string, others []Document) Document {
	d := Document{Path: path, Language: pick(m, languageNames)}
	if len(others) == 0 && m.chance(10) {
		d.Skipped = true
		return d
	}
	d.Content = m.content()
	if m.chance(40) {
		d.Content = pick(m, m.pool)
	}
	for slices.ContainsFunc(others, func(o Document) bool { return bytes.Equal(o.Content, d.Content) }) {
		d.Content = append(bytes.Clone(d.Content), pick(m, words)...)
	}
	return d
}

// words are few and similar, so that a query taken from one document nearly
// matches in others.
var words = []string{
	"foo", "Foo", "FOO", "foobar", "bar", "barfoo", "oo", "o", "static", "int", "return", "Probe", "_probe(", "dma_map_single",
	"kmalloc", "\u212Amalloc", "Kmalloc", "misſ", "miss", "MISS", "straße", "STRASSE", "日本語", "本", "漢字かな", "é", "É", "e\u0301",
	"\xff", "\xfe\xff", "\xc3", "\xe6\x97", "\uFFFD", "😀", "(", ")", "\"", "\\", ".*", "-", "or", "a", "b", "x", "aaaa", "0x1F", "12345", "ǅ", "Ω", "\u2126",
	"größe", "GRÖẞE", "naïve", "Привет", "ПРИВЕТ", "мир", "вот", "\u1C80от", "東京都", "モジュール", "ール\xe6", "한국어", "ⱥȺⱥ", "𐐀𐐨", "\u0390\u1FD3", "\u212Bngström", "→", "«a»",
}

var separators = []string{" ", " ", " ", "\n", "\n", "\r\n", "\t", "", "", "_", "; ", "\n\n", "\n\t"}

// randomContent returns a content of any size up to three superblocks, mostly a
// small one.
func (m *maker) randomContent() []byte {
	switch m.rng.IntN(10) {
	case 0:
		return []byte{}
	case 1:
		return []byte(pick(m, []string{"a", "k", "\n", "\xff", "S"}))
	case 2:
		return m.straddling()
	case 3:
		return []byte(strings.Repeat(pick(m, words)+pick(m, separators), 1+m.rng.IntN(900)))
	case 4:
		return m.prose(2000 + m.rng.IntN(9000))
	case 5:
		return m.holders()
	}
	return m.prose(m.rng.IntN(700))
}

// holders returns some hundred different words that hold a few others, so that these are parts of words of the index.
func (m *maker) holders() []byte {
	var b []byte
	for i := range 150 {
		b = fmt.Appendf(b, pick(m, []string{"foo%d", "Foo%dbar", "x_foo_%d", "a%dbarfoo", "MISS%d", "%d_miss_foo", "aaaa%d", "bar%d"}), i)
		b = append(b, pick(m, separators)...)
	}
	return b
}

// prose returns random words and separators of at least size bytes.
func (m *maker) prose(size int) []byte {
	var b []byte
	for len(b) < size {
		b = append(b, pick(m, words)...)
		b = append(b, pick(m, separators)...)
	}
	return b
}

// straddling returns words across the borders of blocks, between filler that no
// query looks for.
func (m *maker) straddling() []byte {
	filler := pick(m, []string{"~", "~~~~~~\n", "#", "\u00b7"})
	size := 512 * (1 + m.rng.IntN(20))
	b := []byte(strings.Repeat(filler, size/len(filler)+1))
	for border := 512; border < size; border += 512 * (1 + m.rng.IntN(3)) {
		word := pick(m, words) + pick(m, separators) + pick(m, words)
		at := border - m.rng.IntN(len(word)+2)
		copy(b[at:], word)
	}
	return b[:cmp.Or(m.rng.IntN(2)*size, len(b))]
}
