// Package page makes and reads the tokens by which a caller gets the next page
// of an answer.
//
// A token holds the place in the total order where the page before ended, the
// revision of the roots it was made from, and a mark of the question, so that
// a token cannot be used for another. It is no secret and no proof: whoever
// forges one only chooses where to begin in an answer that is theirs to read.
//
//	version  1 byte
//	mark     16 bytes, the first of SHA-256 over mode, syntax version and query
//	the rest a Cursor: score (8 bytes, big endian IEEE 754), revision (uvarint),
//	         repo, path and blob (each a uvarint length and bytes)
package page

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/trawl-search/trawl/index/shard"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// version is the first byte of tokens as made here.
const version = 1

const markSize = 16

// MaxBytes is the most bytes of a token that a request may carry; its
// validation holds it.
const MaxBytes = 4096

// Errors of Decode.
var (
	// ErrToken means that the token was not made by Encode.
	ErrToken = errors.New("the page token is not one that this service made")
	// ErrOther means that it was made for another query or other options.
	ErrOther = errors.New("the page token belongs to another query, mode or syntax version")
)

// Cursor is where a page ended.
type Cursor struct {
	After shard.Key
	// Revision of the roots of the page before; the next page reads these or newer ones.
	Revision int64
}

// Question is what a token is bound to. What only shapes a page, such as its
// size, may change from page to page.
type Question struct {
	Query         string
	Mode          searchv1.Mode
	SyntaxVersion uint32
}

func (q Question) mark() []byte {
	h := sha256.New()
	var head [8]byte
	binary.BigEndian.PutUint32(head[:], uint32(q.Mode))
	binary.BigEndian.PutUint32(head[4:], q.SyntaxVersion)
	h.Write(head[:])
	h.Write([]byte(q.Query))
	return h.Sum(nil)[:markSize]
}

// Encode makes the token of the page that follows c. It is nil for a place
// whose names are longer than a token may be: no page can end there.
func Encode(q Question, c Cursor) []byte {
	t := append([]byte{version}, q.mark()...)
	t = binary.BigEndian.AppendUint64(t, math.Float64bits(c.After.Score))
	t = binary.AppendUvarint(t, uint64(c.Revision))
	for _, part := range [][]byte{[]byte(c.After.Repo), c.After.Path, c.After.Blob} {
		t = binary.AppendUvarint(t, uint64(len(part)))
		t = append(t, part...)
	}
	if len(t) > MaxBytes {
		return nil
	}
	return t
}

// Decode reads a token for the question asked now. Its error is ErrToken or ErrOther.
func Decode(q Question, token []byte) (Cursor, error) {
	if len(token) < 1+markSize+8 || len(token) > MaxBytes || token[0] != version {
		return Cursor{}, fmt.Errorf("%w: %d bytes", ErrToken, len(token))
	}
	if !bytes.Equal(token[1:1+markSize], q.mark()) {
		return Cursor{}, ErrOther
	}
	rest := token[1+markSize:]
	c := Cursor{After: shard.Key{Score: math.Float64frombits(binary.BigEndian.Uint64(rest))}}
	revision, n := binary.Uvarint(rest[8:])
	if n <= 0 || revision > math.MaxInt64 || math.IsNaN(c.After.Score) {
		return Cursor{}, fmt.Errorf("%w: its place is damaged", ErrToken)
	}
	c.Revision = int64(revision)
	var parts [3][]byte
	if !cut(rest[8+n:], &parts) {
		return Cursor{}, fmt.Errorf("%w: its names are damaged", ErrToken)
	}
	c.After.Repo, c.After.Path, c.After.Blob = string(parts[0]), parts[1], parts[2]
	return c, nil
}

// cut takes b apart into parts that fill it exactly.
func cut(b []byte, parts *[3][]byte) bool {
	for i := range parts {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return false
		}
		parts[i], b = b[n:n+int(size)], b[n+int(size):]
	}
	return len(b) == 0
}
