package shard

import (
	"bytes"
	"context"
	"crypto/sha1" //nolint:gosec // Git names blobs by SHA-1; it protects nothing here
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
)

// Verify reads the whole shard: every checksum, every posting list, every
// document in order, and every content against its Git object id. It returns
// the first fault, which is format.ErrCorrupt, or the context's error.
func (s *Shard) Verify(ctx context.Context) error {
	if err := s.file.Verify(ctx); err != nil {
		return fmt.Errorf("verify shard: %w", err)
	}
	err := s.with(ctx, Options{}, func(run *search) error {
		if err := run.verifyDocuments(); err != nil {
			return err
		}
		return run.verifyPostings()
	})
	if err != nil {
		return fmt.Errorf("verify shard %s: %w", s.Name(), err)
	}
	return nil
}

// Recheck checks bytes again that were found to be sound when they were first read; see
// format.File.Recheck.
func (s *Shard) Recheck(from int64) (next, read int64, err error) { return s.file.Recheck(from) }

// verifyDocuments checks that repos and documents are in order and complete.
func (s *search) verifyDocuments() error {
	next := uint32(0)
	lastName := ""
	for i := range s.docs.Repos() {
		repo, err := s.docs.Repo(i)
		if err != nil {
			return err
		}
		if repo.FirstDoc != next || i > 0 && repo.Name <= lastName {
			return s.corrupt("repo %s is out of order", repo.Name)
		}
		lastName = repo.Name
		var last []byte
		for doc := repo.FirstDoc; doc < repo.FirstDoc+repo.Docs; doc++ {
			if err := s.tick(); err != nil {
				return err
			}
			path, err := s.docs.AppendPath(nil, doc)
			if err != nil {
				return err
			}
			if bytes.Compare(path, last) < 0 {
				return s.corrupt("document %d of repo %s is out of order", doc, repo.Name)
			}
			last = path
			if err := s.verifyDocument(doc, i); err != nil {
				return err
			}
		}
		next = repo.FirstDoc + repo.Docs
	}
	if next != s.docs.Len() {
		return s.corrupt("repos hold %d of %d documents", next, s.docs.Len())
	}
	return nil
}

func (s *search) verifyDocument(doc uint32, repo int) error {
	f, err := s.verifyColumns(doc, repo)
	if err != nil || f.Skip != docstore.NotSkipped {
		return err
	}
	if sum := objectID(f.Content, len(f.Blob)); sum != nil && !bytes.Equal(sum, f.Blob) && !isTextOf(f.Content, f.Blob) {
		return s.corrupt("content of document %d has object id %x, not %x", doc, sum, f.Blob)
	}
	return nil
}

// isTextOf reports whether a blob may have been decoded into a text: it had a byte order mark, and may
// have been in UTF-16. A text with U+FFFD may have been decoded from bytes that nobody knows.
func isTextOf(text, blob []byte) bool {
	const mark = "\ufeff"
	if bytes.Equal(objectID(append([]byte(mark), text...), len(blob)), blob) || bytes.ContainsRune(text, utf8.RuneError) {
		return true
	}
	var little, big []byte
	var units []uint16
	for _, r := range mark + string(text) {
		units = utf16.AppendRune(units[:0], r)
		for _, unit := range units {
			little, big = binary.LittleEndian.AppendUint16(little, unit), binary.BigEndian.AppendUint16(big, unit)
		}
	}
	return bytes.Equal(objectID(little, len(blob)), blob) || bytes.Equal(objectID(big, len(blob)), blob)
}

// verifyColumns reads all columns of a document.
func (s *search) verifyColumns(doc uint32, repo int) (*File, error) {
	if got, err := s.docs.RepoOf(doc); err != nil || got != repo {
		if err == nil {
			err = s.corrupt("document %d has repo %d, not %d", doc, got, repo)
		}
		return nil, err
	}
	s.doc.reset(doc, 0, repo)
	if _, err := s.doc.loadBranches(); err != nil {
		return nil, err
	}
	record, err := s.repo(repo)
	if err != nil {
		return nil, err
	}
	for _, o := range s.doc.built {
		if int(o) >= len(record.Branches) {
			return nil, s.corrupt("document %d is on branch %d of %d", doc, o, len(record.Branches))
		}
	}
	f := &File{}
	return f, s.readFile(f, doc, Part{})
}

func (s *search) corrupt(reason string, args ...any) error {
	return &format.CorruptError{File: s.fileName, Section: "documents", Reason: fmt.Sprintf(reason, args...)}
}

// objectID returns Git's id for a content, in an id space of size bytes; nil if
// there is no such space.
func objectID(content []byte, size int) []byte {
	var h hash.Hash
	switch size {
	case sha1.Size:
		h = sha1.New() //nolint:gosec // as Git does
	case sha256.Size:
		h = sha256.New()
	default:
		return nil
	}
	h.Write([]byte("blob " + strconv.Itoa(len(content)) + "\x00"))
	h.Write(content)
	return h.Sum(nil)
}
