package corpus

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// words returns n words of one file, so that there is an answer.
func (s *sampler) words(n int) (Query, bool) {
	words := distinct(s.file().Content)
	if len(words) < 10 {
		return Query{}, false
	}
	s.rng.Shuffle(len(words), func(i, j int) { words[i], words[j] = words[j], words[i] })
	return Query{Patterns: words[:n]}, true
}

// file returns a random file of the sample, or an empty one if the sample is
// empty.
func (s *sampler) file() File {
	if len(s.files) == 0 {
		return File{}
	}
	return s.files[s.rng.IntN(len(s.files))]
}

// pathWord returns a word of a file, neither rare nor common, restricted to one
// or two of the folders that the file is in.
func (s *sampler) pathWord() (Query, bool) {
	f := s.file()
	dir := path.Dir(f.Path)
	words := slices.DeleteFunc(distinct(f.Content), func(w string) bool {
		_, mid := slices.BinarySearch(s.v.mid, w)
		return !mid
	})
	if dir == "." || len(words) == 0 {
		return Query{}, false
	}
	folders := strings.Split(dir, "/")
	from := s.rng.IntN(len(folders))
	to := min(from+1+s.rng.IntN(2), len(folders))
	q, ok := literal(s.pick(words))
	q.File = regexp.QuoteMeta(strings.Join(folders[from:to], "/"))
	return q, ok
}

var capitals = regexp.MustCompile(`\b[A-Z]{2,}_([A-Z]{4,})\b`)

// regexWord returns an expression that has a fixed part and matches only within
// a word.
func (s *sampler) regexWord() (Query, bool) {
	if s.rng.IntN(3) == 0 {
		part := capitals.FindSubmatch(s.file().Content)
		if part == nil {
			return Query{}, false
		}
		return Query{Patterns: []string{"[A-Z]+_" + string(part[1])}, CaseSensitive: true}, true
	}
	word := s.pick(s.v.mid)
	shapes := []string{`\b%s\w+`, `\w+%s\b`, `\b[a-z]+_%s\b`, `%s[0-9]+`, `\b%s[A-Z]\w*`}
	return Query{Patterns: []string{fmt.Sprintf(shapes[s.rng.IntN(len(shapes))], word)}}, word != ""
}

var letters = regexp.MustCompile(`[^\x00-\x7f\pP\pZ\pC]{2,8}`)

// nonASCII returns letters beyond ASCII, case-sensitive or not.
func (s *sampler) nonASCII() (Query, bool) {
	q, ok := literal(letters.FindString(s.line()))
	q.CaseSensitive = s.rng.IntN(2) == 0
	return q, ok && q.Patterns[0] != "" && !strings.Contains(q.Patterns[0], "\ufffd")
}
