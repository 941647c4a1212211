package relevance

import (
	"path"
	"regexp"
	"strings"
	"unicode"
)

// language says what a definition looks like: expressions for one line, whose first group is
// the name. They are written for this measurement and know nothing of any engine. Other files may define the name, too; see defining.
type language []*regexp.Regexp

var (
	goLanguage = language{regexp.MustCompile(`^func (?:\([^)]*\) )?([A-Za-z]\w{4,})[(\[]`), regexp.MustCompile(`^type ([A-Za-z]\w{4,}) `)}
	rust       = language{regexp.MustCompile(`^\s*(?:pub(?:\([^)]*\))? )?(?:async |unsafe |const )*(?:fn|struct|enum|trait) ([A-Za-z]\w{4,})`)}
	c          = language{
		regexp.MustCompile(`^(?:class|struct) ([A-Za-z]\w{4,})[^;]*\{`), regexp.MustCompile(`^#define ([A-Za-z]\w{5,})\b`),
		regexp.MustCompile(`^[A-Za-z][\w:<> *&]*[ *]([A-Za-z]\w{5,})\([^;]*\{$`), regexp.MustCompile(`^[A-Za-z][\w:<> *&]*::([A-Za-z]\w{5,})\([^;]*\{$`),
	}
	java       = language{regexp.MustCompile(`^\s*(?:public|protected|private)[\w ]* (?:class|interface|enum) ([A-Za-z]\w{4,})`)}
	javascript = language{regexp.MustCompile(`^(?:async )?function ([A-Za-z]\w{4,})\(`), regexp.MustCompile(`^(?:exports|module\.exports|app|res|req|proto)\.([A-Za-z]\w{4,}) = function`)}
	typescript = language{regexp.MustCompile(`^export (?:declare |default |abstract |async )*(?:function|class|interface|type|const|enum) ([A-Za-z]\w{4,})`)}
	python     = language{regexp.MustCompile(`^\s*(?:class|def|async def) ([A-Za-z]\w{4,})\b`)}

	languages = map[string]language{
		".go": goLanguage, ".rs": rust, ".c": c, ".h": c, ".cc": c, ".cpp": c, ".java": java, ".js": javascript, ".ts": typescript, ".py": python,
	}
)

// asidePath matches the paths of what people seldom look for. Queries ask for it by file names only.
var asidePath = regexp.MustCompile(`(?i)(^|[/_.-])(tests?|testing|testdata|specs?|examples?|benchmarks?|bench|benches|vendor|third[-_]party|deps|fixtures|mocks?|docs?)([/_.-]|$)|__tests__|_test\.|\.pb\.|Test\.java$`)

// definition is a name with the comment above it, or below it where that is the custom.
type definition struct {
	name    string
	file    *file
	comment []string // its lines, without the marks
}

// definitions finds those of a file, in order.
func definitions(f *file) (found []definition) {
	lines := strings.Split(f.text, "\n")
	for i, line := range lines {
		for _, expression := range languages[f.ext] {
			if m := expression.FindStringSubmatch(line); m != nil {
				found = append(found, definition{m[1], f, comment(lines, i, f.ext == ".py")})
				break
			}
		}
	}
	return found
}

var (
	commentMark   = regexp.MustCompile(`^\s*(?://[/!]?|/\*\*?|\*/?|#)(?:\s|$)`)
	attributeMark = regexp.MustCompile(`^\s*(?:#\[|@)`)
)

// mostComment is how many lines of a comment below a definition are read.
const mostComment = 20

// comment returns the lines of the comment of what is defined in line i.
func comment(lines []string, i int, below bool) (text []string) {
	if below {
		if i+1 == len(lines) || !strings.HasPrefix(strings.TrimSpace(lines[i+1]), `"""`) {
			return nil
		}
		for n, line := range lines[i+1 : min(len(lines), i+1+mostComment)] {
			marks := strings.Count(line, `"""`)
			text = append(text, strings.TrimSpace(strings.ReplaceAll(line, `"""`, "")))
			if marks == 2 || marks == 1 && n > 0 {
				break
			}
		}
		return text
	}
	first := i
	for first > 0 && (commentMark.MatchString(lines[first-1]) || attributeMark.MatchString(lines[first-1])) {
		first--
	}
	for _, line := range lines[first:i] {
		if mark := commentMark.FindString(line); mark != "" {
			text = append(text, strings.TrimSpace(line[len(mark):]))
		}
	}
	return text
}

// subwords splits a name where people see its words: at what is no letter or digit, before capitals, and
// between letters and digits. They are in small letters.
func subwords(name string) (words []string) {
	runes := []rune(name)
	start := 0
	end := func(i int) {
		if i > start {
			words = append(words, strings.ToLower(string(runes[start:i])))
		}
		start = i
	}
	for i, r := range runes {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			end(i)
			start = i + 1
		case i == start:
		case unicode.IsDigit(r) != unicode.IsDigit(runes[i-1]),
			unicode.IsUpper(r) && (unicode.IsLower(runes[i-1]) || i+1 < len(runes) && unicode.IsLower(runes[i+1])):
			end(i)
		}
	}
	end(len(runes))
	return words
}

// stem is a file's base name without what follows the first dot.
func stem(p string) string {
	base := path.Base(p)
	if i := strings.IndexByte(base, '.'); i > 0 {
		base = base[:i]
	}
	return base
}
