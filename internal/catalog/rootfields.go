package catalog

import (
	"errors"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// rootFields are the fields of an encoded root that chunks keep, as parts of its bytes. A listing reads all roots into the same memory:
// to decode them as messages took half of the processor time in which a router starts.
type rootFields struct {
	repo, url  []byte
	generation uint64
	id         uint32
	published  publishedAt
	branches   []branchFields
	shards     []shardFields
	// languages and places are those of all shards.
	languages [][]byte
	places    []uint32
}

// publishedAt is a google.protobuf.Timestamp.
type publishedAt struct {
	known   bool
	seconds int64
	nanos   int32
}

// millis is 0 if the time is not known, or before 1970.
func (p publishedAt) millis() uint64 {
	if !p.known {
		return 0
	}
	return uint64(max(time.Unix(p.seconds, int64(p.nanos)).UnixMilli(), 0))
}

type branchFields struct{ name, commit []byte }

type shardFields struct {
	digest, key, hidden []byte
	size                uint64
	repos, number       uint32
	// languages and places are runs of those of the root.
	languages, places run
}

type run struct{ from, to int }

// Types of fields on the wire, as they stand in a key: number<<3 | type.
const (
	isNumber = uint64(protowire.VarintType)
	isBytes  = uint64(protowire.BytesType)
)

// read reads a root. What proto.Unmarshal takes, it takes too, with the same values. Numbers of fields are those of catalog.proto.
func (f *rootFields) read(code []byte) error {
	*f = rootFields{branches: f.branches[:0], shards: f.shards[:0], languages: f.languages[:0], places: f.places[:0]}
	m := message{rest: code}
	for m.next() {
		switch m.key {
		case 1<<3 | isBytes:
			f.repo = m.text()
		case 2<<3 | isNumber:
			f.generation = m.number
		case 3<<3 | isBytes:
			m.join(f.readBranch(m.bytes))
		case 6<<3 | isBytes:
			m.join(f.readShard(m.bytes))
		case 9<<3 | isBytes:
			m.join(f.published.read(m.bytes))
		case 10<<3 | isBytes:
			f.url = m.text()
		case 14<<3 | isNumber:
			f.id = uint32(m.number)
		}
	}
	return m.err
}

func (p *publishedAt) read(code []byte) error {
	p.known = true
	m := message{rest: code}
	for m.next() {
		switch m.key {
		case 1<<3 | isNumber:
			p.seconds = int64(m.number)
		case 2<<3 | isNumber:
			p.nanos = int32(m.number)
		}
	}
	return m.err
}

func (f *rootFields) readBranch(code []byte) error {
	var b branchFields
	m := message{rest: code}
	for m.next() {
		switch m.key {
		case 1<<3 | isBytes:
			b.name = m.text()
		case 2<<3 | isBytes:
			b.commit = m.text()
		}
	}
	f.branches = append(f.branches, b)
	return m.err
}

func (f *rootFields) readShard(code []byte) error {
	s := shardFields{languages: run{from: len(f.languages)}, places: run{from: len(f.places)}}
	m := message{rest: code}
	for m.next() {
		switch m.key {
		case 1<<3 | isBytes:
			s.digest = m.bytes
		case 2<<3 | isBytes:
			s.key = m.text()
		case 3<<3 | isNumber:
			s.size = m.number
		case 7<<3 | isBytes:
			f.languages = append(f.languages, m.text())
		case 8<<3 | isBytes:
			s.hidden = m.bytes
		case 14<<3 | isNumber:
			f.places = append(f.places, uint32(m.number))
		case 14<<3 | isBytes: // several in one field
			for packed := m.bytes; len(packed) > 0 && m.err == nil; {
				packed = packed[m.varint(packed):]
				f.places = append(f.places, uint32(m.number))
			}
		case 15<<3 | isNumber:
			s.repos = uint32(m.number)
		case 16<<3 | isNumber:
			s.number = uint32(m.number)
		}
	}
	s.languages.to, s.places.to = len(f.languages), len(f.places)
	f.shards = append(f.shards, s)
	return m.err
}

// bare drops everything but the name and the shards, without overlays.
func (f *rootFields) bare() {
	for i, s := range f.shards {
		f.shards[i] = shardFields{digest: s.digest, key: s.key, size: s.size, repos: s.repos}
	}
	*f = rootFields{repo: f.repo, branches: f.branches[:0], shards: f.shards, languages: f.languages[:0], places: f.places[:0]}
}

// message reads the fields of an encoded message one after the other.
type message struct {
	rest []byte
	err  error
	// key is the field's number<<3 | type, and the others its value, unless it is of another type.
	key    uint64
	number uint64
	bytes  []byte
}

var errText = errors.New("text that is not valid UTF-8")

// next goes on to the next field. It returns false at the end, and at the first error.
func (m *message) next() bool {
	if len(m.rest) == 0 || m.err != nil {
		return false
	}
	number, kind, n := protowire.ConsumeTag(m.rest)
	if m.err = protowire.ParseError(n); m.err != nil {
		return false
	}
	m.key, m.rest = uint64(number)<<3|uint64(kind), m.rest[n:]
	switch kind {
	case protowire.VarintType:
		n = m.varint(m.rest)
	case protowire.BytesType:
		m.bytes, n = protowire.ConsumeBytes(m.rest)
		m.join(protowire.ParseError(n))
	default:
		n = protowire.ConsumeFieldValue(number, kind, m.rest)
		m.join(protowire.ParseError(n))
	}
	if m.err != nil {
		return false
	}
	m.rest = m.rest[n:]
	return true
}

// varint reads a number, and returns its length, 0 after an error.
func (m *message) varint(from []byte) (n int) {
	m.number, n = protowire.ConsumeVarint(from)
	m.join(protowire.ParseError(n))
	return max(n, 0)
}

// text is the value as a string of Protobuf.
func (m *message) text() []byte {
	if !utf8.Valid(m.bytes) {
		m.join(errText)
	}
	return m.bytes
}

// join keeps the first error.
func (m *message) join(err error) {
	if m.err == nil {
		m.err = err
	}
}

// fieldsOf are the fields of a root that can be encoded.
func fieldsOf(root *catalogv1.Root) *rootFields {
	f := &rootFields{}
	code, err := proto.Marshal(root)
	if err == nil {
		err = f.read(code)
	}
	if err != nil {
		panic(err) //nolint:forbidigo // the root is not one that etcd could have
	}
	return f
}
