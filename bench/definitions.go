package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/go-enry/go-enry/v2"

	"github.com/trawl-search/trawl/index/symbols"
)

// definitionsConfig says what to compare.
type definitionsConfig struct {
	// Folders whose files are compared.
	Folders []string
	// Files is the most files of each language, spread over all folders.
	Files int
	// Language, if not empty, is the only language that is compared, and each difference is
	// written.
	Language string
	// Results is the folder of the dated table; if empty, the table goes only to Out.
	Results string
	Out     io.Writer
}

// ctagsNames maps languages to their names in ctags.
var ctagsNames = map[string]string{
	"C": "C", "C++": "C++", "C#": "C#", "Elixir": "Elixir", "Go": "Go", "Haskell": "Haskell", "Java": "Java", "JavaScript": "JavaScript",
	"Kotlin": "Kotlin", "Lua": "Lua", "Objective-C": "ObjectiveC", "PHP": "PHP", "Perl": "Perl", "Python": "Python", "R": "R", "Ruby": "Ruby",
	"Rust": "Rust", "SQL": "SQL", "Shell": "Sh", "TypeScript": "TypeScript",
}

const (
	largestFile = 512 << 10
	ctagsTime   = 10 * time.Minute
)

// writeDefinitions compares the results of package symbols with universal-ctags, file by file, on
// trees of real code, and writes the table.
func writeDefinitions(ctx context.Context, cfg definitionsConfig) error {
	files, err := sample(cfg)
	if err != nil {
		return err
	}
	var rows []row
	for _, language := range slices.Sorted(maps.Keys(files)) {
		r, err := compare(ctx, cfg, language, files[language])
		if err != nil {
			return err
		}
		rows = append(rows, r)
	}
	version, err := exec.CommandContext(ctx, "ctags", "--version").Output()
	if err != nil {
		return fmt.Errorf("asking ctags for its version: %w", err)
	}
	first, _, _ := strings.Cut(string(version), "\n")
	text := table(rows, cfg, first)
	if cfg.Results != "" {
		name := filepath.Join(cfg.Results, time.Now().UTC().Format("2006-01-02-150405")+"-definitions.txt")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return fmt.Errorf("writing the table: %w", err)
		}
	}
	_, err = io.WriteString(cfg.Out, text)
	return err //nolint:wrapcheck // of the caller's writer
}

// sample returns files by language: if there are more than cfg.Files, every n-th.
func sample(cfg definitionsConfig) (map[string][]string, error) {
	files := map[string][]string{}
	for _, folder := range cfg.Folders {
		err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			info, err := entry.Info()
			if err != nil || info.Size() == 0 || info.Size() > largestFile {
				return err
			}
			language, err := languageOf(path)
			if err != nil {
				return err
			}
			if cfg.Language != "" && language != cfg.Language || ctagsNames[language] == "" || symbols.For(language) == nil {
				return nil
			}
			files[language] = append(files[language], path)
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("finding files in %s: %w", folder, err)
		}
	}
	for language, all := range files {
		var kept []string
		step := max(1, float64(len(all))/float64(cfg.Files))
		for at := 0.0; int(at) < len(all); at += step {
			kept = append(kept, all[int(at)])
		}
		files[language] = kept
	}
	return files, nil
}

// languageOf returns the language of a file that people write; empty for generated files.
func languageOf(path string) (string, error) {
	candidates := enry.GetLanguagesByExtension(path, nil, nil)
	if !slices.ContainsFunc(candidates, func(name string) bool { return ctagsNames[name] != "" }) {
		return "", nil
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading a file to compare: %w", err)
	}
	if enry.IsGenerated(path, text) || bytes.IndexByte(text, 0) >= 0 || !utf8.Valid(text) || len(text)/(1+bytes.Count(text, []byte("\n"))) > 200 {
		return "", nil
	}
	return enry.GetLanguage(path, text), nil
}

// definition is a name and its line.
type definition struct {
	line int
	name string
}

