package shard

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
)

// File is a document as indexed.
type File struct {
	// Content is the requested part, empty if Skip says that the content was not indexed. Size is
	// the size of the whole content.
	Content          []byte
	Size             uint32
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

// File returns the document of a repo at a path on a branch. An empty branch is the repo's first.
// The error is ErrNoFile if there is no such document now. It decodes no more of the content than
// the part needs.
func (s *Shard) File(ctx context.Context, repo string, path []byte, branch string, overlay Overlay, part Part) (f *File, err error) {
	opts := Options{Overlays: map[string]Overlay{repo: overlay}}
	err = s.with(ctx, opts, func(run *search) error {
		f, err = run.getFile(repo, path, branch, part)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("get %s of %s from shard %s: %w", path, repo, s.Name(), err)
	}
	return f, nil
}

func (s *search) getFile(repo string, path []byte, branch string, part Part) (*File, error) {
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
	if branch == "" {
		branch = view.now[0].Name
	}
	doc, ok, err := s.docs.FindPath(i, path)
	if err != nil || !ok {
		return nil, cmp.Or(err, ErrNoFile)
	}
	for end := record.FirstDoc + record.Docs; doc < end; doc++ {
		s.doc.reset(doc, 0, i)
		got, err := s.doc.loadPath()
		if err != nil {
			return nil, err
		}
		if !bytes.Equal(got, path) {
			break
		}
		if shown, err := s.repos.shows(doc, i); err != nil || !shown {
			if err != nil {
				return nil, err
			}
			continue
		}
		names, commit, err := s.branches()
		if err != nil {
			return nil, err
		}
		if slices.Contains(names, branch) {
			return s.readFile(doc, names, commit, part)
		}
	}
	return nil, ErrNoFile
}

func (s *search) readFile(doc uint32, branches []string, commit string, part Part) (f *File, err error) {
	f = &File{Branches: branches, Commit: commit}
	blob, blobErr := s.docs.Blob(doc)
	size, sizeErr := s.content.Len(blob)
	oid, oidErr := s.docs.OID(doc)
	skip, skipErr := s.docs.Skip(doc)
	language, langErr := s.docs.Language(doc)
	if err := errors.Join(blobErr, sizeErr, oidErr, skipErr, langErr); err != nil {
		return nil, err
	}
	f.Blob, f.Skip, f.Language, f.Size = bytes.Clone(oid), skip, language, size
	from, n := part.of(size)
	f.Content, err = s.read(nil, blob, from, n)
	return f, err
}
