package main

import (
	"bytes"
	"context"
	"fmt"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// importing says how files of a language import names from others. It is written apart from internal/resolve, which it judges.
type importing struct {
	// extension of files of the language.
	extension string
	// comment matches a line that is a comment, or part of one.
	comment *regexp.Regexp
	// statement matches an import; its groups are what it imports from, and names between commas.
	statement *regexp.Regexp
	// files are the paths of the file that is meant, relative to the root or, with a leading slash, to any folder.
	files func(file, from string) []string
}

var importings = map[string]importing{
	"Python": {
		extension: ".py", comment: regexp.MustCompile(`^\s*#`),
		statement: regexp.MustCompile(`(?m)^from +([\w.]+) +import +(?:\(([^)]*)\)|([^(\n#]+))`),
		files: func(file, from string) []string {
			name := strings.TrimLeft(from, ".")
			to := strings.ReplaceAll(name, ".", "/")
			if dots := len(from) - len(name); dots > 0 {
				to = path.Join(append([]string{path.Dir(file)}, append(slices.Repeat([]string{".."}, dots-1), to)...)...)
			} else {
				to = "/" + to
			}
			return []string{to + ".py", to + "/__init__.py"}
		},
	},
	"Java": {
		extension: ".java", comment: regexp.MustCompile(`^\s*(//|/?\*)`),
		statement: regexp.MustCompile(`(?m)^import +([\w.]+\.([A-Z]\w*)) *;()`),
		files:     func(_, from string) []string { return []string{"/" + strings.ReplaceAll(from, ".", "/") + ".java"} },
	},
	"Rust": {
		extension: ".rs", comment: regexp.MustCompile(`^\s*(//|/?\*)`),
		statement: regexp.MustCompile(`(?m)^ *use +((?:crate|super|self)(?:::\w+)*)::(?:\{([^{}]*)\}|(\w+)) *;`),
		files: func(file, from string) []string {
			parts := strings.Split(from, "::")
			own := strings.TrimSuffix(file, ".rs")
			if slices.Contains([]string{"mod", "lib", "main"}, path.Base(own)) {
				own = path.Dir(own)
			}
			to := own
			if parts[0] == "crate" {
				root, _, ok := strings.Cut("/"+file, "/src/")
				if !ok {
					return nil
				}
				to = path.Join(strings.TrimPrefix(root, "/"), "src")
			}
			for _, part := range parts {
				switch part {
				case "super":
					to = path.Dir(to)
				case "crate", "self":
				default:
					to = path.Join(to, part)
				}
			}
			return []string{to + ".rs", to + "/mod.rs", to + "/lib.rs"}
		},
	},
	"TypeScript": {
		extension: ".ts", comment: regexp.MustCompile(`^\s*(//|/?\*)`),
		statement: regexp.MustCompile(`(?m)^import +(?:type +)?\{()([^}]*)\} +from +['"](\.[^'"]*)['"]`),
		files: func(file, from string) []string {
			to := path.Join(path.Dir(file), from)
			return []string{to + ".ts", to + ".tsx", to + "/index.ts"}
		},
	},
}

// usesByCtags are the uses of names in the files of a folder whose definition follows from an import, or stands in the same file. A name counts
// if the file that it comes from has one definition of it outside of functions and types.
func usesByCtags(ctx context.Context, root, language string) (uses []usage, err error) {
	how, ok := importings[language]
	if !ok {
		return nil, fmt.Errorf("imports of %s are not known, but those of Python, Java, Rust and TypeScript", language)
	}
	tags, err := tagsIn(ctx, root, language, how.extension)
	if err != nil {
		return nil, err
	}
	var files []string
	for file := range tags {
		files = append(files, file)
	}
	slices.Sort(files)
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, fmt.Errorf("reading a file: %w", err)
		}
		targets := map[string]token.Position{}
		own := map[string]bool{}
		for _, t := range tags[file] {
			own[t.Name] = true
			// Without an indent: Universal Ctags gives the names in some functions no scope.
			if at, ok := only(file, tags[file], t.Name); ok && (language == "Java" || !isIndented(text, t.Line)) {
				targets[t.Name] = at
			}
		}
		imports := how.statement.FindAllSubmatch(text, -1)
		body := 0 // where the last import ends
		for _, at := range how.statement.FindAllIndex(text, -1) {
			body = at[1]
		}
		for _, m := range imports {
			from, names := string(m[1]), string(m[2])+string(m[3])
			if language == "TypeScript" {
				from, names = string(m[3]), string(m[2])
			}
			defined := fileOf(tags, how.files(file, from))
			for name := range strings.SplitSeq(names, ",") {
				name = strings.TrimPrefix(strings.TrimSpace(name), "type ")
				delete(targets, name)
				if at, ok := only(defined, tags[defined], name); ok && !own[name] {
					targets[name] = at
				}
			}
		}
		uses = append(uses, usesOf(how, file, text, body, targets)...)
	}
	return uses, nil
}