// tag is a line of ctags' JSON.
type tag struct {
	Name string `json:"name"`
	Path string `json:"path"`
	Line int    `json:"line"`
	Kind string `json:"kind"`
	// Scope is what the name is defined in, empty for a file.
	Scope string `json:"scope"`
}

// row has the measurements of one language.
type row struct {
	language     string
	files        int
	bytes        int64
	seconds      float64 // time to find the definitions
	main, rest   score
	kinds        map[string]*score // by ctags' names of kinds
	ctagsSeconds float64
}

// score counts what both find, among ctags' definitions and among ours.
type score struct{ theirs, theirsFound, ours, oursFound int }

func (s score) recall() float64    { return float64(s.theirsFound) / float64(max(s.theirs, 1)) }
func (s score) precision() float64 { return float64(s.oursFound) / float64(max(s.ours, 1)) }
func (s score) f1() float64 {
	r, p := s.recall(), s.precision()
	return 2 * r * p / math.Max(r+p, 1e-9)
}

// compare runs both finders on some files.
func compare(ctx context.Context, cfg definitionsConfig, language string, paths []string) (row, error) {
	r := row{language: language, kinds: map[string]*score{}}
	start := time.Now()
	tags, err := ctags(ctx, language, paths)
	if err != nil {
		return r, err
	}
	r.ctagsSeconds = time.Since(start).Seconds()
	rules := symbols.For(language)
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			return r, fmt.Errorf("reading a file to compare: %w", err)
		}
		start := time.Now()
		found := rules.Append(nil, text)
		r.seconds += time.Since(start).Seconds()
		r.files++
		r.bytes += int64(len(text))
		r.add(cfg, path, text, found, tags[path])
	}
	return r, nil
}

// add compares one file.
func (r *row) add(cfg definitionsConfig, path string, text []byte, found []symbols.Symbol, tags []tag) {
	ours, theirs := map[definition]bool{}, map[definition]bool{}
	line, at := 1, uint32(0)
	for _, s := range found {
		line += bytes.Count(text[at:s.Start], []byte("\n"))
		at = s.Start
		ours[definition{line, string(text[s.Start:s.End])}] = true
	}
	for _, t := range tags {
		theirs[definition{t.Line, t.Name}] = true
	}
	line, at = 1, 0
	for _, s := range found {
		line += bytes.Count(text[at:s.Start], []byte("\n"))
		at = s.Start
		d := definition{line, string(text[s.Start:s.End])}
		to := &r.main
		if s.Kind == symbols.Field || s.Kind == symbols.Variable {
			to = &r.rest
		}
		to.ours++
		if theirs[d] {
			to.oursFound++
		} else if cfg.Language != "" && to == &r.main {
			fmt.Fprintf(cfg.Out, "ours only %s:%d %s %s\n", path, line, s.Kind, d.name)
		}
	}
	for _, t := range tags {
		to := &r.main
		if !isMain(t.Kind) {
			to = &r.rest
		}
		kind := r.kinds[t.Kind]
		if kind == nil {
			kind = &score{}
			r.kinds[t.Kind] = kind
		}
		to.theirs++
		kind.theirs++
		if ours[definition{t.Line, t.Name}] {
			to.theirsFound++
			kind.theirsFound++
		} else if cfg.Language != "" && to == &r.main {
			fmt.Fprintf(cfg.Out, "ctags only %s:%d %s %s\n", path, t.Line, t.Kind, t.Name)
		}
	}
}

// isMain reports whether a kind of ctags is one of functions, types, constants and macros.
func isMain(kind string) bool {
	switch kind {
	case "variable", "var", "globalVar", "field", "member", "property", "accessor", "anonMember", "ivar", "event", "vector", "list", "dataframe", "nameattr":
		return false
	}
	return true
}

// leftOut are kinds that define nothing, such as uses and labels.
func leftOut(kind string) bool {
	switch kind {
	case "header", "script", "heredoc", "label", "library", "source", "packageName", "namespace alias", "unknown", "implementation", "block", "test", "format", "anonMember", "describe", "context":
		return true
	}
	return false
}

