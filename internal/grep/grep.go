// Package grep searches the files of a folder for lines, as ripgrep does, through an index of the folder.
//
//	ignore      which files ripgrep passes over
//	localindex  which files may have a line that matches, and which changed since they were indexed
//
// The index only says where to look: Search reads what it shows from the present
// files.
package grep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"runtime"
	"sync"

	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/internal/grep/localindex"
)

// Search is one search of folders and files.
type Search struct {
	Roots   []Root
	Pattern *Pattern
	Show    Show
	// Order is the order of files. Without one, they are searched root by root, each in the order of its paths.
	Order Order
	// Keep decides by path and content which files are searched; nil keeps all. It is called by several goroutines.
	Keep func(path string, content []byte) bool
	// First ends the search at the first line that is selected.
	First bool
	// Link returns the printed form of a path; nil prints the path itself.
	Link func(path string) string
	// Out receives what is shown, in the order of files. Warn receives files that could not be
	// read.
	Out  io.Writer
	Warn func(error)
	// Stats receives what was searched, unless it is nil.
	Stats *Stats
}

// Root is a folder or a file that is searched, or an input.
type Root struct {
	// Path is as the caller named it; shown paths begin with it. "" is the working directory.
	Path string
	// Index of the folder, which Run does not change; nil if Path is a file.
	Index *localindex.Index
	// Input is searched in place of Path if it is not nil. It has no path in what is printed.
	Input io.Reader
}

// Stats counts what was searched and found.
type Stats struct {
	Matches, MatchedLines       uint64
	FilesWithMatch, Files       uint64 // that were read
	BytesPrinted, BytesSearched uint64
}

func (s *Stats) add(o Stats) {
	s.Matches += o.Matches
	s.MatchedLines += o.MatchedLines
	s.FilesWithMatch += o.FilesWithMatch
	s.Files += o.Files
	s.BytesPrinted += o.BytesPrinted
	s.BytesSearched += o.BytesSearched
}

// standardInput stands for the standard input where a path is needed.
const standardInput = "<stdin>"

// batch is how many files one goroutine searches at a time.
const batch = 32

// Run searches, and reports whether a line is selected.
func (s *Search) Run(ctx context.Context) (found bool, err error) {
	files, err := s.files(ctx)
	if err != nil {
		return false, err
	}
	queue, shown := inorder.New[result](runtime.GOMAXPROCS(0)), false
	take := func() error {
		r, _ := queue.Next()
		for _, w := range r.warnings {
			s.Warn(w)
		}
		if s.Stats != nil {
			s.Stats.add(r.stats)
		}
		if found = found || r.found; len(r.out) == 0 {
			return nil
		}
		if shown {
			r.out = append([]byte(s.Show.separator()), r.out...)
		}
		shown = true
		_, err := s.Out.Write(r.out)
		return err
	}
	for len(files) > 0 && err == nil && ctx.Err() == nil && !(s.First && found) {
		some := files[:min(batch, len(files))]
		files = files[len(some):]
		queue.Start(func() result { return s.search(ctx, some) })
		if queue.Full() {
			err = take()
		}
	}
	for !queue.Empty() {
		if failed := take(); err == nil {
			err = failed
		}
	}
	if err == nil {
		err = ctx.Err() //nolint:wrapcheck // it is the caller's own
	}
	return found, err
}

// file is one that may have a line to select.
type file struct {
	// path is as it is shown: below the root as the caller named it.
	path string
	// named is set if it is a root itself, and input then too if it is one.
	named bool
	input io.Reader
	// found means that the index has a match in it.
	found bool
}

