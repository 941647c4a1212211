package search

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/search"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// A page token asks for the next page of an answer. It holds the place in the
// total order where the previous page ended, the revision of its roots, and a
// mark that binds it to one question. It is neither a secret nor a proof: a
// forged token only chooses where a caller starts to read its own answer.
//
//	version  1 byte
//	mark     16 bytes, the first of SHA-256 over mode, syntax version and query
//	the rest a pageCursor: score (8 bytes, big endian IEEE 754), revision and left (uvarints),
//	         repo, path and blob (each a uvarint length and bytes)

// pageTokenVersion is the first byte of a token.
const pageTokenVersion = 2

const pageMarkSize = 16

// maxPageToken bounds a token in bytes. The validation of requests enforces the same
// bound.
const maxPageToken = 4096

// Errors of decodePageToken.
var (
	// errPageToken means that encodePageToken did not make the token.
	errPageToken = errors.New("this service did not make the page token")
	// errOtherPage means that it was made for another query or other options.
	errOtherPage = errors.New("the page token belongs to another query, mode or syntax version")
)

// pageCursor is where a page ended.
type pageCursor struct {
	After search.Key
	// Revision of the roots of the previous page. The next page reads these or newer ones.
	Revision int64
	// Left is how many files the pages that follow may have together; 0 is no bound.
	Left int
}

// pageQuestion is what a token is bound to. Options that only shape a page, such as its
// size, may change from page to page.
type pageQuestion struct {
	Query         string
	Mode          searchv1.Mode
	SyntaxVersion uint32
}

func (q pageQuestion) mark() []byte {
	h := sha256.New()
	var head [8]byte
	binary.BigEndian.PutUint32(head[:], uint32(q.Mode))
	binary.BigEndian.PutUint32(head[4:], q.SyntaxVersion)
	h.Write(head[:])
	h.Write([]byte(q.Query))
	return h.Sum(nil)[:pageMarkSize]
}

// encodePageToken makes the token of the page that follows c. It is nil if the names at
// that place exceed the size of a token: no page can end there.
func encodePageToken(q pageQuestion, c pageCursor) []byte {
	t := append([]byte{pageTokenVersion}, q.mark()...)
	t = binary.BigEndian.AppendUint64(t, math.Float64bits(c.After.Score))
	t = binary.AppendUvarint(t, uint64(c.Revision))
	t = binary.AppendUvarint(t, uint64(c.Left))
	for _, part := range [][]byte{[]byte(c.After.Repo), c.After.Path, c.After.Blob} {
		t = binary.AppendUvarint(t, uint64(len(part)))
		t = append(t, part...)
	}
	if len(t) > maxPageToken {
		return nil
	}
	return t
}

// decodePageToken reads a token for the question. Its error wraps errPageToken or
// errOtherPage.
func decodePageToken(q pageQuestion, token []byte) (pageCursor, error) {
	if len(token) < 1+pageMarkSize+8 || len(token) > maxPageToken || token[0] != pageTokenVersion {
		return pageCursor{}, fmt.Errorf("%w: %d bytes", errPageToken, len(token))
	}
	if !bytes.Equal(token[1:1+pageMarkSize], q.mark()) {
		return pageCursor{}, errOtherPage
	}
	rest := token[1+pageMarkSize:]
	c := pageCursor{After: search.Key{Score: math.Float64frombits(binary.BigEndian.Uint64(rest))}}
	revision, n := binary.Uvarint(rest[8:])
	left, m := binary.Uvarint(rest[8+max(n, 0):])
	if n <= 0 || m <= 0 || revision > math.MaxInt64 || left > query.MaxCount || math.IsNaN(c.After.Score) {
		return pageCursor{}, fmt.Errorf("%w: its place is damaged", errPageToken)
	}
	c.Revision, c.Left = int64(revision), int(left)
	var parts [3][]byte
	if !splitParts(rest[8+n+m:], &parts) {
		return pageCursor{}, fmt.Errorf("%w: its names are damaged", errPageToken)
	}
	c.After.Repo, c.After.Path, c.After.Blob = string(parts[0]), parts[1], parts[2]
	return c, nil
}

// splitParts splits b into parts that fill it exactly.
func splitParts(b []byte, parts *[3][]byte) bool {
	for i := range parts {
		size, n := binary.Uvarint(b)
		if n <= 0 || size > uint64(len(b)-n) {
			return false
		}
		parts[i], b = b[n:n+int(size)], b[n+int(size):]
	}
	return len(b) == 0
}
