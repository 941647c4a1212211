package relevance

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/bench/corpus"
)

// linePins are the repos of the known lines, which nobody tuned to: those of bench/unseen, at the same commits. Every second one is only
// reported.
var linePins = []pinned{
	{"ansible", "https://github.com/ansible/ansible", "c9ac477e53a99e95781f333eec3329a935c1bf95"},
	{"cargo", "https://github.com/rust-lang/cargo", "af373f761aa4e42b093c2e453078fd73c8ce54dd"},
	{"curl", "https://github.com/curl/curl", "5c61e168698a72b87437d58ed728bcdea6d5db42"},
	{"framework", "https://github.com/laravel/framework", "bd71b45fbb7e672957bf6ff61baddefe15fbca6a"},
	{"netty", "https://github.com/netty/netty", "0bb88a3e061f77355627e7fd7fc170ffdada7578"},
	{"protobuf", "https://github.com/protocolbuffers/protobuf", "e712d276bcead35cad45e305463f5e542246351e"},
	{"rails", "https://github.com/rails/rails", "2a2db1e8d6d104ee0611efcae7eb023af65cff34"},
	{"terraform", "https://github.com/hashicorp/terraform", "883c7221ee2e0bc2fad6912fd4b3cc4b53a598a7"},
}

const (
	changedKind kind = "changed lines"
	definedKind kind = "definitions"
)

// How many known lines of each kind are drawn from a repo.
var linesPerRepo = map[kind]int{changedKind: 12, definedKind: 13}

// lineExtensions are those of the files that lines are drawn from.
var lineExtensions = []string{".c", ".cc", ".cpp", ".go", ".h", ".java", ".js", ".php", ".py", ".rb", ".rs", ".ts"}

const (
	// lineCommits bounds how far back commits are read.
	lineCommits = 6000
	// leastWords and mostWords bound the words of a query; at least leastWords of them are in the known line.
	leastWords, mostWords = 2, 5
	// mostAdded is how many lines a commit adds at most.
	mostAdded = 3
	// leastLines is how many lines of the file have a word of the query at least: more than a page shows.
	leastLines = 7
)

