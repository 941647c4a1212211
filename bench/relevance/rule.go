package relevance

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// kind is what a caller has in mind.
type kind string

const (
	definitionKind kind = "definitions"
	conceptKind    kind = "concepts"
	phraseKind     kind = "phrases"
	fileKind       kind = "file names"
	splitKind      kind = "split symbols"
	usageKind      kind = "usages"
)

var kinds = []kind{definitionKind, conceptKind, phraseKind, fileKind, splitKind, usageKind}

// known is a query and the files that answer it.
type known struct {
	kind    kind
	query   string
	targets []string // repo/path; the first is that of the query's rule
	tuning  bool     // belongs to the half that may be tuned on
}

// source is a rule that queries of a kind are made by, and how many of each repo at most: an even number.
type source struct {
	kind       kind
	perRepo    int
	candidates func(*rules) []candidate
}

var sources = []source{
	{definitionKind, 6, (*rules).names},
	{conceptKind, 4, (*rules).comments},
	{conceptKind, 4, (*rules).changes},
	{phraseKind, 6, (*rules).phrases},
	{fileKind, 6, (*rules).fileNames},
	{splitKind, 6, (*rules).splitSymbols},
	{usageKind, 6, (*rules).usages},
}

// tree is all that queries are made from.
type tree struct {
	repos   []string
	files   map[string][]*file // by repo
	commits map[string][]commit
	tagged  map[string][]*file // by name, the files of all repos that define it according to ctags
}

// digest identifies a set of queries.
func digest(queries []known) string {
	h := sha256.New()
	for _, q := range queries {
		fmt.Fprintf(h, "%s\t%s\t%s\t%t\n", q.kind, q.query, strings.Join(q.targets, "\t"), q.tuning)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

// generate makes the queries. What fits the rule of its kind is taken in the order of its hash, so that
// nobody chooses, and every second one of a repo belongs to the half that is only reported.
func generate(t *tree) (queries []known) {
	var defined []definition
	definers := map[string]int{} // files that define a name
	stems := map[string]int{}
	for _, repo := range t.repos {
		for _, f := range t.files[repo] {
			stems[strings.ToLower(stem(f.path))]++
			if f.aside {
				continue
			}
			seen := map[string]bool{}
			for _, d := range definitions(f) {
				if seen[d.name] {
					continue
				}
				seen[d.name] = true
				definers[d.name]++
				defined = append(defined, d)
			}
		}
	}
	defined = slices.DeleteFunc(defined, func(d definition) bool { return definers[d.name] > 1 })
	for _, repo := range t.repos {
		r := &rules{tree: t, repo: repo, stems: stems, definedIn: map[string]*file{}}
		for _, d := range defined {
			if d.file.repo == repo {
				r.defined = append(r.defined, d)
				r.definedIn[d.name] = d.file
			}
		}
		for i := range sources {
			queries = append(queries, r.sample(&sources[i])...)
		}
	}
	return queries
}

// rules makes the queries of one repo.
type rules struct {
	*tree
	repo      string
	stems     map[string]int
	defined   []definition // whose names the expressions find in no other file of any repo
	definedIn map[string]*file
}

// candidate may become a query. Fits is the part of the rule that takes a look at many files.
type candidate struct {
	query  string
	target *file
	others []*file // answer it, too
	fits   func() bool
	hash   [sha256.Size]byte
}

// names returns those of the files that answer the query, that of the target first.
func (c *candidate) names() []string {
	names := []string{c.target.name()}
	for _, f := range c.others {
		names = append(names, f.name())
	}
	slices.Sort(names[1:])
	return names
}

func (r *rules) sample(s *source) (queries []known) {
	candidates := s.candidates(r)
	for i := range candidates {
		c := &candidates[i]
		c.hash = sha256.Sum256([]byte(string(s.kind) + "\x00" + c.query + "\x00" + c.target.name()))
	}
	slices.SortFunc(candidates, func(a, b candidate) int { return bytes.Compare(a.hash[:], b.hash[:]) })
	targets := map[string]bool{}
	for _, c := range candidates {
		if len(queries) == s.perRepo {
			break
		}
		if targets[c.target.path] || !c.fits() {
			continue
		}
		targets[c.target.path] = true
		queries = append(queries, known{s.kind, c.query, c.names(), len(queries)%2 == 0})
	}
	return queries
}

// having counts the files of the repo, up to most, that have all the words in their text or path.
func (r *rules) having(most int, words ...string) (n int) {
	for _, f := range r.files[r.repo] {
		if n < most && !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(f.lower, strings.ToLower(w)) }) {
			n++
		}
	}
	return n
}

// mostDefining is how many files at most define a name that is asked for. One of many is easily found.
const mostDefining = 3

// others returns the files beside that of a definition that define its name according to ctags, and whether they are few.
func (r *rules) others(d definition) (files []*file, few bool) {
	files = slices.DeleteFunc(slices.Clone(r.tagged[d.name]), func(f *file) bool { return f == d.file })
	return files, len(files) < mostDefining
}

// names asks for a name by itself. Other files mention it.
func (r *rules) names() (all []candidate) {
	for _, d := range r.defined {
		if others, few := r.others(d); few {
			all = append(all, candidate{query: d.name, target: d.file, others: others, fits: func() bool { return r.having(4, d.name) == 4 }})
		}
	}
	return all
}

// splitSymbols asks for the words of a name of three to five. Other files have them, too.
func (r *rules) splitSymbols() (all []candidate) {
	for _, d := range r.defined {
		words := subwords(d.name)
		others, few := r.others(d)
		if len(words) < 3 || len(words) > 5 || slices.Contains(words, "or") || !few {
			continue
		}
		all = append(all, candidate{query: strings.Join(words, " "), target: d.file, others: others, fits: func() bool { return r.having(2, words...) == 2 }})
	}
	return all
}

