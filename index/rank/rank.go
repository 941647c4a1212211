// Package rank scores documents by how well they match.
//
// A score is a sum over the terms of the query: BM25 over the matches in the content, with a weight for their quality (see
// Counts), and a part for the path. It uses no statistics of a corpus, because every document of an answer has all words of the
// query. The score depends only on the document and the query, so scores of different shards can be compared. Matches beyond
// Enough do not count. So scores have a maximum that documents reach, and a search for the best can stop before it has seen all
// (see Ceiling). All parts are whole numbers, so sums do not depend on their order.
package rank

import (
	"bytes"
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/ngram"
)

// Quality says how well a match fits the words around it.
type Quality uint8

// Qualities, from worst to best.
const (
	None Quality = iota
	// Inside a word.
	Inside
	// Partial is at the start or the end of a word.
	Partial
	// Word is one whole word, or several.
	Word
)

// Of returns the quality of the match text[start:end].
func Of(text []byte, start, end int) Quality {
	head := start == 0 || !ngram.IsWord(text[start-1]) || !ngram.IsWord(text[start])
	tail := end == len(text) || !ngram.IsWord(text[end]) || !ngram.IsWord(text[end-1])
	switch {
	case head && tail:
		return Word
	case head || tail:
		return Partial
	}
	return Inside
}

// Name says where in a path a match is.
type Name uint8

// Places of a match in a path, from worst to best.
const (
	NoName Name = iota
	// Directory is any match not wholly in the base name.
	Directory
	// BaseInside lies within a word of the base name.
	BaseInside
	// BasePartial starts or ends a word of the base name.
	BasePartial
	// Base is the whole base name, with or without its extensions.
	Base
)

// OfName returns the place of the match path[start:end].
func OfName(path []byte, start, end int) Name {
	base := bytes.LastIndexByte(path, '/') + 1
	if start < base {
		return Directory
	}
	if start == base && (end == len(path) || end > base && path[end] == '.') {
		return Base
	}
	if Of(path, start, end) == Inside {
		return BaseInside
	}
	return BasePartial
}

// stem returns where the base name begins, and where it ends without its extensions: foo.spec.ts has two.
func stem(path []byte) (from, to int) {
	from = bytes.LastIndexByte(path, '/') + 1
	if from == len(path) {
		return from, from
	}
	if dot := bytes.IndexByte(path[from+1:], '.'); dot >= 0 {
		return from, from + 1 + dot
	}
	return from, len(path)
}

// Term is how one text of the query matches a document.
type Term struct {
	// Content is the quality that counts and Matches the number of matches that have it, as Counts.Best returns them.
	Content Quality
	Matches int
	// Name is the best place of a match in the path.
	Name Name
	// Loose is set for a term that the document may lack.
	Loose *LooseWord
	// Defined says that the content defines the text as a whole word.
	Defined bool
}

// Document has what a score is computed from.
type Document struct {
	// Terms have a match in the document.
	Terms []Term
	// Compound says that the content has, as a whole word, a name that the words of the query make up (see Compounds), and
	// CompoundDefined that it defines one.
	Compound, CompoundDefined bool
	// Together says how close to each other the words of the query are in the content.
	Together Together
	// Length of the content in blocks of LengthUnit bytes.
	Length int
	// Spelled says that the terms spell the base name; see Spells.
	Spelled bool
	// LowPriority says that the path belongs to a test, or to generated or vendored code; see LowPriority.
	LowPriority bool
	// RepoRank is the rank of the document's repo; see Repo.
	RepoRank uint8
}

// The weights were tuned on one half of bench/relevance.
var (
	contentWeight = [...]float64{None: 0, Inside: 20, Partial: 60, Word: 100}
	nameScore     = [...]float64{NoName: 0, Directory: 60, BaseInside: 60, BasePartial: 80, Base: 100}
)

const (
	spelledScore = 200 // for each term in the base name; twice if there are several terms and all are in it
	definedScore = 200 // for one term
	// For each term of a compound, and for each once more if the compound is defined.
	compoundScore        = 200
	compoundDefinedScore = 100
	// For each term of words in one line, and for each but two if they are in sequence.
	lineScore     = 100
	sequenceScore = 250
	lowPriority   = 0.5
	// Parameters of BM25: how soon further matches count less, how much the length counts, and the usual length.
	saturation  = 1.2
	lengthShare = 0.5
	usualLength = 4
)

