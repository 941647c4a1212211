package search

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// ErrNoFile is the error of File for a document that the shard does not hold.
var ErrNoFile = errors.New("no such file")

// File is a document as indexed.
type File struct {
	// Content is the requested part, empty if Skip says that the content was not indexed. Size is
	// the size of the whole file in bytes, indexed or not.
	Content          []byte
	Size             uint64
	Language, Commit string
	Branches         []string
	Blob             []byte
	Skip             docstore.SkipReason
}

// Part is the requested part of a content: up to MaxBytes from Offset on. MaxBytes 0 means no
// bound.
type Part struct{ Offset, MaxBytes uint64 }

// of returns the part for a content of size bytes.
func (p Part) of(size uint32) (from, n uint32) {
	from = uint32(min(p.Offset, uint64(size)))
	n = size - from
	if p.MaxBytes > 0 {
		n = uint32(min(p.MaxBytes, uint64(n)))
	}
	return from, n
}

// File returns the document of a repo at a path on a branch. An empty branch is the first of the repo's
// branches on which the shard has the path.
// The error is ErrNoFile if there is no such document now. It decodes no more of the content than
// the part needs. Of the options it uses Repos and Overlays.
func (s *Shard) File(ctx context.Context, repo string, path []byte, branch string, opts Options, part Part) (f *File, err error) {
	err = s.with(ctx, nil, Options{Repos: opts.Repos, Overlays: opts.Overlays}, func(run *search) error {
		f, err = run.getFile(repo, path, branch, part)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %s of %s from shard %s: %w", path, repo, s.Name(), err)
	}
	return f, nil
}

func (s *search) getFile(repo string, path []byte, branch string, part Part) (f *File, err error) {
	i, ok, err := s.docs.FindRepo(repo)
	if err != nil || !ok {
		return nil, cmp.Or(err, ErrNoFile)
	}
	record, err := s.repo(i)
	if err != nil {
		return nil, err
	}
	view, err := s.branchesNow(i)
	if err != nil || len(view.now) == 0 {
		return nil, cmp.Or(err, ErrNoFile)
	}
	doc, ok, err := s.docs.FindPath(i, path)
	if err != nil || !ok {
		return nil, cmp.Or(err, ErrNoFile)
	}
	var found uint32
	for end, first := record.FirstDoc+record.Docs, len(view.now); doc < end; doc++ {
		s.doc.reset(doc, 0, i)
		got, err := s.doc.loadPath()
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(got, path) {
			break
		}
		if !s.repos.shows(doc, i) {
			continue
		}
		names, commit, err := s.branches()
		if err != nil {
			return nil, err
		}
		place := slices.IndexFunc(view.now, func(b docstore.Branch) bool {
			return slices.Contains(names, b.Name) && (branch == "" || b.Name == branch)
		})
		if place >= 0 && place < first {
			first, found, f = place, doc, &File{Branches: names, Commit: commit}
		}
	}
	if f == nil {
		return nil, ErrNoFile
	}
	return f, s.readFile(f, found, part)
}

// readFile reads what a document holds into f.
func (s *search) readFile(f *File, doc uint32, part Part) error {
	blob, blobErr := s.docs.Blob(doc)
	length, lengthErr := s.content.Len(blob)
	size, sizeErr := s.docs.Size(doc)
	oid, oidErr := s.docs.OID(doc)
	skip, skipErr := s.docs.Skip(doc)
	language, langErr := s.docs.Language(doc)
	if err := errors.Join(blobErr, lengthErr, sizeErr, oidErr, skipErr, langErr); err != nil {
		return err
	}
	f.Blob, f.Skip, f.Language, f.Size = bytes.Clone(oid), skip, language, size
	from, n := part.of(length)
	var err error
	f.Content, err = s.read(nil, blob, from, n)
	return err
}
