package indextest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/query"
)

// Query is a generated query.
type Query struct {
	Text string
	// Kind names what the query tests.
	Kind string
	// Seed and Number say how to make the query again: it is query Number of Queries(c, Seed, …).
	Seed   uint64
	Number int
}

// Kinds returns the number of kinds: that many queries include one of each.
func Kinds() int { return len(kinds) }

// Queries makes n queries, of each kind in turn, from texts, paths and facts of the corpus, so that
// most find something. The same corpus and seed give the same queries. All have valid syntax.
func Queries(c *Corpus, seed uint64, n int) []Query { return queriesOf(kinds, c, seed, n) }

// OwnQueries makes queries with the fields that syntax version 2 adds, as Queries does.
func OwnQueries(c *Corpus, seed uint64, n int) []Query { return queriesOf(ownKinds, c, seed, n) }

func queriesOf(kinds []kind, c *Corpus, seed uint64, n int) []Query {
	g := newSampler(c, seed)
	queries := make([]Query, n)
	for i := range queries {
		k := kinds[i%len(kinds)]
		queries[i] = Query{Text: k.make(g), Kind: k.name, Seed: seed, Number: i}
	}
	return queries
}

// kind is a kind of query.
type kind struct {
	name string
	make func(*sampler) string
	// rare says that most of these queries find nothing.
	rare bool
}

// kinds are all kinds of queries. Those with type:repo are not part of other queries.
var kinds = append(generalKinds, wordKinds...)

var generalKinds = []kind{
	{"word", func(g *sampler) string { return Quote(g.word()) }, false},
	{"substring", func(g *sampler) string { return Quote(g.text(3, 24)) }, false},
	{"short", func(g *sampler) string { return Quote(g.text(1, 2)) }, false},
	{"long", func(g *sampler) string { return Quote(g.text(30, 600)) }, false},
	{"other case", func(g *sampler) string { return "case:no " + Quote(g.flipped(g.text(2, 20))) }, false},
	{"case", func(g *sampler) string { return "case:yes " + Quote(g.text(2, 20)) }, false},
	{"near miss", func(g *sampler) string { return Quote(g.text(2, 12) + g.text(2, 12)) }, true},
	{"regexp", (*sampler).regexp, false},
	{"regexp case", func(g *sampler) string { return pickOne(g, "case:yes ", "case:no ") + g.regexp() }, false},
	{"content", func(g *sampler) string { return "c:" + g.term() }, false},
	{"file", func(g *sampler) string { return "f:" + Quote(g.path()) }, false},
	{"file regexp", func(g *sampler) string {
		return pickOne(g, `f:\.go$`, `f:^src/`, `f:[a-z]+_probe\.c`, `f:(?i)readme|main`)
	}, false},
	{"and", func(g *sampler) string { return g.term() + " " + g.term() }, false},
	{"or", func(g *sampler) string { return g.term() + " or " + g.term() }, false},
	{"not", func(g *sampler) string { return g.term() + " -" + g.term() }, false},
	{"only not", func(g *sampler) string { return "-" + g.term() }, false},
	{"repo", func(g *sampler) string { return g.repoTerm() + " " + g.term() }, false},
	{"branch", func(g *sampler) string { return g.branchTerm() + " " + g.term() }, false},
	{"language", func(g *sampler) string { return "lang:" + g.language() + " " + g.term() }, false},
	{"fact", func(g *sampler) string { return g.fact() + " " + g.term() }, false},
	{"facts only", func(g *sampler) string { return g.fact() + " " + g.branchTerm() + " -lang:" + g.language() }, false},
	{"type file", func(g *sampler) string { return "type:file " + g.term() + " or " + g.term() }, false},
	{"type within", func(g *sampler) string { return "(type:file " + g.term() + " ) " + g.term() }, false},
	{"type repo", func(g *sampler) string { return "type:repo " + g.term() }, false},
	{"type repo within", func(g *sampler) string { return "-(type:repo " + g.term() + " ) " + g.term() }, false},
	{"nested", func(g *sampler) string { return g.tree(4) }, false},
	{"all", func(g *sampler) string { return pickOne(g, "", "( )", `f:""`, "type:file", "-lang:nothing") }, false},
	{"none", func(g *sampler) string { return pickOne(g, "-c:", "lang:nothing", "qqzzyx", `[^\x00-\x{10FFFF}]`) }, true},
	{"not ASCII", func(g *sampler) string { return pickOne(g, "", "c:", "case:yes ", "case:no ") + Quote(g.runes(1, 8)) }, false},
	{"not ASCII, other case", func(g *sampler) string { return "case:no " + Quote(g.flipped(g.runes(2, 8))) }, false},
	{"not ASCII, near miss", func(g *sampler) string {
		return pickOne(g, "case:yes ", "case:no ") + Quote(g.runes(1, 3)+g.runes(1, 3))
	}, true},
	{"not ASCII, regexp", func(g *sampler) string {
		return pickOne(g, "case:yes ", "case:no ") + query.Quote(regexp.QuoteMeta(g.runes(1, 5))+pickOne(g, ".{0,3}", ".*", "|", "[^a]")+regexp.QuoteMeta(g.flipped(g.runes(1, 5))))
	}, false},
	{"symbol", func(g *sampler) string { return "sym:" + Quote(g.word()) }, true},
	{"symbol, part", func(g *sampler) string { return "sym:" + Quote(g.text(1, 4)) }, true},
	{"symbol, regexp", func(g *sampler) string {
		return "sym:" + pickOne(g, "^", "") + "[a-z_]+" + pickOne(g, "$", ".*", "[A-Z]")
	}, false},
}

