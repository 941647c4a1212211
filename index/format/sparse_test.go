package format

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// holes is a shard that has only the bytes that were loaded. The rest is
// garbage, so that reading it without loading is detected.
type holes struct {
	whole, data []byte
	filled      []bool
	err         error // of every Fill, if not nil
}

func newHoles(whole []byte) *holes {
	h := &holes{whole: whole, data: make([]byte, len(whole)), filled: make([]bool, len(whole))}
	rng := rand.New(rand.NewPCG(1, 2))
	for i := range h.data {
		h.data[i] = byte(rng.Uint32())
	}
	return h
}

func (h *holes) fill(off, n int64) error {
	if h.err != nil {
		return h.err
	}
	copy(h.data[off:off+n], h.whole[off:])
	for i := range n {
		h.filled[off+i] = true
	}
	return nil
}

// TestSparseReadsTheSame: reads of a sparse shard, in any order, return what
// the whole one has, and only blocks that were read are loaded.
func TestSparseReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := bytes.Repeat([]byte("0123456789"), rapid.IntRange(0, 30_000).Draw(t, "size"))
		whole := write(t, written{TagUnits, Required, body}, written{TagLexicon, Required, []byte("masks")})
		h := newHoles(whole)
		f, err := NewSparse("test", h.data, h.fill, nil)
		if err != nil {
			t.Fatal(err)
		}
		s, ok := f.Section(TagUnits)
		if !ok || s.Len() != int64(len(body)) {
			t.Fatalf("the section has %d bytes, not %d", s.Len(), len(body))
		}
		allowed := len(whole) - int(f.bodyLength()) + 2*ChecksumBlock + TailSize
		for range rapid.IntRange(0, 5).Draw(t, "reads") {
			off := rapid.IntRange(0, len(body)).Draw(t, "off")
			n := rapid.IntRange(0, len(body)-off).Draw(t, "n")
			got, err := s.Bytes(int64(off), int64(n))
			if err != nil || !bytes.Equal(got, body[off:off+n]) {
				t.Fatalf("%d bytes at %d: %v", n, off, err)
			}
			allowed += n + 2*ChecksumBlock
		}
		brought := 0
		for _, ok := range h.filled {
			if ok {
				brought++
			}
		}
		if brought > allowed {
			t.Fatalf("%d bytes were brought where %d are enough", brought, allowed)
		}
		if err := f.Verify(context.Background()); err != nil {
			t.Fatal(err)
		}
	})
}

// TestAnnounced: an announcement is of whole checksum blocks of the section that were not read yet,
// whatever numbers a damaged shard has.
func TestAnnounced(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := bytes.Repeat([]byte("0123456789"), rapid.IntRange(0, 30_000).Draw(t, "size"))
		h := newHoles(write(t, written{TagLexicon, Required, []byte("masks")}, written{TagUnits, Required, body}))
		var f *File
		covered := map[int64]bool{}
		f, err := NewSparse("test", h.data, h.fill, func(off, n int64) {
			if f == nil {
				return // the header
			}
			if off < 0 || n <= 0 || off%ChecksumBlock != 0 || off+n > f.bodyLength() || off+n < f.bodyLength() && n%ChecksumBlock != 0 {
				t.Fatalf("%d bytes at %d of %d", n, off, f.bodyLength())
			}
			if f.isVerified(off>>checksumShift) || f.isVerified((off+n-1)>>checksumShift) {
				t.Fatalf("%d bytes at %d were read before", n, off)
			}
			for block := off >> checksumShift; block<<checksumShift < off+n; block++ {
				covered[block] = true
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		s, _ := f.Section(TagUnits)
		start, end := s.place()
		edge := rapid.OneOf(rapid.Int64(), rapid.Int64Range(-10, int64(len(body))+10))
		a := s.Announcer()
		for range rapid.IntRange(0, 6).Draw(t, "announcements") {
			off, n := edge.Draw(t, "off"), edge.Draw(t, "n")
			a.Add(off, n)
			a.Flush()
			if off < 0 || off >= end-start || n <= 0 {
				continue
			}
			for block := (start + off) >> checksumShift; block<<checksumShift < start+off+min(n, end-start-off); block++ {
				if !covered[block] && !f.isVerified(block) {
					t.Fatalf("%d bytes at %d: block %d was not announced", n, off, block)
				}
			}
			if n = min(n, end-start-off, 1<<15); rapid.Bool().Draw(t, "read") {
				if _, err := s.Bytes(off, n); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

// TestSparseThatCannotBeFilled: an error of Fill is returned as it is, not as
// damage, at every step, and the next attempt works.
func TestSparseThatCannotBeFilled(t *testing.T) {
	_, sections := sample(t)
	whole := write(t, append(sections, written{TagLexicon, Required, bytes.Repeat([]byte("x"), 200_000)})...)
	h := newHoles(whole)
	away := errors.New("the bucket is away")
	h.err = away
	if _, err := NewSparse("test", h.data, h.fill, nil); !errors.Is(err, away) || errors.Is(err, ErrCorrupt) {
		t.Fatalf("open: %v", err)
	}
	h.err = nil
	f, err := NewSparse("test", h.data, h.fill, nil)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Need(TagUnits)
	if err != nil {
		t.Fatal(err)
	}
	h.err = away
	if _, err := s.All(); !errors.Is(err, away) || errors.Is(err, ErrCorrupt) {
		t.Fatalf("read: %v", err)
	}
	if err := f.Verify(t.Context()); !errors.Is(err, away) || errors.Is(err, ErrCorrupt) {
		t.Fatalf("verify: %v", err)
	}
	h.err = nil
	if got, err := s.All(); err != nil || !bytes.Equal(got, sections[0].data) {
		t.Fatalf("read again: %v", err)
	}
}

// TestSparseFilledWrongly: loaded bytes are checked against their checksums.
func TestSparseFilledWrongly(t *testing.T) {
	whole, _ := sample(t)
	for i := 0; i < len(whole); i += 13 {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 0x40
		h := newHoles(flipped)
		f, err := NewSparse("test", h.data, h.fill, nil)
		if err == nil {
			err = f.Verify(t.Context())
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
	}
	for _, n := range []int{0, 1, HeaderSize + FooterSize - 1} {
		h := newHoles(make([]byte, n))
		_, err := NewSparse("test", h.data, h.fill, nil)
		checkCorrupt(t, "too short", err)
	}
}