// CountedUnits is the longest length that scores distinguish.
const CountedUnits = 64

// Enough is the number of matches beyond which more do not count. A document that says a word eight times is about it; more only
// reflect the document's length.
const Enough = 8

// LengthUnit is the unit of content length, in bytes.
const LengthUnit = 4 << 10

// contentScores are the results of Content, by length, matches and quality.
var contentScores = func() (scores [CountedUnits + 1][Enough + 1][Word + 1]float64) {
	for length := range scores {
		norm := saturation * (1 - lengthShare + lengthShare*float64(max(length, 1))/usualLength)
		for matches := range scores[length] {
			frequency := float64(matches) * (saturation + 1) / (float64(matches) + norm)
			for quality, weight := range contentWeight {
				scores[length][matches][quality] = math.Floor(weight * frequency)
			}
		}
	}
	return scores
}()

// Content returns a term's score for its matches in a content of that length.
func Content(quality Quality, matches, length int) float64 {
	return contentScores[min(length, CountedUnits)][min(matches, Enough)][quality]
}

// Counts are how often a text matches in a content: Counts[q] matches are of quality q or better.
//
// If whole words score most, only they count: further matches in parts of words change nothing unless these alone are worth
// more. So a search for the best documents need not know which other words contain a word.
type Counts [Word + 1]uint32

// Add counts a match of a quality.
func (c *Counts) Add(quality Quality) {
	for q := Inside; q <= quality; q++ {
		c[q]++
	}
}

// Plus adds other counts. A count saturates instead of overflowing.
func (c *Counts) Plus(o Counts) {
	for q := Inside; q <= Word; q++ {
		c[q] += min(o[q], math.MaxUint32-c[q])
	}
}

// All returns the number of matches.
func (c *Counts) All() int { return int(c[Inside]) }

// Best returns the quality with which the matches score most in a content of that length, and how many have it, up to Enough.
func (c *Counts) Best(length int) (best Quality, matches int) {
	score := 0.0
	for q := Word; q > None; q-- {
		n := int(min(c[q], Enough))
		if s := Content(q, n, length); s > score {
			best, matches, score = q, n, s
		}
	}
	return best, matches
}

// Score returns the document's score: at least 0, higher is better.
func (d *Document) Score() float64 {
	content, names := 0.0, 0.0
	for _, t := range d.Terms {
		content += t.Loose.Weigh(Content(t.Content, t.Matches, d.Length))
		names += t.Loose.Weigh(nameScore[t.Name])
		if t.Defined {
			content += d.defined()
		}
	}
	return Total(content+d.compound()+d.together(), names, d.spelling(), len(d.Terms), d.LowPriority) + Repo(d.RepoRank)
}

// Repo returns the score for the rank of a repo, which all of its documents get: a point for each ten. It is less than one match in a
// path, so it decides between documents that match about equally well.
func Repo(rank uint8) float64 { return float64(rank / 10) }

// spelling returns how many terms spell the base name: those with a match in it.
func (d *Document) spelling() (n int) {
	if !d.Spelled {
		return 0
	}
	for _, t := range d.Terms {
		if t.Name > Directory {
			n++
		}
	}
	return n
}

func (d *Document) defined() float64 { return Defined(len(d.Terms)) }

// Defined returns the score of a term that is defined, in a query with that many terms. A search for one name wants its
// definition. A search for several words wants the place where they meet, and common names are defined in many places.
func Defined(terms int) float64 { return math.Floor(definedScore / float64(terms*terms)) }

func (d *Document) compound() float64 {
	if !d.Compound {
		return 0
	}
	return CompoundScore(len(d.Terms), d.CompoundDefined)
}

// CompoundScore returns the score for a name made up of that many terms.
func CompoundScore(terms int, defined bool) float64 {
	score := compoundScore
	if defined {
		score += compoundDefinedScore
	}
	return float64(score * terms)
}

func (d *Document) together() float64 { return TogetherScore(d.Together, len(d.Terms)) }

// TogetherScore returns the score for how the words of a query with that many terms stand together.
func TogetherScore(how Together, terms int) float64 {
	switch how {
	case OneLine:
		return lineScore * float64(terms)
	case InSequence:
		return lineScore*float64(terms) + sequenceScore*float64(max(terms-2, 0))
	}
	return 0
}