var ownKinds = []kind{
	{"reference", func(g *sampler) string { return "ref:" + Quote(g.word()) }, false},
	{"reference, part", func(g *sampler) string { return "ref:" + Quote(g.text(1, 5)) }, false},
	{"reference, whole word", func(g *sampler) string { return pickOne(g, "case:yes ", "") + `ref:\b` + Quote(g.word()) + `\b` }, false},
	{"reference, regexp", func(g *sampler) string { return pickOne(g, `ref:\w+`, `ref:[a-z]x*`, `ref:x*`, `ref:"[^a-z]+"`) }, false},
	{"reference beside others", func(g *sampler) string {
		return pickOne(g, "", "-") + "ref:" + Quote(g.word()) + pickOne(g, " ", " or ") + g.term() + pickOne(g, "", " sym:a", " f:a", " type:file")
	}, true},
	{"references where it is defined", func(g *sampler) string {
		name := Quote(g.word())
		return "ref:" + name + pickOne(g, " ", " or ", " -") + "sym:" + name
	}, true},
	{"symbols of a kind", func(g *sampler) string {
		return pickOne(g, "sym.kind:function", "sym.kind:type sym.kind:method", "sym.kind:field lang:"+g.language()) + pickOne(g, "", " sym:a", " sym:"+Quote(g.word()))
	}, true},
	{"any", func(g *sampler) string {
		words := []string{"match:any"}
		for range 1 + g.rng.IntN(12) {
			words = append(words, pickOne(g, Quote(g.word()), Quote(g.text(1, 6)), g.regexp(), "the", "return"))
		}
		return strings.Join(words, " ") + pickOne(g, "", "", " -"+g.term(), " lang:"+g.language(), " c:"+Quote(g.word()), " ("+g.term()+" )")
	}, false},
	{"type symbol", func(g *sampler) string {
		return "type:symbol " + pickOne(g, "", "sym.kind:constant ") + pickOne(g, "", g.term(), g.term()+" or "+g.term(), "-"+g.term())
	}, true},
}

// Quote writes a text as one term of the query language that searches for exactly this text. The
// text is UTF-8 and not empty.
func Quote(text string) string { return query.Quote(regexp.QuoteMeta(text)) }

// sampler samples parts of queries from a corpus.
type sampler struct {
	rng    *rand.Rand
	corpus *Corpus
	texts  []*Document // documents with content
	all    []*Document
	large  bool // the corpus has more than largeCorpus bytes
}

const largeCorpus = 512 << 10

func newSampler(c *Corpus, seed uint64) *sampler {
	g := &sampler{rng: rand.New(rand.NewPCG(seed, 2)), corpus: c}
	size := 0
	for i := range c.Repos {
		for j := range c.Repos[i].Documents {
			d := &c.Repos[i].Documents[j]
			g.all = append(g.all, d)
			if len(d.Content) > 0 {
				g.texts = append(g.texts, d)
				size += len(d.Content)
			}
		}
	}
	g.large = size > largeCorpus
	return g
}

func pickOne[T any](g *sampler, from ...T) T { return from[g.rng.IntN(len(from))] }

// text returns least to most bytes from any place, including the middle of words; fewer if there is
// no such stretch of UTF-8. It is never empty.
func (g *sampler) text(least, most int) string {
	for range 20 {
		if len(g.texts) == 0 {
			break
		}
		content := pickOne(g, g.texts...).Content
		start := g.rng.IntN(len(content))
		end := min(len(content), start+least+g.rng.IntN(most-least+1))
		if s := validPart(content[start:end]); s != "" {
			return s
		}
	}
	return "foo"
}

