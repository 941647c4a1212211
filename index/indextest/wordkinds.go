package indextest

import (
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/query"
)

// wordKinds are the kinds of queries that an index of words answers or helps to answer, and those
// that only look as if it could.
var wordKinds = []kind{
	{"within a word", func(g *sampler) string { return anyCase(g) + Quote(g.wordPart(1, 12)) }, false},
	{"word, other case", func(g *sampler) string { return "case:no " + Quote(g.flipped(g.wholeWord())) }, false},
	{"whole word", func(g *sampler) string { return anyCase(g) + query.Quote(`\b`+g.wholeWord()+`\b`) }, false},
	{"start of a word", func(g *sampler) string { return anyCase(g) + query.Quote(`\b`+g.wordStart()) }, false},
	{"end of a word", func(g *sampler) string { return anyCase(g) + query.Quote(g.wordEnd()+`\b`) }, false},
	{"not the start of a word", func(g *sampler) string { return anyCase(g) + query.Quote(`\B`+g.wordEnd()) }, false},
	{"not the end of a word", func(g *sampler) string { return anyCase(g) + query.Quote(g.wordStart()+`\B`) }, false},
	{"any borders", (*sampler).borders, false},
	{"words alternated", (*sampler).alternatives, false},
	{"long word", func(g *sampler) string { return anyCase(g) + (*sampler).longWord(g) }, false},
	{"expression in a word", func(g *sampler) string { return anyCase(g) + query.Quote(g.wordExpression()) }, false},
	{"expression of classes", (*sampler).classes, false},
	{"maybe nothing", (*sampler).maybeNothing, false},
	{"word at an end", (*sampler).atEnds, false},
	{"lazy", (*sampler).lazy, false},
	{"flag within", (*sampler).flagWithin, false},
	{"one or two", func(g *sampler) string { return anyCase(g) + Quote(g.wordPart(1, 2)) }, false},
	{"phrase", func(g *sampler) string { return anyCase(g) + Quote(g.phrase(2, 5, " \t")) }, false},
	{"phrase over lines", func(g *sampler) string { return anyCase(g) + Quote(g.phrase(3, 9, "\n")) }, false},
	{"pieces", func(g *sampler) string { return anyCase(g) + query.Quote(g.pieces()) }, false},
	{"several words", func(g *sampler) string { return strings.Join(quoted(g.together(2+g.rng.IntN(3))), " ") }, false},
	{"or of ands", (*sampler).orOfAnds, false},
	{"without a word", (*sampler).without, false},
	{"path and word", func(g *sampler) string {
		return pickOne(g, "", "-") + "f:" + Quote(g.path()) + " " + anyCase(g) + Quote(g.wholeWord())
	}, false},
	{"facts and word", func(g *sampler) string {
		return pickOne(g, (*sampler).repoTerm, (*sampler).branchTerm, func(g *sampler) string { return "lang:" + g.language() }, (*sampler).fact)(g) +
			" c:" + Quote(g.wholeWord())
	}, false},
	{"file names by word", func(g *sampler) string { return "type:filename " + anyCase(g) + Quote(g.wholeWord()) }, false},
	{"no such word", func(g *sampler) string { return anyCase(g) + Quote(g.misspelt()) }, true},
	{"overlapping atoms", (*sampler).overlapping, false},
	{"not ASCII", (*sampler).notASCII, false},
	{"folds to ASCII", (*sampler).wide, false},
	{"repetition", func(g *sampler) string {
		return anyCase(g) + query.Quote(pickOne(g, `\b`, "", "")+strings.Repeat(g.wordPart(1, 3), 2+g.rng.IntN(3))+pickOne(g, `\b`, "", ""))
	}, true},
	{"word and neighbour", (*sampler).besideWord, false},
}

func anyCase(g *sampler) string { return pickOne(g, "", "case:yes ", "case:no ") }

func quoted(words []string) (terms []string) {
	for _, w := range words {
		terms = append(terms, Quote(w))
	}
	return terms
}

// maxSample keeps queries below the limits of the language.
const maxSample = 600

// wordIn returns the word at or soon after a random place of a text, as much of it as fits into a
// query; empty if there is none.
func (g *sampler) wordIn(content []byte) string {
	start, end := g.wordAt(content)
	if end-start > maxSample {
		size := pickOne(g, 64, 65, 128, 129, maxSample)
		if start = pickOne(g, start, end-size); end-start > size {
			end = start + size
		}
	}
	return string(content[start:end])
}

// wordAt returns the bounds of such a word.
func (g *sampler) wordAt(content []byte) (start, end int) {
	if len(content) == 0 {
		return 0, 0
	}
	start = g.rng.IntN(len(content))
	for start < len(content) && !ngram.IsWord(content[start]) {
		start++
	}
	for end = start; end < len(content) && ngram.IsWord(content[end]); end++ {
	}
	for start > 0 && start < len(content) && ngram.IsWord(content[start-1]) {
		start--
	}
	return start, end
}

