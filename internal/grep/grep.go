// Package grep searches the files of a folder for lines, as ripgrep does, through an index of the folder.
//
//	pattern     what lines are searched for
//	ignore      which files ripgrep passes over
//	localindex  which files may have a line that matches, and which changed since they were indexed
//	filetext    what of a file is searched
//
// The index only says where to look: what is shown is read from the files as they are.
package grep

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"sync"

	"github.com/trawl-search/trawl/index/inorder"
	"github.com/trawl-search/trawl/internal/grep/localindex"
	"github.com/trawl-search/trawl/internal/grep/pattern"
)

// Search is one search of a folder.
type Search struct {
	// Folder as it was given; paths are shown as below it. "" is the working directory.
	Folder  string
	Pattern *pattern.Pattern
	Show    Show
	// Link is how a path is printed, nil for as it is.
	Link func(path string) string
	// Out receives the lines in the order of paths. Warn receives what could not be read.
	Out  io.Writer
	Warn func(error)
}

// batch is how many files one goroutine searches at a time.
const batch = 32

// Run searches, and reports whether a line is selected. The files are those of index, which stays as it is.
func (s *Search) Run(ctx context.Context, index *localindex.Index) (found bool, err error) {
	needs := s.Pattern.Needs()
	if s.Show.Invert {
		needs = nil // lines that do not match are everywhere
	}
	candidates, warnings, err := index.Candidates(ctx, needs)
	if err != nil {
		return false, err
	}
	for _, w := range warnings {
		s.Warn(w)
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
		if found {
			r.out = append([]byte(s.Show.separator()), r.out...)
		}
		found = true
		_, err := s.Out.Write(r.out)
		return err
	}
	for len(candidates) > 0 && err == nil && ctx.Err() == nil {
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
	return found, errors.Join(err, ctx.Err())
}

// result is what was found in some files.
type result struct {
	out      []byte
	warnings []error
}

func (s *Search) printed(path string) string {
	if s.Link == nil {
		return path
	}
	return s.Link(path)
}

// contents are buffers that files are read into.
var contents = sync.Pool{New: func() any { return new([]byte) }}

// keptContent is the largest buffer that is kept.
const keptContent = 4 << 20

// files searches files. Where paths are shown, and what the index found is what is searched for, it need not read them.
func (s *Search) files(ctx context.Context, files []localindex.Candidate) (r result) {
	known := s.Show.Files && s.Pattern.IsExact()
	buf, _ := contents.Get().(*[]byte)
	for _, file := range files {
		if ctx.Err() != nil {
			break
		}
		shown := localindex.JoinShown(s.Folder, file.Path)
		if known && file.Found {
			r.out = append(append(r.out, s.printed(shown)...), '\n')
			continue
		}
		content, _, err := localindex.ReadFile(shown, *buf)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) { // it was deleted just now
				r.warnings = append(r.warnings, err)
			}
			continue
		}
		before := len(r.out)
		if before > 0 {
			r.out = append(r.out, s.Show.separator()...)
		}
		var found bool
		if r.out, found = s.Show.show(r.out, s.printed(shown), localindex.TextOf(content), s.Pattern); !found {
			r.out = r.out[:before]
		}
		if *buf = content; cap(content) > keptContent {
			*buf = nil
		}
	}
	contents.Put(buf)
	return r
}
