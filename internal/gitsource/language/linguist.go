package language

import (
	_ "embed" // for the tables
	"encoding/json"
	"regexp"
	"strings"
	"sync"

	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// linguistJSON is written by go test -run LinguistTables -update.
//
//go:embed linguist.json
var linguistJSON []byte

// tables are those of linguist.
type tables struct {
	Filenames    map[string][]string
	Extensions   map[string][]string
	Interpreters map[string][]string
	// Aliases of languages and their names, in small letters, with underscores for spaces.
	Aliases map[string]string
	// Rules distinguish the languages that share an extension. The first that holds decides.
	Rules map[string][]rule
}

// rule is a condition on a content; if it holds, the file is of one of some languages. It holds if
// all of its parts do.
type rule struct {
	Languages []string     `json:",omitempty"`
	Matches   []expression `json:",omitempty"` // all of them
	Lacks     []expression `json:",omitempty"` // none of them matches
}

// expression is a regular expression that is compiled when it is first needed.
type expression struct{ compiled func() *regexp.Regexp }

// UnmarshalText implements encoding.TextUnmarshaler.
func (e *expression) UnmarshalText(text []byte) error {
	e.compiled = lazyregexp.New(string(text))
	return nil
}

var linguist = sync.OnceValue(func() *tables {
	var t tables
	if err := json.Unmarshal(linguistJSON, &t); err != nil {
		panic(err) //nolint:forbidigo // the file is part of the program
	}
	return &t
})

// byExtension returns the languages of the longest known extension of a base name in small
// letters.
func (t *tables) byExtension(name string) []string {
	for i := range len(name) {
		if name[i] == '.' {
			if languages, ok := t.Extensions[name[i:]]; ok {
				return languages
			}
		}
	}
	return nil
}

// byContent returns the languages of the first rule that holds.
func (t *tables) byContent(ext string, content []byte) []string {
	for i := range t.Rules[ext] {
		if r := &t.Rules[ext][i]; r.holds(content) {
			return r.Languages
		}
	}
	return nil
}

func (r *rule) holds(content []byte) bool {
	for _, e := range r.Matches {
		if !e.compiled().Match(content) {
			return false
		}
	}
	for _, e := range r.Lacks {
		if e.compiled().Match(content) {
			return false
		}
	}
	return true
}

// Parts of first lines, as linguist reads them.
var (
	envArgument   = lazyregexp.New(`-[i0uCSv]*|--\S+|\S+=\S+`)
	execOfScript  = lazyregexp.New(`exec (\w+).+\$0.+\$@`)
	pythonVersion = lazyregexp.New(`python\d\.\d+`)
)

// interpreter returns the name of the program that a script names in its first line, "" if it names none.
func interpreter(content []byte) string {
	line, _, _ := strings.Cut(string(content), "\n")
	line, ok := strings.CutPrefix(line, "#!")
	fields := strings.Fields(line)
	if !ok || len(fields) == 0 {
		return ""
	}
	name := base(fields[0])
	if name == "env" {
		fields = fields[1:]
		for len(fields) > 1 && envArgument().MatchString(fields[0]) {
			fields = fields[1:]
		}
		if len(fields) == 0 {
			return ""
		}
		name = base(fields[0])
	}
	switch {
	case name == "sh": // it may start another interpreter at once
		for i, l := range strings.SplitN(string(content), "\n", 6) {
			if m := execOfScript().FindStringSubmatch(l); i < 5 && m != nil {
				return m[1]
			}
		}
	case pythonVersion().MatchString(name):
		name, _, _ = strings.Cut(name, ".")
	case name == "osascript" && strings.Contains(line, "-l"):
		return ""
	}
	return name
}

// base is the last part of a program's path, as on every system.
func base(program string) string { return program[strings.LastIndexByte(program, '/')+1:] }