func (g *sampler) someText() []byte {
	if len(g.texts) == 0 {
		return nil
	}
	return pickOne(g, g.texts...).Content
}

// wholeWord returns a maximal run of ASCII letters, digits and underscores.
func (g *sampler) wholeWord() string {
	for range 20 {
		if w := g.wordIn(g.someText()); w != "" {
			return w
		}
	}
	return "foo"
}

// wordPart returns bytes within a word.
func (g *sampler) wordPart(least, most int) string {
	for range 20 {
		w := g.wholeWord()
		if size := least + g.rng.IntN(most-least+1); size <= len(w) {
			at := g.rng.IntN(len(w) - size + 1)
			return w[at : at+size]
		}
	}
	return "o"
}

func (g *sampler) wordStart() string {
	w := g.wholeWord()
	return w[:1+g.rng.IntN(len(w))]
}

func (g *sampler) wordEnd() string {
	w := g.wholeWord()
	return w[g.rng.IntN(len(w)):]
}

// together returns words that are mostly from one text.
func (g *sampler) together(n int) (words []string) {
	text := g.someText()
	for range n {
		if w := g.wordIn(text); w != "" && g.rng.IntN(8) > 0 {
			words = append(words, w)
		} else {
			words = append(words, g.wholeWord())
		}
	}
	return words
}

func (g *sampler) borders() string {
	border := func() string { return pickOne(g, "", `\b`, `\B`, `\b`, `\b\b`, `\w*\b`, `\b\w?`, `\W`, `^`, `$`) }
	return anyCase(g) + query.Quote(border()+g.wordPart(1, 8)+border())
}

// alternatives returns words, some of them the start or the end of others.
func (g *sampler) alternatives() string {
	words := g.together(2 + g.rng.IntN(4))
	for i, w := range words {
		switch g.rng.IntN(5) {
		case 0:
			words = append(words, w[:(len(w)+1)/2])
		case 1:
			words = append(words, w[len(w)/2:])
		case 2:
			words[i] = `\b` + w + pickOne(g, "", `\b`)
		}
	}
	g.rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	all := strings.Join(words, "|")
	return anyCase(g) + query.Quote(pickOne(g, "("+all+")", all, `\b(`+all+`)\b`, `(?:`+all+`)\b`, `\b(?:`+all+")", "("+all+`)\w*`))
}

// longWord returns the start, the end, or all of a long word, if it finds one.
func (g *sampler) longWord() string {
	longest := g.wholeWord()
	for range 30 {
		if w := g.wholeWord(); len(w) > len(longest) || len(w) > 60 && g.rng.IntN(3) == 0 {
			longest = w
		}
	}
	size := min(len(longest), pickOne(g, 5, 61, 62, 63, 64, 65, 66, 127, 128, 129, maxSample))
	at := pickOne(g, 0, len(longest)-size, g.rng.IntN(len(longest)-size+1))
	return query.Quote(pickOne(g, "", `\b`) + longest[at:at+size] + pickOne(g, "", `\b`, `\w`, `\w*`))
}

// wordExpression replaces parts of a word by expressions for them.
func (g *sampler) wordExpression() string {
	w := g.wholeWord()
	w = w[:min(len(w), 20)]
	var b strings.Builder
	b.WriteString(pickOne(g, "", "", `\b`))
	for len(w) > 0 {
		size := 1 + g.rng.IntN(min(len(w), 6))
		part := w[:size]
		w = w[size:]
		switch g.rng.IntN(5) {
		case 0:
			b.WriteString(pickOne(g, classOf(part), `\w`) + pickOne(g, "+", "*", "{1,9}", "+?"))
		case 1:
			b.WriteString("(" + part + "|" + pickOne(g, part+"s", part[:1], "ba[rz]", g.wordPart(1, 4)) + ")")
		case 2:
			b.WriteString(part[:size-1] + "[" + part[size-1:] + "a-c]")
		default:
			b.WriteString(part)
		}
	}
	return b.String() + pickOne(g, "", "", `\b`, `\w*`, `\d{1,3}`, "[A-Z]?")
}

// classOf returns a class with all the bytes of a part of a word.
func classOf(part string) string {
	var class strings.Builder
	for _, c := range []struct{ has, name string }{{"abcdefghijklmnopqrstuvwxyz", "a-z"}, {"ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A-Z"}, {"0123456789", "0-9"}, {"_", "_"}} {
		if strings.ContainsAny(part, c.has) {
			class.WriteString(c.name)
		}
	}
	return "[" + class.String() + "]"
}

