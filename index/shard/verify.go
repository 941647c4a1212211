package shard

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/trawl-search/trawl/index/docstore"
)

// Verify reads the whole shard: every checksum, every posting list, every
// document in order and by its content, and every content against its Git
// object id and the counts of its lines. It returns
// the first fault, which is format.ErrCorrupt, or the context's error.
func (s *Shard) Verify(ctx context.Context) error {
	if err := s.file.Verify(ctx); err != nil {
		return fmt.Errorf("verify shard: %w", err)
	}
	v := &verifier{Shard: s, tick: ctx.Err, reader: new(docstore.Reader)}
	v.reader.ResetOnce(s.Content)
	err := s.Guard(func() error {
		if err := v.documents(); err != nil {
			return err
		}
		if err := v.documentsOfBlobs(); err != nil {
			return err
		}
		return v.postings()
	})
	if err != nil {
		return fmt.Errorf("verify shard %s: %w", s.Name(), err)
	}
	return nil
}

// verifier reads a whole shard.
type verifier struct {
	*Shard

	// tick returns the context's error once it has ended.
	tick     func() error
	reader   *docstore.Reader
	branches []uint32 // of a document
	text     []byte   // of a blob
}

// Recheck checks bytes again that were found to be sound when they were first read; see
// format.File.Recheck.
func (s *Shard) Recheck(from int64) (next, read int64, err error) { return s.file.Recheck(from) }

// documents checks that repos and documents are in order and complete.
func (v *verifier) documents() error {
	next := uint32(0)
	lastName := ""
	for i := range v.Docs.Repos() {
		repo, err := v.Docs.Repo(i)
		if err != nil {
			return err
		}
		if repo.FirstDoc != next || i > 0 && repo.Name <= lastName {
			return v.Corruptf("repo %s is out of order", repo.Name)
		}
		lastName = repo.Name
		var last []byte
		for doc := repo.FirstDoc; doc < repo.FirstDoc+repo.Docs; doc++ {
			if err := v.tick(); err != nil {
				return err
			}
			path, err := v.Docs.AppendPath(nil, doc)
			if err != nil {
				return err
			}
			if bytes.Compare(path, last) < 0 {
				return v.Corruptf("document %d of repo %s is out of order", doc, repo.Name)
			}
			last = path
			if err := v.document(doc, &repo, i); err != nil {
				return err
			}
		}
		next = repo.FirstDoc + repo.Docs
	}
	if next != v.Docs.Len() {
		return v.Corruptf("repos hold %d of %d documents", next, v.Docs.Len())
	}
	return nil
}

// document reads all columns of a document, and holds its content against its object id.
func (v *verifier) document(doc uint32, repo *docstore.Repo, i int) (err error) {
	if got, err := v.Docs.RepoOf(doc); err != nil || got != i {
		return cmp.Or(err, v.Corruptf("document %d has repo %d, not %d", doc, got, i))
	}
	if v.branches, err = v.Docs.AppendBranches(v.branches[:0], doc); err != nil {
		return err
	}
	for _, o := range v.branches {
		if int(o) >= len(repo.Branches) {
			return v.Corruptf("document %d is on branch %d of %d", doc, o, len(repo.Branches))
		}
	}
	blob, blobErr := v.Docs.Blob(doc)
	_, sizeErr := v.Docs.Size(doc)
	oid, oidErr := v.Docs.OID(doc)
	skip, skipErr := v.Docs.Skip(doc)
	_, langErr := v.Docs.Language(doc)
	if err := errors.Join(blobErr, sizeErr, oidErr, skipErr, langErr, v.read(blob)); err != nil || skip != docstore.NotSkipped {
		return err
	}
	if err := v.newlines(blob); err != nil {
		return err
	}
	if sum := objectID(v.text, len(oid)); sum != nil && !bytes.Equal(sum, oid) && !isTextOf(v.text, oid) {
		return v.Corruptf("content of document %d has object id %x, not %x", doc, sum, oid)
	}
	return nil
}

// read reads the text of a blob.
func (v *verifier) read(blob uint32) (err error) {
	v.text, err = v.reader.Append(v.text[:0], blob, 0, math.MaxUint32)
	return err
}

// newlines compares the counts of newlines with the text of a blob.
func (v *verifier) newlines(blob uint32) error {
	counted := uint32(0)
	for at := 0; at <= len(v.text); at += docstore.SuperblockSize {
		lines, err := v.reader.LinesBefore(blob, uint32(at))
		if err != nil {
			return err
		}
		if lines != counted {
			return v.Corruptf("blob %d has %d newlines before byte %d, not %d", blob, counted, at, lines)
		}
		counted += uint32(bytes.Count(v.text[at:min(at+docstore.SuperblockSize, len(v.text))], []byte{'\n'}))
	}
	return nil
}

// documentsOfBlobs checks that each document is once among those of its blob.
func (v *verifier) documentsOfBlobs() error {
	found := uint32(0)
	for blob := range v.Content.Blobs() {
		if err := v.tick(); err != nil {
			return err
		}
		last := int64(-1)
		for doc, err := range v.Docs.DocsOf(blob) {
			if err != nil {
				return err
			}
			of, err := v.Docs.Blob(doc)
			if err != nil {
				return err
			}
			if of != blob || int64(doc) <= last {
				return v.Corruptf("document %d has blob %d, and is listed for blob %d after document %d", doc, of, blob, last)
			}
			last = int64(doc)
			found++
		}
	}
	if found != v.Docs.Len() {
		return v.Corruptf("blobs have %d of %d documents", found, v.Docs.Len())
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

// objectID returns Git's id for a content, in an id space of size bytes; nil if
// there is no such space.
func objectID(content []byte, size int) []byte {
	var h hash.Hash
	switch size {
	case sha1.Size:
		h = sha1.New()
	case sha256.Size:
		h = sha256.New()
	default:
		return nil
	}
	h.Write([]byte("blob " + strconv.Itoa(len(content)) + "\x00"))
	h.Write(content)
	return h.Sum(nil)
}
