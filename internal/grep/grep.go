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

// Search is one search of a folder.
type Search struct {
	// Folder is the folder as the caller named it; shown paths begin with it. "" is the working directory. Without an index
	// it is a file.
	Folder  string
	Pattern *Pattern
	Show    Show
	// Input is searched in place of Folder if it is not nil. It has no path in what is printed.
	Input io.Reader
	// Keep decides by path and content which files are searched; nil keeps all. It is called by several goroutines.
	Keep func(path string, content []byte) bool
	// First ends the search at the first line that is selected.
	First bool
	// Link returns the printed form of a path; nil prints the path itself.
	Link func(path string) string
	// Out receives the lines in the order of paths. Warn receives files that could not be
	// read.
	Out  io.Writer
	Warn func(error)

	found bool
}

// standardInput stands for the standard input where a path is needed.
const standardInput = "<stdin>"

// batch is how many files one goroutine searches at a time.
const batch = 32

// Run searches the files of index, which it does not change, or with nil the file Folder, and reports whether a line is selected, here
// or in an earlier Run with another Folder.
func (s *Search) Run(ctx context.Context, index *localindex.Index) (found bool, err error) {
	candidates := []localindex.Candidate{{}}
	if index != nil {
		if candidates, err = s.candidates(ctx, index); err != nil {
			return s.found, err
		}
	}
	queue := inorder.New[result](runtime.GOMAXPROCS(0))
	take := func() error {
		r, _ := queue.Next()
		for _, w := range r.warnings {
			s.Warn(w)
		}
		if len(r.out) == 0 {
			return nil
		}
		if s.found {
			r.out = append([]byte(s.Show.separator()), r.out...)
		}
		s.found = true
		_, err := s.Out.Write(r.out)
		return err
	}
	for len(candidates) > 0 && err == nil && ctx.Err() == nil && !(s.First && s.found) {
		files := candidates[:min(batch, len(candidates))]
		candidates = candidates[len(files):]
		queue.Start(func() result { return s.files(ctx, files) })
		if queue.Full() {
			err = take()
		}
	}
	for !queue.Empty() {
		err = errors.Join(err, take())
	}
	return s.found, errors.Join(err, ctx.Err())
}

// candidates are the files that may have a line to select.
func (s *Search) candidates(ctx context.Context, index *localindex.Index) ([]localindex.Candidate, error) {
	needs := s.Pattern.Needs()
	if s.Show.Invert {
		needs = nil // any file may have lines that do not match
	}
	candidates, warnings, err := index.Candidates(ctx, needs)
	for _, w := range warnings {
		s.Warn(w)
	}
	return candidates, err
}

// shown is the path of a file as it is printed: below the folder as the caller named it.
func (s *Search) shown(path string) string {
	if s.Folder == "" || path == "" || s.Folder[len(s.Folder)-1] == '/' {
		return s.Folder + path
	}
	return s.Folder + "/" + path
}

// result is the output for some files.
type result struct {
	out      []byte
	warnings []error
}

func (s *Search) printed(path string) string {
	if s.Input != nil {
		return ""
	}
	if s.Link != nil {
		path = s.Link(path)
	}
	return s.Show.path(path)
}

// read reads a file, or the input.
func (s *Search) read(path string, buf []byte) ([]byte, error) {
	if s.Input == nil {
		content, _, err := localindex.ReadFile(path, buf)
		return content, err
	}
	content, err := io.ReadAll(io.LimitReader(s.Input, localindex.MaxSize+1))
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

// files searches files. It need not read them if only paths are shown and the index answers exactly.
func (s *Search) files(ctx context.Context, files []localindex.Candidate) (r result) {
	known := s.Show.Files && s.Pattern.IsExact() && s.Keep == nil
	buf, _ := contents.Get().(*[]byte)
	for _, file := range files {
		if ctx.Err() != nil {
			break
		}
		shown := s.shown(file.Path)
		if known && file.Found {
			r.out = append(append(r.out, s.printed(shown)...), '\n')
			continue
		}
		content, err := s.read(shown, *buf)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // it was deleted just now
				r.warnings = append(r.warnings, err)
			}
			continue
		}
		if s.Keep != nil && !s.Keep(shown, content) {
			continue
		}
		before := len(r.out)
		if before > 0 {
			r.out = append(r.out, s.Show.separator()...)
		}
		var found bool
		text := localindex.TextOf(content)
		nul, named := text.NUL, file.Path == ""
		if named && nul >= 0 {
			text.Bytes = text.Bytes[:nul] // more than ripgrep reads of a binary file that it meets in a folder
			if s.Show.Count {
				text.NUL = -1 // it counts the lines of one that is named
			}
		}
		if r.out, found = s.Show.show(r.out, s.printed(shown), text, s.Pattern); !found {
			r.out = r.out[:before]
			if named && nul >= 0 {
				r.warnings = append(r.warnings, fmt.Errorf("%s is binary: what comes after its NUL byte at offset %d was not searched", shown, nul))
			}
		}
		if *buf = content; cap(content) > keptContent {
			*buf = nil
		}
	}
	contents.Put(buf)
	return r
}