func (g *sampler) classes() string {
	w := g.wordPart(2, 7)
	return anyCase(g) + query.Quote(pickOne(g,
		`[A-Z]+_`+w, `\w+`+w, w+`[A-Z]\w*`, `(`+w+`|ba[rz])\d{1,3}`, `\d+`+w, w+`\d+`, `[a-z]+_[a-z]+`, `\b[A-Z]{3,}\b`, `\b\w{12}\b`, `0x[0-9a-f]+`,
		`[a-z][A-Z][a-z]+`, `[[:upper:]]\w*`+w, w[:1]+`*`+w[1:], `\b`+w+`\w{2,5}\b`, `\w`+w+`\w`, `[^\W\d]`+w, `\b\d+\b`, `_+`+w, w+`_?`+w, `[`+w+`]{4}`))
}

func (g *sampler) maybeNothing() string {
	w := g.wordPart(2, 5)
	expressions := []string{`(` + w + `)?`, w + `|`, `(?:` + w + `)*`, w[:1] + `*`, w[:1] + `{0,3}`, `[` + w + `]*?`, `|` + w, `\b`, `\B`, `(` + w + `|\b)`, `\b` + w + `?`}
	if !g.large {
		expressions = append(expressions, `\w*`, `[a-z]*`, `\b\w*`, `\w*\b`, `\w*?\b`)
	}
	return anyCase(g) + pickOne(g, "", "c:") + query.Quote(pickOne(g, expressions...))
}

// atEnds returns words at ends of lines and of texts.
func (g *sampler) atEnds() string {
	w := g.wordPart(1, 9)
	if content := g.someText(); g.rng.IntN(2) == 0 && len(content) > 0 {
		end := 0
		for end < min(len(content), 20) && ngram.IsWord(content[end]) {
			end++
		}
		if end > 0 {
			w = string(content[:end])
		}
	}
	return anyCase(g) + query.Quote(pickOne(g, `^`+w, w+`$`, `\A`+w, w+`\z`, `^`+w+`$`, `^\s*`+w, w+`\s*$`, `\A`+w+`\b`, `^\w+$`, `\b`+w+`$`, `(?-m)^`+w, w+`(?-m:$)`, `^`+w+`|`+w+`$`))
}

func (g *sampler) lazy() string {
	a, b := g.wordPart(1, 4), g.wordPart(1, 4)
	return anyCase(g) + query.Quote(pickOne(g, a+`\w*?`+b, `\w+?`+a, a+`.+?`+b, a+`??`+b, a+`{1,3}?`, `(?U)`+a+`\w+`+b, `\b\w*?`+a+`\w*?\b`, a+`(?:`+b+`)*?`))
}

func (g *sampler) flagWithin() string {
	w := g.wordPart(2, 10)
	half := len(w) / 2
	a, b := g.flipped(w[:half]), g.flipped(w[half:])
	return pickOne(g, "", "case:yes ", "case:no ") + query.Quote(
		pickOne(g, `(?i)`+a+b, `(?i:`+a+`)`+w[half:], w[:half]+`(?i)`+b, `(?-i)`+w, `(?-i:`+w[:half]+`)`+b, `\b(?i:`+a+b+`)\b`, w[:half]+`(?i:`+b+`|`+a+`)`))
}

// phrase returns up to most words from a text, with one of the separators between them. It may
// begin and end within words.
func (g *sampler) phrase(least, most int, separators string) string {
	for range 20 {
		content := g.someText()
		start, end := g.wordAt(content)
		if start == end || end-start > 60 {
			continue
		}
		for n := least + g.rng.IntN(most-least+1); n > 1 && end < min(len(content), start+200); n-- {
			for end < len(content) && !ngram.IsWord(content[end]) && content[end] < utf8.RuneSelf {
				end++
			}
			for end < min(len(content), start+200) && ngram.IsWord(content[end]) {
				end++
			}
		}
		phrase := string(content[start:end])
		if !strings.ContainsAny(phrase, separators) {
			continue
		}
		if g.rng.IntN(2) == 0 {
			phrase = phrase[g.rng.IntN(3)%len(phrase):]
			phrase = phrase[:len(phrase)-g.rng.IntN(3)%len(phrase)]
		}
		return phrase
	}
	return g.wholeWord()
}

var betweenWords = regexp.MustCompile(`\W+`)

