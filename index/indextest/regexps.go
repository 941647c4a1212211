package indextest

import (
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/query"
)

// regexp returns a regular expression, as a term of a query, from sampled
// texts.
func (g *sampler) regexp() string {
	source := pickOne(g, regexpKinds...)(g)
	return pickOne(g, "", "", "regex:") + query.Quote(source)
}

// regexpKinds make the source of an expression. Its syntax is valid whatever
// the sample is.
var regexpKinds = []func(*sampler) string{
	func(g *sampler) string { return g.altered(g.text(4, 16)) },
	func(g *sampler) string { return g.altered(g.text(4, 16)) },
	func(g *sampler) string { return g.literal(2, 8) + ".*" + g.literal(1, 8) },
	func(g *sampler) string { return g.literal(2, 8) + `(?s:.{0,20})` + g.literal(1, 4) },
	func(g *sampler) string {
		return "(" + g.literal(3, 9) + "|" + g.literal(3, 9) + ")" + pickOne(g, "", "x?", ".")
	},
	func(g *sampler) string { return "(?i)" + g.literal(3, 9) + pickOne(g, "", ".", "[a-z]*") },
	func(g *sampler) string { return `\b` + regexp.QuoteMeta(g.word()) + pickOne(g, `\b`, `\B`, `\w+`) },
	func(g *sampler) string { return "^" + g.literal(1, 6) },
	func(g *sampler) string { return g.literal(1, 6) + "$" },
	func(g *sampler) string { return `\A` + g.literal(1, 3) + `|` + g.literal(1, 3) + `\z` },
	func(g *sampler) string {
		return "[" + pickOne(g, "a-f", "^a-z", "xyz", "0-9A-F", "ſK") + "]" + g.literal(1, 6)
	},
	func(g *sampler) string {
		return g.literal(1, 3) + `[^\s]` + pickOne(g, "+", "*", "?", "{2,3}") + g.literal(1, 3)
	},
	func(g *sampler) string { return strings.ReplaceAll(g.literal(6, 20), " ", `\s+`) },
	func(g *sampler) string {
		return "(?:" + g.literal(1, 4) + ")" + pickOne(g, "+", "{2}", "{1,3}?", "*?") + "o"
	},
	func(g *sampler) string {
		return pickOne(g, `\w+_\w+`, `[A-Z]\w+`, `.`, `^$`, `\d+`, `x*`, `\n\n`, `\x{FFFD}`, `(?i)k|ſ`, `()`, `\S\n`)
	},
}

func (g *sampler) literal(least, most int) string { return regexp.QuoteMeta(g.text(least, most)) }

// altered replaces some runes of a text by expressions that match them. In a
// small corpus the result may also match the empty text.
func (g *sampler) altered(text string) string {
	repetitions := []string{"+", "{1,2}", "*", "?"}
	if g.large {
		repetitions = repetitions[:2]
	}
	var b strings.Builder
	for _, r := range text {
		quoted := regexp.QuoteMeta(string(r))
		switch g.rng.IntN(8) {
		case 0:
			b.WriteString(pickOne(g, ".", "(?s:.)"))
		case 1:
			b.WriteString("[" + string('a'+rune(g.rng.IntN(3))) + classRune(r) + "]")
		case 2:
			b.WriteString(quoted + pickOne(g, repetitions...))
		default:
			b.WriteString(quoted)
		}
	}
	return b.String()
}

// classRune writes a rune so that it represents itself within brackets.
func classRune(r rune) string {
	if r < utf8.RuneSelf && strings.ContainsRune(`\]^-[`, r) {
		return `\` + string(r)
	}
	return string(r)
}
