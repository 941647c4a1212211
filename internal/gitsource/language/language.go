// Package language detects the programming language of a file. Languages have the names
// of GitHub's linguist, whose tables are taken from go-enry.
//
// The name decides where it can: a known file name, then the extension, then for files
// without one the interpreter that the first line names. Content decides only between
// languages that share an extension, since its rules are regular expressions and a
// thousand times slower.
//
// The tables are read when they are first needed. go-enry's own are variables, which would add 45
// ms to every start of the program.
package language

import (
	"maps"
	"path"
	"slices"
	"strings"
)

// Bounds of a Detector.
const (
	// sample is how much of a file's start the rules for content see. They
	// take some 100 ns a byte.
	sample = 4 << 10
	// budget bounds the bytes that one detector shows to rules; afterwards the extension's first
	// language is taken. A repository of ambiguous files thus costs some seconds, not hours.
	budget = 16 << 20
	// maxCached bounds the remembered extensions.
	maxCached = 4096
)

// preferred are languages that own an extension so clearly that reading the content is
// not worth its cost. All assembly dialects count as Assembly.
var preferred = map[string]string{
	".asm": "Assembly", ".s": "Assembly", ".html": "HTML", ".json": "JSON", ".md": "Markdown", ".php": "PHP",
	".rs": "Rust", ".txt": "Text", ".yaml": "YAML", ".yml": "YAML",
}

// Detector detects languages. It caches extensions and is for one goroutine.
// The zero value is ready.
type Detector struct {
	extensions map[string][]string
	spent      int
}

// Detect returns the language of a file by its path and content, "" if it is unknown. It
// neither keeps nor changes its arguments.
func (d *Detector) Detect(name, content []byte) string {
	base := path.Base(string(name))
	if languages := linguist().Filenames[base]; len(languages) == 1 {
		return languages[0]
	}
	candidates := d.byExtension(base)
	switch len(candidates) {
	case 0:
		return byShebang(content)
	case 1:
		return candidates[0]
	}
	if slices.Contains(candidates, "C++") && slices.Contains(candidates, "Objective-C") {
		return header(content)
	}
	return d.byContent(base, content, candidates)
}

// byExtension returns the languages that share the extension of a base name.
func (d *Detector) byExtension(base string) []string {
	dot := strings.IndexByte(base, '.')
	if dot < 0 {
		return nil
	}
	ext := base[dot:]
	if known, ok := d.extensions[ext]; ok {
		return known
	}
	languages := linguist().byExtension(strings.ToLower(ext))
	if p, ok := preferred[strings.ToLower(path.Ext(ext))]; ok && slices.Contains(languages, p) {
		languages = []string{p}
	}
	if d.extensions == nil {
		d.extensions = make(map[string][]string)
	}
	if len(d.extensions) < maxCached {
		d.extensions[strings.Clone(ext)] = languages
	}
	return languages
}

func (d *Detector) byContent(base string, content []byte, candidates []string) string {
	content = content[:min(len(content), sample)]
	if d.spent += len(content); d.spent > budget {
		return candidates[0]
	}
	if found := linguist().byContent(strings.ToLower(path.Ext(base)), content); len(found) > 0 {
		return found[0]
	}
	return candidates[0]
}

// byShebang names the interpreter's language of a script without extension.
func byShebang(content []byte) string {
	if found := linguist().Interpreters[interpreter(content[:min(len(content), 512)])]; len(found) > 0 {
		return found[0]
	}
	return ""
}

// ByAlias returns the name of the language that an alias or name in any case
// stands for, such as Go for "golang".
func ByAlias(alias string) (string, bool) {
	name, ok := linguist().Aliases[strings.ToLower(strings.ReplaceAll(alias, " ", "_"))]
	return name, ok
}

// Aliases returns what ByAlias knows, in lower case and sorted.
func Aliases() []string { return slices.Sorted(maps.Keys(linguist().Aliases)) }
