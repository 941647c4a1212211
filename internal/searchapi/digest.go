package searchapi

import (
	"encoding/hex"
	"fmt"
)

// Digest is the SHA-256 of a shard object, which names it everywhere.
type Digest [32]byte

// ParseDigest converts the bytes of a message's digest field.
func ParseDigest(b []byte) (Digest, error) {
	if len(b) != len(Digest{}) {
		return Digest{}, fmt.Errorf("a shard digest has %d bytes, not %d", len(Digest{}), len(b))
	}
	return Digest(b), nil
}

// String is the digest in hexadecimal.
func (d Digest) String() string { return hex.EncodeToString(d[:]) }