// MaxCompound is the most words that make up a name.
const MaxCompound = 8

// Compounds returns the names that words make up, in lower case: joined, as camel case is without case, and with underscores.
// There are none for one word, for too many, or if a text is not a word.
func Compounds(words []string) []string {
	if len(words) < 2 || len(words) > MaxCompound {
		return nil
	}
	for _, w := range words {
		if !ngram.IsWords(w) {
			return nil
		}
	}
	return []string{strings.ToLower(strings.Join(words, "")), strings.ToLower(strings.Join(words, "_"))}
}

// Score returns the score of a match at that place in a path.
func (n Name) Score() float64 { return nameScore[n] }

// Total adds up the parts of a score except that for the repo. content is everything except matches in the path, names the sum of
// the scores of each term's best place, and spelling the number of terms that spell the file's name. If all terms do, the query asks for
// that file, whatever its priority.
func Total(content, names float64, spelling, terms int, low bool) float64 {
	score := content + names + spellingScore(spelling, terms)
	if low && (spelling == 0 || spelling < terms) {
		return score * lowPriority
	}
	return score
}

// spellingScore returns the score for a base name if the given number of terms spells it.
func spellingScore(spelling, terms int) float64 {
	score := spelledScore * float64(spelling)
	if spelling == terms && terms > 1 {
		score *= 2
	}
	return score
}

// Spells reports whether all letters and digits of the base name without its extensions are covered. There must be at least one.
func Spells(path []byte, covered func(at int) bool) bool {
	from, to := stem(path)
	some := false
	for i := from; i < to; i++ {
		if path[i] != '_' && ngram.IsWord(path[i]) {
			if !covered(i) {
				return false
			}
			some = true
		}
	}
	return some
}

var (
	qualityNames  = [...]string{None: "nothing", Inside: "inside of words", Partial: "parts of words", Word: "whole words"}
	togetherNames = [...]string{Scattered: "", OneLine: "in one line", InSequence: "in sequence"}
	placeNames    = [...]string{NoName: "", Directory: "in a folder's name", BaseInside: "inside the file's name", BasePartial: "a part of the file's name", Base: "the file's name"}
)

// Explain returns the parts of Score in words: those of the terms, the most points first, and then what they have together.
func (d *Document) Explain() string {
	type part struct {
		points float64
		text   string
	}
	var parts []part
	for _, t := range d.Terms {
		var of part
		add := func(points float64, format string, args ...any) {
			if of.points += points; of.text != "" {
				of.text += ", "
			}
			of.text += fmt.Sprintf(format, args...) + fmt.Sprintf(" %g", points)
		}
		if t.Content > None {
			more := ""
			if t.Matches == Enough {
				more = " or more"
			}
			add(t.Loose.Weigh(Content(t.Content, t.Matches, d.Length)), "%s %d×%s in %d KiB", qualityNames[t.Content], t.Matches, more, max(d.Length, 1)*LengthUnit>>10)
		}
		if t.Defined {
			add(d.defined(), "defined here")
		}
		if t.Name > NoName {
			add(t.Loose.Weigh(nameScore[t.Name]), "%s", placeNames[t.Name])
		}
		parts = append(parts, of)
	}
	// The order of Terms is that in which a shard looked them up. What the shard holds besides this
	// document decides that, and must not show.
	slices.SortFunc(parts, func(a, b part) int {
		return cmp.Or(cmp.Compare(b.points, a.points), strings.Compare(a.text, b.text))
	})
	text := ""
	for i, p := range parts {
		if i > 0 {
			text += " + "
		}
		text += p.text
	}
	if d.Compound {
		text += fmt.Sprintf(" + one name %g", d.compound())
	}
	if d.Together > Scattered {
		text += fmt.Sprintf(" + %s %g", togetherNames[d.Together], d.together())
	}
	spelling := d.spelling()
	if spelling > 0 {
		text += fmt.Sprintf(" + spells the file's name %g", spellingScore(spelling, len(d.Terms)))
	}
	if d.LowPriority && (spelling == 0 || spelling < len(d.Terms)) {
		text += ", halved for a test, documentation, generated or vendored file"
	}
	if d.RepoRank > 0 {
		if text != "" {
			text += " + "
		}
		text += fmt.Sprintf("repo rank %d of 100 %g", d.RepoRank, Repo(d.RepoRank))
	}
	return text
}