// files are those that may have a line to select, in the order in which they are shown.
func (s *Search) files(ctx context.Context) (files []file, err error) {
	needs := s.Pattern.Needs()
	if s.Show.Invert {
		needs = nil // any file may have lines that do not match
	}
	for _, root := range s.Roots {
		if root.Index == nil {
			files = append(files, file{path: root.Path, named: true, input: root.Input})
			continue
		}
		candidates, warnings, err := root.Index.Candidates(ctx, needs)
		for _, w := range warnings {
			s.Warn(w)
		}
		if err != nil {
			return nil, err
		}
		below := root.Path
		if below != "" && below[len(below)-1] != '/' {
			below += "/"
		}
		for _, c := range candidates {
			files = append(files, file{path: below + c.Path, found: c.Found})
		}
	}
	s.Order.sort(files)
	return files, nil
}

// result is the output for some files.
type result struct {
	out      []byte
	found    bool // a line is selected, though nothing may be shown of it
	warnings []error
	stats    Stats
}

// printed is the path of a file in the form in which it is printed.
func (s *Search) printed(f file) string {
	if f.input != nil {
		return ""
	}
	path := f.path
	if s.Link != nil {
		path = s.Link(path)
	}
	return s.Show.path(path)
}

// read reads a file, or an input.
func read(f file, buf []byte) ([]byte, error) {
	if f.input == nil {
		content, _, err := localindex.ReadFile(f.path, buf)
		return content, err
	}
	content, err := io.ReadAll(io.LimitReader(f.input, localindex.MaxSize+1))
	switch {
	case err != nil:
		return buf, fmt.Errorf("read %s: %w", standardInput, err)
	case len(content) > localindex.MaxSize:
		return buf, fmt.Errorf("%s has more than %d bytes, the most that is searched", standardInput, localindex.MaxSize)
	}
	return content, nil
}

// contents are buffers that files are read into.
var contents = sync.Pool{New: func() any { return new([]byte) }}

// keptContent is the largest buffer that is kept.
const keptContent = 4 << 20

// search searches files. It need not read them if only paths are shown and the index answers exactly.
func (s *Search) search(ctx context.Context, files []file) (r result) {
	known := s.Show.Files && s.Pattern.IsExact() && s.Keep == nil && s.Stats == nil
	buf, _ := contents.Get().(*[]byte)
	for _, file := range files {
		if ctx.Err() != nil || s.First && r.found {
			break
		}
		if known && file.found {
			r.out, r.found = append(append(r.out, s.printed(file)...), '\n'), true
			continue
		}
		content, err := read(file, *buf)
		if err != nil {
			if file.named || !errors.Is(err, fs.ErrNotExist) { // another was deleted just now
				r.warnings = append(r.warnings, err)
			}
			continue
		}
		if s.Keep == nil || s.Keep(file.path, content) {
			s.show(&r, file, content)
		}
		if *buf = content; cap(content) > keptContent {
			*buf = nil
		}
	}
	contents.Put(buf)
	return r
}

// show adds what is shown of a file to the result.
func (s *Search) show(r *result, file file, content []byte) {
	text := localindex.TextOf(content)
	nul := text.NUL
	if file.named && nul >= 0 {
		text.Bytes = text.Bytes[:nul] // more than ripgrep reads of a binary file that it meets in a folder
		if s.Show.Count {
			text.NUL = -1 // it counts the lines of one that is named
		}
	}
	before := len(r.out)
	if before > 0 {
		r.out = append(r.out, s.Show.separator()...)
	}
	start := len(r.out)
	w := printer{Show: &s.Show, matcher: s.Pattern.in(text.Bytes), name: s.printed(file), nul: text.NUL, out: r.out, line: 1, countMatches: s.Stats != nil}
	found := w.show()
	r.found = r.found || found
	if r.out = w.out; !found {
		r.out = r.out[:before]
		if file.named && nul >= 0 {
			r.warnings = append(r.warnings, fmt.Errorf("%s is binary: what comes after its NUL byte at offset %d was not searched", file.path, nul))
		}
	}
	if s.Stats == nil {
		return
	}
	stats := Stats{Matches: uint64(w.counted), MatchedLines: uint64(w.lines), Files: 1, BytesSearched: uint64(len(content))}
	if found {
		stats.FilesWithMatch = 1
		stats.BytesPrinted = uint64(len(r.out) - start)
	}
	r.stats.add(stats)
}
