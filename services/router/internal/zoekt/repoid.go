package zoekt

import (
	"crypto/sha256"
	"encoding/binary"
)

// RepoID is the ID of a repo in zoekt's interface: the first four bytes of the SHA-256 of
// its name, big endian, or 1 if they are zero, which means no ID to zoekt. It depends on
// the name alone, so every router returns the same ID. Two repos can share an ID.
func RepoID(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return max(binary.BigEndian.Uint32(sum[:]), 1)
}
