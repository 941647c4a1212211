package catalog

import (
	"crypto/rand"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/trawl-search/trawl/internal/catalog/follow"
)

// kind is a family of records: the folder before the repo's name.
type kind string

const (
	desiredKind kind = "desired"
	rootKind    kind = "roots"
	statusKind  kind = "status"
	leaseKind   kind = "leases"
	deletedKind kind = "deleted"
	seenKind    kind = "seen"
	putKind     kind = "puts"

	condemnedKind kind = "condemned"
	holdKind      kind = "holds"
	electionKind  kind = "elections"

	compactionKind kind = "compactions"
	claimKind      kind = "claims"
	packKind       kind = "packs"

	sourceKind kind = "sources"
	reportKind kind = "sourcereports"
	copyKind   kind = "sourcecopies"
)

// versionsName is a single key outside the kinds: its value is the newest version of
// all copies of sources.
const versionsName = "sourcecopies.newest"

// collectionName is the only record of its kind.
const collectionName = "collection"

func (s *Store) key(k kind, name string) string { return s.prefix + string(k) + "/" + name }

// end is the key after the last of a kind: '0' is the byte after '/'.
func (s *Store) end(k kind) string { return s.prefix + string(k) + "0" }

// name is the repo that a key of the kind belongs to.
func (s *Store) name(k kind, key []byte) string { return string(key[len(s.key(k, "")):]) }

func (s *Store) clockKey() string { return follow.ClockKey(s.prefix) }

// rootRange holds the clock and all roots: the clock sorts before every root and after nothing else.
func (s *Store) rootRange() follow.Range {
	return follow.Range{From: s.clockKey(), To: s.end(rootKind)}
}

// tick is part of every transaction that changes what is desired or served. By its random
// value followers notice an etcd that went back and wrote other changes since.
func (s *Store) tick() clientv3.Op { return clientv3.OpPut(s.clockKey(), rand.Text()) }

func checkName(name string) error {
	if name == "" {
		return ErrName
	}
	if len(name) > MaxNameBytes {
		return fmt.Errorf("%w: repo name of %d bytes, at most %d", ErrTooLarge, len(name), MaxNameBytes)
	}
	return nil
}
