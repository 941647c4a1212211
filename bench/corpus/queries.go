package corpus

import (
	"fmt"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Bucket is a class of queries that engines answer in the same way.
type Bucket string

// The buckets, in the order of reports.
const (
	Rare         Bucket = "rare"
	Mid          Bucket = "mid"
	Common       Bucket = "common"
	Short        Bucket = "1-2 chars"
	Phrase       Bucket = "phrase"
	NearMiss     Bucket = "near-miss"
	Case         Bucket = "case"
	Scoped       Bucket = "scoped"
	RegexLiteral Bucket = "regex+literal"
	Alternation  Bucket = "alternation"
	RegexOnly    Bucket = "regex only"
	TwoWords     Bucket = "2 words"
	ThreeWords   Bucket = "3 words"
	FourWords    Bucket = "4 words"
	PathWord     Bucket = "path + word"
	RegexWord    Bucket = "regex in a word"
	NonASCII     Bucket = "not ASCII"
)

// Buckets lists all buckets. The position of a bucket determines its random numbers, so new ones go
// last.
func Buckets() []Bucket {
	return []Bucket{
		Rare, Mid, Common, Short, Phrase, NearMiss, Case, Scoped, RegexLiteral, Alternation, RegexOnly,
		TwoWords, ThreeWords, FourWords, PathWord, RegexWord, NonASCII,
	}
}

// BucketsOf returns the buckets that queries have, in the order of the first query of each.
func BucketsOf(queries []Query) (list []Bucket) {
	for _, q := range queries {
		if !slices.Contains(list, q.Bucket) {
			list = append(list, q.Bucket)
		}
	}
	return list
}

// Regex reports whether the queries of a bucket are regular expressions.
func (b Bucket) Regex() bool {
	return b == RegexLiteral || b == Alternation || b == RegexOnly || b == RegexWord
}

// Query is one query, in a form that suits every engine.
type Query struct {
	Bucket Bucket
	// Patterns must all match somewhere in a file's content. Each is in RE2 syntax and matches
	// within a line.
	Patterns      []string
	CaseSensitive bool
	// File restricts files by their path in the repo. Glob does the same by the last element alone;
	// it is empty if that is impossible.
	Glob, File string
	// Written is the whole query as somebody wrote it; if it is not empty, the other parts are.
	Written string
}

// Text returns the query in the language that Trawl and zoekt share.
func (q Query) Text() string {
	if q.Written != "" {
		return q.Written
	}
	var b strings.Builder
	for _, p := range q.Patterns {
		b.WriteString("content:" + quote(p) + " ")
	}
	if q.File != "" {
		b.WriteString("file:" + quote(q.File) + " ")
	}
	if q.CaseSensitive {
		return b.String() + "case:yes"
	}
	return b.String() + "case:no"
}

func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(s) + `"`
}

// Sample returns n different queries of each bucket, or fewer if the files do not have as many.
func Sample(files []File, seed uint64, n int) []Query {
	v := newVocabulary(files)
	var all []Query
	for i, bucket := range Buckets() {
		// Each bucket has its own random stream, so changes to one do not affect the others.
		s := &sampler{v: v, files: files, rng: rand.New(rand.NewPCG(seed, uint64(i)))}
		seen := map[string]bool{}
		for try := 0; try < 50*n && len(seen) < n; try++ {
			q, ok := s.query(bucket)
			if !ok || seen[q.Text()] {
				continue
			}
			seen[q.Text()] = true
			q.Bucket = bucket
			all = append(all, q)
		}
	}
	return all
}

type sampler struct {
	v     *vocabulary
	files []File
	rng   *rand.Rand
}

func (s *sampler) pick(words []string) string {
	if len(words) == 0 {
		return ""
	}
	return words[s.rng.IntN(len(words))]
}

// query makes a query of the bucket. It may fail to find what it needs.
func (s *sampler) query(b Bucket) (Query, bool) {
	switch b {
	case Rare:
		return literal(s.pick(s.v.rare))
	case Mid:
		return literal(s.pick(s.v.mid))
	case Common:
		return literal(s.pick(s.v.common))
	case Short:
		return s.short()
	case Phrase:
		return s.phrase()
	case NearMiss:
		return s.nearMiss()
	case Case:
		return s.caseSensitive()
	case Scoped:
		return s.scoped()
	case RegexLiteral:
		return s.regexLiteral()
	case Alternation:
		return s.alternation()
	case RegexOnly:
		return s.regexOnly()
	case TwoWords:
		return s.words(2)
	case ThreeWords:
		return s.words(3)
	case FourWords:
		return s.words(4)
	case PathWord:
		return s.pathWord()
	case RegexWord:
		return s.regexWord()
	case NonASCII:
		return s.nonASCII()
	}
	return Query{}, false
}

