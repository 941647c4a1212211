package zoektjson

import (
	"crypto/sha256"
	"encoding/binary"
)

// RepoID is the number by which zoekt's interface knows a repo: the first four
// bytes of the SHA-256 of its name, the highest first, or 1 where they are
// zero, which to zoekt means no id. It depends on nothing but the name, so
// every router at any time gives the same one. Two repos can have the same.
func RepoID(name string) uint32 {
	sum := sha256.Sum256([]byte(name))
	return max(binary.BigEndian.Uint32(sum[:]), 1)
}