// tagsIn are the definitions in the files of a folder with an extension, by the path in it.
func tagsIn(ctx context.Context, root, language, extension string) (map[string][]tag, error) {
	var paths []string
	err := filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && path.Ext(p) == extension {
			paths = append(paths, p)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("listing %s: %w", root, err)
	}
	found, err := ctags(ctx, language, paths)
	if err != nil {
		return nil, err
	}
	tags := map[string][]tag{}
	for p, list := range found {
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return nil, fmt.Errorf("finding the path of a tag: %w", err)
		}
		tags[filepath.ToSlash(rel)] = list
	}
	return tags, nil
}

// only is the only definition of a name among those of a file, if it is outside of functions and types.
func only(file string, tags []tag, name string) (at token.Position, ok bool) {
	for _, t := range tags {
		if t.Name != name || slices.Contains([]string{"package", "module", "implementation", "unknown"}, t.Kind) {
			continue
		}
		if ok || t.Scope != "" && t.Kind != "class" && t.Kind != "interface" && t.Kind != "enum" && path.Ext(file) != ".java" && !isModule(t.Scope) {
			return token.Position{}, false
		}
		at, ok = token.Position{Filename: file, Line: t.Line}, true
	}
	return at, ok
}

func isIndented(text []byte, line int) bool {
	for ; line > 1; line-- {
		_, text, _ = bytes.Cut(text, []byte("\n"))
	}
	return len(text) > 0 && (text[0] == ' ' || text[0] == '\t')
}

// isModule reports whether a scope may be a module, as in Rust, and not a type.
func isModule(scope string) bool { return scope != "" && scope == strings.ToLower(scope) }

// fileOf is the only file among those that an import may mean, empty if there are none or several.
func fileOf(tags map[string][]tag, means []string) (file string) {
	for _, m := range means {
		anywhere := strings.HasPrefix(m, "/")
		for have := range tags {
			if have != m && (!anywhere || !strings.HasSuffix("/"+have, m)) {
				continue
			}
			if file != "" && file != have {
				return ""
			}
			file = have
		}
	}
	return file
}

var identifier = regexp.MustCompile(`[A-Za-z_]\w*`)

// usesOf are the uses of the targets' names in a file, from a place on. What may be in a text or a comment, belongs to something before a dot,
// or names an argument, does not count.
func usesOf(how importing, file string, text []byte, body int, targets map[string]token.Position) (uses []usage) {
	line, start := 0, 0
	for l := range bytes.Lines(text) {
		line++
		begin := start
		start += len(l)
		if begin < body || how.comment.Match(l) || bytes.ContainsAny(l, "\"'`") {
			continue
		}
		code, _, _ := bytes.Cut(l, []byte("//"))
		for _, at := range identifier.FindAllIndex(code, -1) {
			name := string(code[at[0]:at[1]])
			to, ok := targets[name]
			if !ok || to.Filename == file && to.Line == line {
				continue
			}
			before, after := bytes.TrimSpace(code[:at[0]]), bytes.TrimSpace(code[at[1]:])
			if bytes.HasSuffix(before, []byte(".")) || bytes.HasSuffix(before, []byte("::")) || bytes.HasPrefix(after, []byte("=")) || bytes.HasPrefix(after, []byte(":")) {
				continue
			}
			kind := "imported"
			if to.Filename == file {
				kind = "same file"
			}
			uses = append(uses, usage{name: name, kind: kind, from: token.Position{Filename: file, Line: line, Column: at[0] + 1}, to: to})
		}
	}
	return uses
}
