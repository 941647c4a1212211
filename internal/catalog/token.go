package catalog

import (
	"encoding/binary"
	"fmt"
)

// tokenVersion is the first byte of a revision token. Any other byte means an
// encoding that this version of Trawl does not know.
const tokenVersion = 1

// EncodeToken makes the revision token that callers carry from one answer to the
// next request. They must not look inside.
func EncodeToken(revision int64) []byte {
	return binary.AppendUvarint([]byte{tokenVersion}, uint64(max(revision, 0)))
}

// DecodeToken returns the revision of a token made by EncodeToken; ErrToken for
// anything else.
func DecodeToken(token []byte) (int64, error) {
	if len(token) < 2 || token[0] != tokenVersion {
		return 0, fmt.Errorf("%w: %d bytes", ErrToken, len(token))
	}
	revision, n := binary.Uvarint(token[1:])
	if n != len(token)-1 || int64(revision) < 0 {
		return 0, fmt.Errorf("%w: %d bytes", ErrToken, len(token))
	}
	return int64(revision), nil
}