// runes returns least to most runes around one beyond ASCII.
func (g *sampler) runes(least, most int) string {
	for range 40 {
		if len(g.texts) == 0 {
			break
		}
		content := pickOne(g, g.texts...).Content
		at := g.rng.IntN(len(content))
		next := bytes.IndexFunc(content[at:], func(r rune) bool { return r >= utf8.RuneSelf && r != utf8.RuneError })
		if next < 0 {
			continue
		}
		at += next
		before := validPart(content[max(0, at-g.rng.IntN(6)):at])
		s := []rune(before + validPart(content[at:min(at+4*most, len(content))]))
		if len(s) > least && slices.Max(s) >= utf8.RuneSelf {
			return string(s[:min(len(s), least+g.rng.IntN(most-least+1))])
		}
	}
	return "größe"
}

// validPart returns the first stretch of UTF-8 without U+FFFD.
func validPart(b []byte) string {
	for len(b) > 0 && !utf8.RuneStart(b[0]) {
		b = b[1:]
	}
	n := 0
	for n < len(b) {
		r, size := utf8.DecodeRune(b[n:])
		if r == utf8.RuneError {
			break
		}
		n += size
	}
	return string(b[:n])
}

// word returns a whole identifier.
func (g *sampler) word() string {
	for range 20 {
		words := strings.FieldsFunc(g.text(10, 60), func(r rune) bool { return !unicode.IsLetter(r) && r != '_' })
		if len(words) > 2 {
			return words[1]
		}
	}
	return "foo"
}

func (g *sampler) path() string {
	if len(g.all) == 0 {
		return "main"
	}
	path := pickOne(g, g.all...).Path
	start := g.rng.IntN(len(path))
	if s := validPart([]byte(path[start:min(len(path), start+1+g.rng.IntN(12))])); s != "" {
		return s
	}
	return "main"
}

// flipped changes the case of random letters, as far as they fold together.
func (g *sampler) flipped(s string) string {
	return strings.Map(func(r rune) rune {
		for range g.rng.IntN(3) {
			r = unicode.SimpleFold(r)
		}
		return r
	}, s)
}

func (g *sampler) repoTerm() string {
	if len(g.corpus.Repos) == 0 {
		return "r:a"
	}
	name := pickOne(g, g.corpus.Repos...).Name
	return pickOne(g, "", "-") + "r:" + pickOne(g, regexp.QuoteMeta(name), "^"+regexp.QuoteMeta(name)+"$",
		regexp.QuoteMeta(validPart([]byte(name[:1+len(name)/2]))), "org|tools", "(?i)ORG")
}

func (g *sampler) branchTerm() string {
	names := []string{"HEAD", "nothing", "e"}
	for _, r := range g.corpus.Repos {
		names = append(names, r.Branches...)
	}
	return pickOne(g, "", "-") + "b:" + pickOne(g, names...)
}

func (g *sampler) language() string {
	names := []string{"nothing"}
	for _, d := range g.all {
		if d.Language != "" {
			names = append(names, d.Language)
		}
	}
	return pickOne(g, names...)
}

func (g *sampler) fact() string {
	field := pickOne(g, "archived:", "fork:", "public:", "meta.team:")
	if field == "meta.team:" {
		return pickOne(g, "", "-") + field + pickOne(g, "infra", "^infra$", "^$", "sea.ch", "")
	}
	return field + pickOne(g, "yes", "no")
}

// term returns one text atom, with or without a field.
func (g *sampler) term() string {
	switch g.rng.IntN(6) {
	case 0:
		return "c:" + Quote(g.text(2, 10))
	case 1:
		return "f:" + Quote(g.path())
	case 2:
		return g.regexp()
	case 3:
		return Quote(g.word())
	}
	return Quote(g.text(1, 10))
}

// tree returns a query with nested groups.
func (g *sampler) tree(depth int) string {
	if depth == 0 {
		return pickOne(g, (*sampler).term, (*sampler).repoTerm, (*sampler).branchTerm, (*sampler).fact)(g)
	}
	a, b := g.tree(g.rng.IntN(depth)), g.tree(g.rng.IntN(depth))
	mode := pickOne(g, "", "", "case:yes ", "case:no ", "case:auto ", "type:file ", "type:filematch ")
	format := pickOne(g, "( %s%s %s )", "( %s%s or %s )", "( %s%s -%s )", "-( %s%s %s )", "( %s%s or -%s )")
	if strings.HasPrefix(b, "-") {
		format = strings.ReplaceAll(format, "-%s", "%s")
	}
	return fmt.Sprintf(format, mode, a, b)
}