// pieces returns an expression made from a phrase: all or most of its words stay, and what is
// between them becomes less certain.
func (g *sampler) pieces() string {
	phrase := g.phrase(2, 4, " (")
	var b strings.Builder
	at := 0
	word := func(w string) {
		switch {
		case w != "" && g.rng.IntN(4) == 0:
			b.WriteString(pickOne(g, `\w+`, w[:1]+`\w*`, `[a-zA-Z]*`+w[len(w)-1:], `\b`+w+`\b`, w+"?"))
		default:
			b.WriteString(w)
		}
	}
	for _, gap := range betweenWords.FindAllStringIndex(phrase, -1) {
		word(phrase[at:gap[0]])
		between := phrase[gap[0]:gap[1]]
		b.WriteString(pickOne(g, regexp.QuoteMeta(between), regexp.QuoteMeta(between)+`\s*`, `\W+`, `[^a-z]+`, `\s*`+regexp.QuoteMeta(strings.TrimSpace(between))+`\s*`, `(?s:.{1,9})`, `.*`))
		at = gap[1]
	}
	word(phrase[at:])
	return b.String()
}

func (g *sampler) orOfAnds() string {
	a, b := quoted(g.together(2)), quoted(g.together(1+g.rng.IntN(3)))
	return "(" + strings.Join(a, " ") + " ) or (" + strings.Join(b, " ") + " )"
}

func (g *sampler) without() string {
	words := quoted(g.together(3))
	return pickOne(g, words[0]+" -"+words[1], words[0]+" -"+Quote(g.wholeWord()), "-"+words[0]+" -"+words[1], "-("+words[0]+" "+words[1]+" ) "+words[2], words[0]+" -c:"+words[1],
		"-f:"+words[0]+" "+words[1])
}

// misspelt returns a text that is nearly a word.
func (g *sampler) misspelt() string {
	w, other := g.wholeWord(), g.wholeWord()
	at := g.rng.IntN(len(w))
	return pickOne(g, w[:at]+"q"+w[at+1:], w+"q", "z"+w, w[:at]+w[at+1:]+w[:1], w+other, w[:at]+other[len(other)/2:], w[at:]+w[:at], w+"_"+other)
}

// overlapping returns atoms that find the same bytes of a text.
func (g *sampler) overlapping() string {
	w := g.wholeWord()
	at := g.rng.IntN(len(w))
	size := 1 + g.rng.IntN(len(w)-at)
	part := w[at : at+size]
	terms := []string{Quote(w), Quote(part), query.Quote(pickOne(g, `\b`+part, part+`\w`, `\w`+part, w+`\W`, part+`\b`))}
	g.rng.Shuffle(len(terms), func(i, j int) { terms[i], terms[j] = terms[j], terms[i] })
	return anyCase(g) + strings.Join(terms[:2+g.rng.IntN(2)], pickOne(g, " ", " or "))
}

// notASCII returns text around bytes beyond ASCII, as far as it is UTF-8.
func (g *sampler) notASCII() string {
	for range 30 {
		content := g.someText()
		if len(content) == 0 {
			break
		}
		at := g.rng.IntN(len(content))
		for end := min(len(content), at+2000); at < end && content[at] < utf8.RuneSelf; {
			at++
		}
		start := max(0, at-g.rng.IntN(6))
		s := validPart(content[start:min(len(content), at+1+g.rng.IntN(12))])
		if strings.IndexFunc(s, func(r rune) bool { return r >= utf8.RuneSelf }) >= 0 {
			return anyCase(g) + pickOne(g, Quote(s), Quote(g.flipped(s)), query.Quote(`\b`+regexp.QuoteMeta(s)), query.Quote(regexp.QuoteMeta(s)+`\b`))
		}
	}
	return Quote(g.text(2, 8))
}

// wide changes k and s to runes that fold to them, or back, and searches without case.
func (g *sampler) wide() string {
	w := g.wholeWord()
	for range 20 {
		if strings.ContainsAny(w, "kKsS") {
			break
		}
		w = g.wholeWord()
	}
	if at := strings.IndexAny(w, "kKsS"); at >= 0 && g.rng.IntN(2) == 0 {
		w = w[max(0, at-g.rng.IntN(4)):min(len(w), at+1+g.rng.IntN(4))]
	}
	asked := strings.Map(func(r rune) rune {
		if strings.ContainsRune("kKsS", r) {
			for range g.rng.IntN(3) {
				r = unicode.SimpleFold(r)
			}
		}
		return r
	}, w)
	return pickOne(g, "case:no ", "case:no ", "") + pickOne(g, Quote(asked), query.Quote(`\b`+asked), query.Quote(asked+`\b`), query.Quote(asked+`\w*`), query.Quote(`(?i)`+asked+`|`+w))
}

// besideWord returns a word with some of the bytes next to it.
func (g *sampler) besideWord() string {
	for range 20 {
		content := g.someText()
		start, end := g.wordAt(content)
		if start == end || end-start > maxSample {
			continue
		}
		from, to := max(0, start-g.rng.IntN(5)), min(len(content), end+g.rng.IntN(5))
		if s := validPart(content[from:to]); len(s) > 1 {
			return anyCase(g) + Quote(s)
		}
	}
	return Quote(g.wholeWord())
}