// DrawLines draws the known lines from the histories and definitions of the repos, and writes them to a file.
func DrawLines(ctx context.Context, cfg Config, to string) (err error) {
	dir, err := os.MkdirTemp("", "lines-")
	if err != nil {
		return fmt.Errorf("making a folder for the repos: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	text := bytes.NewBufferString("# Known lines, written by `bench lines -draw`: kind, repo, path, line, query.\n")
	for _, p := range linePins {
		fmt.Fprintln(cfg.Log, "drawing from", p.name)
		known, err := p.drawLines(ctx, filepath.Join(cfg.Repos, p.name), filepath.Join(dir, p.name))
		if err != nil {
			return err
		}
		for _, k := range known {
			fmt.Fprintf(text, "%s\t%s\t%s\t%d\t%s\n", k.kind, k.repo, k.path, k.line, k.query)
		}
	}
	if err := os.WriteFile(to, text.Bytes(), 0o666); err != nil {
		return fmt.Errorf("writing the known lines: %w", err)
	}
	return nil
}

// drawLines draws the known lines of one repo.
func (p pinned) drawLines(ctx context.Context, repo, dir string) (drawn []knownLine, err error) {
	if err := p.export(ctx, repo, dir); err != nil {
		return nil, err
	}
	files, err := readFiles(corpus.Repo{Name: p.name, Dir: dir}, func(ext string) bool { return slices.Contains(lineExtensions, ext) })
	if err != nil {
		return nil, err
	}
	files = slices.DeleteFunc(files, func(f *file) bool { return f.aside })
	args := []string{"log", "--no-merges", "--no-renames", "--no-color", "--no-ext-diff", "-U0", "--format=%x00%s", fmt.Sprintf("--max-count=%d", lineCommits), p.commit, "--"}
	for _, ext := range lineExtensions { // a copy of a repository may lack its largest files, which are others
		args = append(args, "*"+ext)
	}
	log, err := git(ctx, repo, nil, nil, args...)
	if err != nil {
		return nil, err
	}
	tags, err := tagsOf(ctx, dir, files)
	if err != nil {
		return nil, err
	}
	for _, candidates := range [][]knownLine{changedLines(files, string(log)), definedLines(tags)} {
		drawn = append(drawn, sampleLines(candidates, files)...)
	}
	return drawn, nil
}

// sampleLines takes the first known lines of a kind in the order of their hashes: one of each file, if leastLines of the file have a word.
func sampleLines(candidates []knownLine, files []*file) []knownLine {
	hash := func(k knownLine) string {
		sum := sha256.Sum256(fmt.Appendf(nil, "%s\x00%s\x00%s\x00%d\x00%s", k.kind, k.repo, k.path, k.line, k.query))
		return string(sum[:])
	}
	slices.SortFunc(candidates, func(a, b knownLine) int { return cmp.Compare(hash(a), hash(b)) })
	byPath := filesByPath(files)
	var drawn []knownLine
	for _, k := range candidates {
		if f := byPath[k.path]; len(drawn) < linesPerRepo[k.kind] && f != nil && linesWith(f, strings.Fields(k.query)) >= leastLines {
			delete(byPath, k.path)
			drawn = append(drawn, k)
		}
	}
	return drawn
}

func filesByPath(files []*file) map[string]*file {
	byPath := make(map[string]*file, len(files))
	for _, f := range files {
		byPath[f.path] = f
	}
	return byPath
}

// dullWords are in many subjects of commits, and say nothing of a line.
var dullWords = func() map[string]bool {
	words := map[string]bool{}
	for w := range strings.FieldsSeq(`add added adding adds all allow also always and any are avoid bug but bump call can change changed changes clean
		cleanup correct correctly don drop error fix fixing follow for get has how improve into its line missing move new not now off old one
		out per pr prefer pull refactor remove removed removes rename replace request revert set simplify small support the too try two typo
		unused update use was way who why work you`) {
		words[w] = true
	}
	return words
}()

// changedLines are lines that a commit added to a file, in a change of few lines there, and that are still in it. The query are the
// words of its subject.
func changedLines(files []*file, log string) (known []knownLine) {
	byPath := filesByPath(files)
	for entry := range strings.SplitSeq(log, "\x00") {
		subject, diff, _ := strings.Cut(entry, "\n")
		_, path, ok := strings.Cut(diff, "\n+++ b/")
		if !ok || strings.Count(diff, "\ndiff --git ") != 1 || strings.HasPrefix(subject, "Revert") {
			continue
		}
		path, _, _ = strings.Cut(path, "\n")
		f, words := byPath[path], wordsOfSubject(subject)
		if f == nil || len(words) < leastWords || len(words) > mostWords || len(holding(words, f.lower)) < leastWords {
			continue
		}
		if line := addedLine(f, diff, words); line > 0 {
			known = append(known, knownLine{changedKind, f.repo, path, line, strings.Join(words, " ")})
		}
	}
	return known
}

// wordsOfSubject are the words of a commit's subject, in small letters.
func wordsOfSubject(subject string) (words []string) {
	for _, w := range letters.FindAllString(subject, -1) {
		if w = strings.ToLower(w); len(w) > 2 && !stopWords[w] && !dullWords[w] && !slices.Contains(words, w) {
			words = append(words, w)
		}
	}
	return words
}

// holding are the words that a text in small letters has.
func holding(words []string, lower string) []string {
	return slices.DeleteFunc(slices.Clone(words), func(w string) bool { return !strings.Contains(lower, w) })
}

// linesWith counts the lines of a file that have one of the words.
func linesWith(f *file, words []string) (n int) {
	for line := range strings.Lines(strings.ToLower(f.text)) {
		if len(holding(words, line)) > 0 {
			n++
		}
	}
	return n
}

// addedLine returns the line of a file, from 1, that a change added and that has more of the words than any other line added, and
// leastWords at least. It is 0 if there is none, if the change adds more than mostAdded lines, or if the line is in the file more than once.
func addedLine(f *file, diff string, words []string) (line int) {
	var added []string
	for l := range strings.SplitSeq(diff, "\n") {
		if strings.HasPrefix(l, "+") && !strings.HasPrefix(l, "+++ ") {
			added = append(added, strings.TrimSpace(l[1:]))
		}
	}
	best, most, tie := "", 0, false
	for _, l := range added {
		if n := len(holding(words, strings.ToLower(l))); n >= most {
			best, most, tie = l, n, n == most
		}
	}
	if len(added) > mostAdded || most < leastWords || tie {
		return 0
	}
	for i, l := range strings.Split(f.text, "\n") {
		if strings.TrimSpace(l) == best {
			if line > 0 {
				return 0
			}
			line = i + 1
		}
	}
	return line
}

// definedLines are those that define a name of several words, once in its file. The query are these words.
func definedLines(tags []tag) (known []knownLine) {
	type place struct {
		file *file
		name string
	}
	defined := map[place]int{}
	for _, t := range tags {
		defined[place{t.file, strings.ToLower(t.name)}]++
	}
	for _, t := range tags {
		words := subwords(t.name)
		if len(words) < leastWords || len(words) > mostWords || slices.Contains(words, "or") || slices.ContainsFunc(words, func(w string) bool { return !plainWord.MatchString(w) }) ||
			defined[place{t.file, strings.ToLower(t.name)}] > 1 {
			continue
		}
		known = append(known, knownLine{definedKind, t.file.repo, t.file.path, t.line, strings.Join(words, " ")})
	}
	return known
}