func literal(word string) (Query, bool) {
	return Query{Patterns: []string{regexp.QuoteMeta(word)}}, word != ""
}

func (s *sampler) short() (Query, bool) {
	word := s.pick(s.v.mid)
	if word == "" {
		return Query{}, false
	}
	at := s.rng.IntN(len(word) - 1)
	return literal(word[at : at+1+s.rng.IntN(2)])
}

var phraseText = regexp.MustCompile(`[A-Za-z]\w+(?:[ ,.()*&]{1,3}\w+){1,3}`)

func (s *sampler) phrase() (Query, bool) {
	text := phraseText.FindString(s.line())
	return Query{Patterns: []string{regexp.QuoteMeta(text)}}, strings.Contains(text, " ") && len(text) < 60
}

// line returns a random line of a random file.
func (s *sampler) line() string {
	lines := strings.Split(string(s.file().Content), "\n")
	return strings.TrimSpace(lines[s.rng.IntN(len(lines))])
}

// nearMiss changes one letter inside a rare word. Nearly all n-grams of the result still occur.
func (s *sampler) nearMiss() (Query, bool) {
	word := []byte(s.pick(s.v.rare))
	if len(word) == 0 {
		return Query{}, false
	}
	word[1+s.rng.IntN(len(word)-2)] = byte('a' + s.rng.IntN(26))
	return literal(string(word))
}

var capital = regexp.MustCompile(`\b[a-z]*[A-Z]\w{3,}`)

func (s *sampler) caseSensitive() (Query, bool) {
	q, ok := literal(capital.FindString(s.line()))
	q.CaseSensitive = true
	return q, ok
}

func (s *sampler) scoped() (Query, bool) {
	if len(s.files) == 0 {
		return Query{}, false
	}
	q, ok := literal(s.pick(s.v.mid))
	base := path.Base(s.file().Path)
	if ext := path.Ext(base); ext != "" && s.rng.IntN(2) == 0 {
		q.Glob, q.File = "*"+ext, regexp.QuoteMeta(ext)+"$"
	} else {
		q.Glob, q.File = base, "(^|/)"+regexp.QuoteMeta(base)+"$"
	}
	// Scopes use the case of the file name, so that a glob means the same.
	q.CaseSensitive = true
	return q, ok && !strings.ContainsAny(base, `[]{}*?\`)
}

func (s *sampler) regexLiteral() (Query, bool) {
	word := s.pick(s.v.mid)
	shapes := []string{`\b%s\w*\(`, `%s[ \t]*[:=]`, `\w+\.%s\b`, `%s.{1,20}` + s.pick(s.v.common), `[a-z]+_?%s[0-9A-Z]`}
	pattern := fmt.Sprintf(shapes[s.rng.IntN(len(shapes))], word)
	return Query{Patterns: []string{pattern}}, word != ""
}

func (s *sampler) alternation() (Query, bool) {
	words := []string{s.pick(s.v.mid), s.pick(s.v.mid), s.pick(s.v.rare)}[:2+s.rng.IntN(2)]
	return Query{Patterns: []string{"(" + strings.Join(words, "|") + ")"}}, words[0] != "" && words[len(words)-1] != ""
}

func (s *sampler) regexOnly() (Query, bool) {
	a, b := 2+s.rng.IntN(4), 1+s.rng.IntN(4)
	shapes := []string{
		fmt.Sprintf(`[A-Z]{%d}[0-9]{%d}`, a, b), fmt.Sprintf(`\b[0-9]{%d}\b`, a+b), fmt.Sprintf(`[aeiou]{%d}`, a),
		fmt.Sprintf(`[A-Z][a-z]{%d}[0-9][A-Z]`, b), fmt.Sprintf(`^[ \t]{%d}[a-z]`, 8*a+b), fmt.Sprintf(`[!-/]{%d}[0-9]`, a),
		fmt.Sprintf(`[bcdfghjklmnpqrstvwxz]{%d}`, a+b),
	}
	return Query{Patterns: []string{shapes[s.rng.IntN(len(shapes))]}, CaseSensitive: true}, true
}