// fileNames asks for the words of a base name that no other file has. Tests are asked for as well.
func (r *rules) fileNames() (all []candidate) {
	for _, f := range r.files[r.repo] {
		name := stem(f.path)
		words := subwords(name)
		if r.stems[strings.ToLower(name)] > 1 || len(name) < 5 || slices.Contains(words, "or") {
			continue
		}
		all = append(all, candidate{query: strings.Join(words, " "), target: f, fits: func() bool { return r.having(2, words...) == 2 }})
	}
	return all
}

const wordsOfPhrase = 5

// phrases asks for five words of a comment as they follow each other there. No other file of any
// repo has them so, and others have the words.
func (r *rules) phrases() (all []candidate) {
	for _, d := range r.defined {
		for _, line := range d.comment {
			words := strings.Split(line, " ")
			if len(words) < wordsOfPhrase+2 {
				continue
			}
			words = words[1 : 1+wordsOfPhrase]
			if slices.ContainsFunc(words, func(w string) bool { return !plainWord.MatchString(w) || w == "or" }) {
				continue
			}
			phrase := strings.Join(words, " ")
			all = append(all, candidate{query: phrase, target: d.file, fits: func() bool { return r.only(d.file, phrase) && r.having(2, words...) == 2 }})
			break
		}
	}
	return all
}

// only reports whether no other file of any repo has a text.
func (r *rules) only(of *file, text string) bool {
	text = strings.ToLower(text)
	for _, repo := range r.repos {
		for _, f := range r.files[repo] {
			if f != of && strings.Contains(f.lower, text) {
				return false
			}
		}
	}
	return strings.Contains(of.lower, text)
}

var (
	plainWord  = regexp.MustCompile(`^[A-Za-z]+$`)
	letters    = regexp.MustCompile(`[A-Za-z]+`)
	identifier = regexp.MustCompile(`[A-Za-z_]\w{4,}`)
	called     = regexp.MustCompile(`\b([A-Za-z]\w{4,})\(`)
)

// stopWords say nothing of what a text is about.
var stopWords = func() map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(`about above after again against also another because been before being below between both
		cannot could does doing down during each else ensure even ever every fixed fixes from further have having here into just like made make makes
		merge might more most must needed only other over please return returned returns same shall should since some such than that them then
		there these they this those through under until update updated used uses using very want were what when where whether which while will
		with within without would your`) {
		words[w] = true
	}
	return words
}()

const wordsOfConcept = 3

// comments asks for what the first line of a definition's comment says.
func (r *rules) comments() (all []candidate) {
	for _, d := range r.defined {
		if len(d.comment) > 0 {
			all = append(all, r.concept(d.comment[0], d.name, d.file)...)
		}
	}
	return all
}

// changes asks for what the subject of a commit says that changed one file.
func (r *rules) changes() (all []candidate) {
	for _, c := range r.commits[r.repo] {
		if !c.file.aside {
			all = append(all, r.concept(c.subject, "", c.file)...)
		}
	}
	return all
}

// concept asks for the three longest words of a text that are in the file, without those of a name. Other
// files have them, too.
func (r *rules) concept(text, name string, f *file) []candidate {
	var words []string
	for _, w := range letters.FindAllString(text, -1) {
		w = strings.ToLower(w)
		if len(w) < 4 || stopWords[w] || strings.Contains(strings.ToLower(name), w) || slices.Contains(words, w) || !strings.Contains(f.lower, w) {
			continue
		}
		words = append(words, w)
	}
	if len(words) < wordsOfConcept {
		return nil
	}
	longest := slices.Clone(words)
	slices.SortStableFunc(longest, func(a, b string) int { return len(b) - len(a) })
	words = slices.DeleteFunc(words, func(w string) bool { return !slices.Contains(longest[:wordsOfConcept], w) })
	return []candidate{{query: strings.Join(words, " "), target: f, fits: func() bool { return r.having(2, words...) == 2 }}}
}

// usages asks for a function, and for another word of a line that calls it. No other file of any repo has both on a line,
// and others have both.
func (r *rules) usages() (all []candidate) {
	for _, f := range r.files[r.repo] {
		if f.aside {
			continue
		}
		for line := range strings.Lines(f.text) {
			call := called.FindStringSubmatch(line)
			if call == nil || r.definedIn[call[1]] == nil || r.definedIn[call[1]] == f || commentMark.MatchString(line) {
				continue
			}
			for _, word := range identifier.FindAllString(line, -1) {
				if strings.Contains(word, call[1]) || strings.Contains(call[1], word) || stopWords[strings.ToLower(word)] {
					continue
				}
				all = append(all, candidate{query: call[1] + " " + word, target: f, fits: func() bool { return r.having(2, call[1], word) == 2 && r.onlyLine(f, call[1], word) }})
				break
			}
		}
	}
	return all
}

// onlyLine reports whether no other file of any repo has both words on a line.
func (r *rules) onlyLine(of *file, a, b string) bool {
	a, b = strings.ToLower(a), strings.ToLower(b)
	for _, repo := range r.repos {
		for _, f := range r.files[repo] {
			if f == of || !strings.Contains(f.lower, a) || !strings.Contains(f.lower, b) {
				continue
			}
			for line := range strings.Lines(f.lower) {
				if strings.Contains(line, a) && strings.Contains(line, b) {
					return false
				}
			}
		}
	}
	return true
}