// ctags returns the tags that ctags finds, by file. It omits names that ctags makes up, and names
// that contain only a part of a word.
func ctags(ctx context.Context, language string, paths []string) (map[string][]tag, error) {
	ctx, cancel := context.WithTimeout(ctx, ctagsTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "ctags", "--output-format=json", "--fields=+nK", "--pseudo-tags=", "--language-force="+ctagsNames[language], "-L", "-", "-f", "-")
	cmd.Stdin = strings.NewReader(strings.Join(paths, "\n") + "\n")
	out, err := cmd.Output()
	if err != nil {
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			err = fmt.Errorf("%w: %.300s", err, failed.Stderr)
		}
		return nil, fmt.Errorf("running ctags: %w", err)
	}
	tags := map[string][]tag{}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		var t tag
		if json.Unmarshal(lines.Bytes(), &t) != nil || leftOut(t.Kind) || t.Name == "" || strings.HasPrefix(t.Name, "__anon") || strings.HasPrefix(t.Name, "Anonymous") || strings.HasPrefix(t.Name, "anonymous") || strings.HasPrefix(t.Name, "operator ") {
			continue
		}
		if language == "Python" && t.Kind == "namespace" || language == "PHP" && t.Kind == "alias" || language == "Go" && t.Kind == "package" { // of imports, and of every file
			continue
		}
		t.Name = lastPart(language, t.Name)
		tags[t.Path] = append(tags[t.Path], t)
	}
	return tags, lines.Err()
}

// lastPart returns the name as package symbols has it: ctags includes the scope in some names.
func lastPart(language, name string) string {
	switch language {
	case "Lua":
		return name[strings.LastIndexAny(name, ".:")+1:]
	case "Ruby":
		name = strings.TrimSuffix(name, "=")
		if i := strings.LastIndex(name, "::"); i >= 0 {
			return name[i+2:]
		}
	case "SQL":
		return strings.Trim(name[strings.LastIndexByte(name, '.')+1:], "\"`")
	case "Objective-C":
		first, _, _ := strings.Cut(name, ":")
		return first
	}
	return strings.TrimPrefix(name, "~")
}

func table(rows []row, cfg definitionsConfig, version string) string {
	slices.SortStableFunc(rows, func(a, b row) int { return cmp.Compare(a.main.f1(), b.main.f1()) })
	var b strings.Builder
	fmt.Fprintf(&b, "Definitions compared with %s\n\nbench definitions -files %d FOLDERS: at most that many files of each language.\n", version, cfg.Files)
	b.WriteString("Main kinds are functions, methods, types, constants and macros; the rest are fields and variables. Recall is the share\n" +
		"of ctags' names that Trawl finds in the same line, precision the share of Trawl's names that ctags has, of any kind.\n\n")
	fmt.Fprintf(&b, "%-12s %6s %7s %9s %9s %7s  %8s %7s  %8s %8s\n", "language", "files", "MB", "names", "precision", "recall", "rest, p.", "recall", "MB/s", "ctags")
	for _, r := range rows {
		mb := float64(r.bytes) / 1e6
		fmt.Fprintf(&b, "%-12s %6d %7.1f %9d %9.3f %7.3f  %8.3f %7.3f  %8.0f %8.1f\n",
			r.language, r.files, mb, r.main.theirs, r.main.precision(), r.main.recall(), r.rest.precision(), r.rest.recall(), mb/r.seconds, mb/r.ctagsSeconds)
	}
	b.WriteString("\nRecall by ctags' kinds\n\n")
	for _, r := range rows {
		fmt.Fprintf(&b, "%s:", r.language)
		for _, kind := range slices.Sorted(maps.Keys(r.kinds)) {
			fmt.Fprintf(&b, " %s %.3f of %d,", kind, r.kinds[kind].recall(), r.kinds[kind].theirs)
		}
		b.WriteString("\n")
	}
	return b.String()
}
