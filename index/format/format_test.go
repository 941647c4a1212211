package format

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// written is a section for a test.
type written struct {
	tag   Tag
	flags Flags
	data  []byte
}

// tagOf returns the tag of a name of four bytes.
func tagOf(name string) Tag { return Tag(le.Uint32([]byte(name))) }

// testingT has the methods common to *testing.T, *testing.F and *rapid.T.
type testingT interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

func write(t testingT, sections ...written) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := NewWriter(&buf)
	for _, s := range sections {
		_ = w.Begin(s.tag, s.flags) // errors stay
		for chunk := range slices.Chunk(s.data, 1000) {
			_, _ = w.Write(chunk)
		}
		_ = w.End()
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if w.Size() != int64(buf.Len()) || w.Sum() != sha256.Sum256(buf.Bytes()) {
		t.Fatal("size or sum is not that of the file")
	}
	return buf.Bytes()
}

// sample is a shard with three sections over three checksum blocks.
func sample(t testingT) ([]byte, []written) {
	big := make([]byte, ChecksumBlock+5000)
	for i := range big {
		big[i] = byte(i * i >> 3)
	}
	sections := []written{
		{TagUnits, Required, big},
		{TagPostings, Required, nil},
		{tagOf("XTRA"), Optional, []byte("a section that only a newer version knows")},
		{TagLines, Required, big[:ChecksumBlock]},
	}
	return write(t, sections...), sections
}

func TestRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var sections []written
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[A-Z]{4}`), 0, 8, rapid.ID).Draw(t, "names")
		for _, name := range names {
			data := rapid.SliceOfN(rapid.Byte(), 0, 100).Draw(t, "data")
			data = bytes.Repeat(data, rapid.SampledFrom([]int{1, 1, 40, 400}).Draw(t, "times"))
			sections = append(sections, written{tagOf(name), Optional, data})
		}
		data := write(t, sections...)
		f, err := NewFile("test", data)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.Verify(context.Background()); err != nil {
			t.Fatal(err)
		}
		for _, want := range sections {
			s, ok := f.Section(want.tag)
			if !ok || s.Len() != int64(len(want.data)) || s.Tag() != want.tag {
				t.Fatalf("section %s: %v, %d bytes", want.tag, ok, s.Len())
			}
			off := rapid.IntRange(0, len(want.data)).Draw(t, "off")
			n := rapid.IntRange(0, len(want.data)-off).Draw(t, "n")
			got, err := s.Bytes(int64(off), int64(n))
			if err != nil || !bytes.Equal(got, want.data[off:off+n]) {
				t.Fatalf("section %s has %x, %v", want.tag, got, err)
			}
		}
	})
}

// checkCorrupt fails unless err is a *CorruptError that names file and section.
func checkCorrupt(t *testing.T, what string, err error) {
	t.Helper()
	var c *CorruptError
	if !errors.As(err, &c) || !errors.Is(err, ErrCorrupt) {
		t.Fatalf("%s: error %v", what, err)
	}
	if c.File == "" || c.Section == "" || c.Reason == "" || c.Error() == "" {
		t.Fatalf("%s: error says too little: %+v", what, c)
	}
}

func TestEveryFlippedByteIsFound(t *testing.T) {
	data, sections := sample(t)
	for i := range data {
		if i > 2*HeaderSize && i < ChecksumBlock-50 && i%97 != 0 {
			continue // the middle of a section, in steps
		}
		data[i] ^= 1 << (i % 8)
		f, err := NewFile("test", data)
		if err != nil {
			checkCorrupt(t, "open", err)
		} else {
			checkCorrupt(t, "verify", f.Verify(t.Context()))
			for _, want := range sections {
				s, _ := f.Section(want.tag)
				got, err := s.All()
				if err != nil {
					checkCorrupt(t, "read", err)
				} else if !bytes.Equal(got, want.data) {
					t.Fatalf("byte %d is flipped and section %s reads wrong", i, want.tag)
				}
			}
		}
		data[i] ^= 1 << (i % 8)
	}
}

func TestEveryCutIsFound(t *testing.T) {
	data, _ := sample(t)
	for cut := range data {
		_, err := NewFile("test", data[:cut])
		checkCorrupt(t, "open", err)
	}
	// Truncated at the front, and extended.
	for _, bad := range [][]byte{data[1:], append(bytes.Clone(data), 0), append(bytes.Clone(data), data...)} {
		_, err := NewFile("test", bad)
		checkCorrupt(t, "open", err)
	}
}

// reframe changes the footer and the entries of a shard and corrects their
// checksums, as a careful attacker or another version would.
func reframe(t *testing.T, data []byte, change func(*footer, []byte)) []byte {
	t.Helper()
	data = bytes.Clone(data)
	end := len(data) - FooterSize
	f, err := parseFooter("test", int64(len(data)), data[end:])
	if err != nil {
		t.Fatal(err)
	}
	toc := data[f.tocOffset:end]
	change(&f, toc)
	f.tocCRC = crc(toc)
	return appendFooter(data[:end], &f)
}

func TestHostileContents(t *testing.T) {
	data, _ := sample(t)
	for name, c := range map[string]struct {
		change func(*footer, []byte)
		want   error
	}{
		"newer reader":     {func(f *footer, _ []byte) { f.versions.MinReader = Version + 1 }, ErrVersion},
		"older writer":     {func(f *footer, _ []byte) { f.versions.Writer = Version - 1 }, ErrVersion},
		"other header":     {func(f *footer, _ []byte) { f.versions.Writer = 7 }, ErrCorrupt},
		"unknown flag":     {func(_ *footer, toc []byte) { toc[4] = 2 }, ErrVersion},
		"unknown required": {func(_ *footer, toc []byte) { toc[2*EntrySize+4] = 1 }, ErrVersion},
		"twice":            {func(_ *footer, toc []byte) { copy(toc[EntrySize:], toc[:4]) }, ErrCorrupt},
		"gap":              {func(_ *footer, toc []byte) { toc[8]++ }, ErrCorrupt},
		"too long":         {func(_ *footer, toc []byte) { toc[3*EntrySize+16]++ }, ErrCorrupt},
		"too short":        {func(_ *footer, toc []byte) { toc[3*EntrySize+16]-- }, ErrCorrupt},
		"negative":         {func(_ *footer, toc []byte) { toc[16+7] = 0x80 }, ErrCorrupt},
		"reserved":         {func(_ *footer, toc []byte) { toc[28] = 1 }, ErrCorrupt},
		"longer body":      {func(f *footer, _ []byte) { f.bodyLength++ }, ErrCorrupt},
		"endless body":     {func(f *footer, _ []byte) { f.bodyLength = 1<<63 - 1 }, ErrCorrupt},
		"negative body":    {func(f *footer, _ []byte) { f.bodyLength = -1 }, ErrCorrupt},
		"contents later":   {func(f *footer, _ []byte) { f.tocOffset += EntrySize; f.tocLength -= EntrySize }, ErrCorrupt},
		"contents nowhere": {func(f *footer, _ []byte) { f.tocOffset = -1 << 63 }, ErrCorrupt},
		"contents longer":  {func(f *footer, _ []byte) { f.tocLength = 1<<32 - EntrySize }, ErrCorrupt},
		"other size":       {func(f *footer, _ []byte) { f.size++ }, ErrCorrupt},
	} {
		t.Run(name, func(t *testing.T) {
			bad := reframe(t, data, c.change)
			if _, err := NewFile("test", bad); !errors.Is(err, c.want) {
				t.Errorf("NewFile: %v, want %v", err, c.want)
			}
		})
	}
}

// failing fails every read or write.
type failing struct{}

var errBroken = errors.New("broken disk")

func (failing) ReadAt([]byte, int64) (int, error) { return 0, errBroken }
func (failing) Write([]byte) (int, error)         { return 0, errBroken }

func TestErrorsOfTheMediumAreNotCorruption(t *testing.T) {
	w := NewWriter(failing{})
	if err := w.WriteSection(TagLines, Required, nil); !errors.Is(err, errBroken) {
		t.Errorf("WriteSection: %v", err)
	}
	if err := w.Close(); !errors.Is(err, errBroken) {
		t.Errorf("Close: %v", err)
	}
	if _, err := OpenFile(filepath.Join(t.TempDir(), "none")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("OpenFile: %v", err)
	}
	if _, err := OpenFile(t.TempDir()); err == nil || errors.Is(err, ErrCorrupt) {
		t.Errorf("OpenFile of a folder: %v", err)
	}
}

func TestMisuse(t *testing.T) {
	for name, use := range map[string]func(*Writer){
		"write outside":    func(w *Writer) { _, _ = w.Write([]byte("x")) },
		"end outside":      func(w *Writer) { _ = w.End() },
		"begin in section": func(w *Writer) { _ = w.Begin(TagLines, 0); _ = w.Begin(TagUnits, 0) },
		"close in section": func(w *Writer) { _ = w.Begin(TagLines, 0) },
		"twice":            func(w *Writer) { _ = w.WriteSection(TagLines, 0, nil); _ = w.Begin(TagLines, 0) },
		"unknown flag":     func(w *Writer) { _ = w.Begin(TagLines, 4) },
		"after the end":    func(w *Writer) { _ = w.Close(); _ = w.Begin(TagLines, 0) },
		"too many": func(w *Writer) {
			for i := range MaxSections + 1 {
				_ = w.WriteSection(Tag(i), 0, nil)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := NewWriter(io.Discard)
			use(w)
			if err := w.Close(); !errors.Is(err, ErrMisuse) {
				t.Errorf("Close: %v", err)
			}
		})
	}
}

func TestBytesStaysInTheSection(t *testing.T) {
	data, _ := sample(t)
	f, err := NewFile("test", data)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Need(TagLines)
	if err != nil {
		t.Fatal(err)
	}
	const far = 1<<63 - 1
	for _, c := range [][2]int64{{-1, 1}, {0, -1}, {0, s.Len() + 1}, {s.Len(), 1}, {s.Len() + 1, 0}, {far, 1}, {1, far}, {far, far}, {-far, far}} {
		_, err := s.Bytes(c[0], c[1])
		checkCorrupt(t, "bytes", err)
	}
	b, err := s.Bytes(3, 4)
	if err != nil || len(b) != 4 || cap(b) != 4 {
		t.Errorf("%d bytes with room for %d: %v", len(b), cap(b), err)
	}
	if b, err := (Section{}).Bytes(0, 0); err != nil || len(b) != 0 {
		t.Errorf("the zero section: %v %v", b, err)
	}
	_, err = f.Need(TagOIDs)
	checkCorrupt(t, "a missing section", err)
	if n := testing.AllocsPerRun(100, func() { _, _ = s.Bytes(100, 200) }); n != 0 {
		t.Errorf("Bytes makes %v allocations", n)
	}
}

func TestVerifyEndsWithItsContext(t *testing.T) {
	data, _ := sample(t)
	f, err := NewFile("test", data)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := f.Verify(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Verify: %v", err)
	}
}

func TestTags(t *testing.T) {
	seen := map[Tag]bool{}
	for _, tag := range Tags() {
		if seen[tag] || tagOf(tag.String()) != tag || len(tag.String()) != 4 {
			t.Errorf("tag %s", tag)
		}
		seen[tag] = true
	}
	if got := Tag(7).String(); got != "0x7" {
		t.Errorf("tag 7 is %s", got)
	}
}

func FuzzNewFile(f *testing.F) {
	data, _ := sample(f)
	f.Add(data)
	f.Add(write(f))
	f.Add(write(f, written{TagLines, Required, []byte("some lines")}))
	f.Fuzz(func(t *testing.T, data []byte) {
		file, err := NewFile("test", data)
		if err != nil {
			if !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrVersion) {
				t.Fatalf("error %v", err)
			}
			return
		}
		for _, info := range file.Sections() {
			s, _ := file.Section(info.Tag)
			if _, err := s.All(); err != nil {
				checkCorrupt(t, "read", err)
			}
		}
		if err := file.Verify(t.Context()); err != nil {
			checkCorrupt(t, "verify", err)
		}
	})
}

func BenchmarkBytes(b *testing.B) {
	data, _ := sample(b)
	f, err := NewFile("test", data)
	if err != nil {
		b.Fatal(err)
	}
	s, _ := f.Section(TagUnits)
	var sum int
	for i := int64(0); b.Loop(); i++ {
		p, _ := s.Bytes(i&0xfff, 1000)
		sum += len(p)
	}
	_ = sum
}

func BenchmarkWriter(b *testing.B) {
	p := make([]byte, 64<<10)
	b.SetBytes(int64(len(p)))
	w := NewWriter(io.Discard)
	_ = w.Begin(TagUnits, Required)
	for b.Loop() {
		_, _ = w.Write(p)
	}
}

func TestUvarintHasOneForm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Uint64().Draw(t, "v")
		data := binary.AppendUvarint(nil, v)
		d := NewDecoder("f", TagLines, data)
		if got := d.Uvarint(); got != v || d.End() != nil {
			t.Fatalf("%d decodes to %d, %v", v, got, d.Err())
		}
		data[len(data)-1] |= 0x80
		d = NewDecoder("f", TagLines, append(data, 0))
		if d.Uvarint(); d.Err() == nil {
			t.Fatalf("%x decodes", data)
		}
	})
}

// TestRecheck: what was read is checked again, piece by piece, and what was not is left out.
func TestRecheck(t *testing.T) {
	data := write(t, written{TagUnits, Required, make([]byte, 5<<20)})
	f, err := NewFile("test", data)
	if err != nil {
		t.Fatal(err)
	}
	s, _ := f.Section(TagUnits)
	start, _ := s.place()
	const first, n = 1 << 20, 3 << 20
	if _, err := s.Bytes(first, n); err != nil {
		t.Fatal(err)
	}
	recheck := func() (read int64, err error) {
		for from := int64(0); ; {
			next, piece, err := f.Recheck(from)
			if piece > verifyStep {
				t.Fatalf("%d bytes in a piece", piece)
			}
			if read += piece; err != nil || next == 0 {
				return read, err
			}
			from = next
		}
	}
	if read, err := recheck(); err != nil || read < n || read > n+2*ChecksumBlock {
		t.Fatalf("%d bytes were read, %v", read, err)
	}
	for at, found := range map[int64]bool{first: true, first + n - 1: true, first + n/2: true, 0: false, 5<<20 - 1: false} {
		data[start+at] ^= 1
		if _, err := recheck(); found != errors.Is(err, ErrCorrupt) {
			t.Errorf("byte %d: %v", at, err)
		}
		data[start+at] ^= 1
	}
}
