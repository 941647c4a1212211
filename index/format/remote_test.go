package format

import (
	"bytes"
	"errors"
	"testing"

	"pgregory.net/rapid"
)

// remote opens a shard of which only the tail is in place; the rest of data is garbage.
func (h *holes) remote(read Read) (*File, error) {
	start, err := TailStart("test", int64(len(h.whole)), read)
	if err != nil {
		return nil, err
	}
	start &^= ChecksumBlock - 1
	if err := h.fill(start, int64(len(h.whole))-start); err != nil {
		return nil, err
	}
	return NewRemote("test", h.data, read, nil)
}

// TestRemoteReadsTheSame: reads of a remote shard, in any order, return what the whole one has, in memory of their own.
func TestRemoteReadsTheSame(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		body := bytes.Repeat([]byte("0123456789"), rapid.IntRange(0, 30_000).Draw(t, "size"))
		last := bytes.Repeat([]byte("abc"), rapid.IntRange(0, 30_000).Draw(t, "last"))
		whole := write(t, written{TagUnits, Required, body}, written{TagLexicon, Required, body}, written{TagLines, Required, last})
		h := newHoles(whole)
		read := func(p []byte, off int64) error {
			if off < 0 || off+int64(len(p)) > int64(len(whole)) {
				t.Fatalf("%d bytes at %d of %d", len(p), off, len(whole))
			}
			copy(p, whole[off:])
			return nil
		}
		f, err := h.remote(read)
		if err != nil {
			t.Fatal(err)
		}
		contents := map[Tag][]byte{TagUnits: body, TagLexicon: body, TagLines: last}
		type part struct{ got, want []byte }
		var parts []part
		for range rapid.IntRange(0, 9).Draw(t, "reads") {
			tag := rapid.SampledFrom([]Tag{TagUnits, TagLexicon, TagLines}).Draw(t, "tag")
			s, _ := f.Section(tag)
			content := contents[tag]
			off := rapid.IntRange(0, len(content)).Draw(t, "off")
			n := rapid.IntRange(0, len(content)-off).Draw(t, "n")
			got, err := s.Bytes(int64(off), int64(n))
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, part{got, content[off : off+n]})
			for _, p := range parts {
				if !bytes.Equal(p.got, p.want) {
					t.Fatal("what was read differs, or has changed")
				}
			}
		}
	})
}

// TestRemoteThatCannotBeRead: an error of Read is returned as it is, not as damage, at every step, and the next attempt works.
func TestRemoteThatCannotBeRead(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 200_000)
	whole := write(t, written{TagUnits, Required, body})
	away := errors.New("the bucket is away")
	var broken error
	read := func(p []byte, off int64) error {
		copy(p, whole[off:])
		return broken
	}
	broken = away
	if _, err := newHoles(whole).remote(read); !errors.Is(err, away) || errors.Is(err, ErrCorrupt) {
		t.Fatalf("open: %v", err)
	}
	broken = nil
	f, err := newHoles(whole).remote(read)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := f.Section(TagUnits)
	for _, n := range []int64{1, 200_000} {
		broken = away
		if _, err := s.Bytes(0, n); !errors.Is(err, away) || errors.Is(err, ErrCorrupt) {
			t.Fatalf("read %d bytes: %v", n, err)
		}
		broken = nil
		if got, err := s.Bytes(0, n); err != nil || !bytes.Equal(got, body[:n]) {
			t.Fatalf("read %d bytes again: %v", n, err)
		}
	}
}

// TestRemoteReadWrongly: every byte that differs is found when it is read, also when a neighbour was read before.
func TestRemoteReadWrongly(t *testing.T) {
	body := bytes.Repeat([]byte("0123456789"), 4_000)
	whole := write(t, written{TagUnits, Required, body}, written{TagLines, Required, []byte("last")})
	for i := 0; i < len(whole); i += 13 {
		flipped := bytes.Clone(whole)
		flipped[i] ^= 0x40
		f, err := newHoles(flipped).remote(func(p []byte, off int64) error { copy(p, flipped[off:]); return nil })
		for at := int64(0); at < int64(len(body)) && err == nil; at += 1000 {
			s, _ := f.Section(TagUnits)
			_, err = s.Bytes(at, 1000)
		}
		if err == nil {
			s, _ := f.Section(TagLines)
			_, err = s.All()
		}
		if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
			t.Fatalf("byte %d flipped: %v", i, err)
		}
	}
}
