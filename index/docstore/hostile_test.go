package docstore

import (
	"bytes"
	"errors"
	"runtime"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// isTyped reports whether hostile bytes may give an error: nil, a *CorruptError
// that names file and section, or ErrVersion.
func isTyped(err error) bool {
	if c, ok := errors.AsType[*format.CorruptError](err); ok {
		return c.File == "test.trawl" && c.Section != "" && c.Reason != ""
	}
	return err == nil || errors.Is(err, format.ErrVersion)
}

// readAll calls every method and returns every error that is not typed.
func readAll(data []byte) error {
	c, d, err := open(data)
	if err != nil {
		return untyped(err)
	}
	return errors.Join(readContent(c), readDocs(d))
}

func untyped(errs ...error) error {
	return errors.Join(slices.DeleteFunc(errs, isTyped)...)
}

func readContent(c *Content) error {
	r, errs := c.NewReader(), []error(nil)
	for blob := range min(c.Blobs(), 20) + 1 {
		_, e1 := c.Len(blob)
		_, e2 := c.FirstSuperblock(blob)
		_, e3 := r.Append(nil, blob, 0, 1<<20)
		_, e4 := r.Append(nil, blob, 100, 5000)
		_, e5 := r.LinesBefore(blob, 50)
		_, e6 := r.LinesBefore(blob, 1<<31)
		errs = append(errs, untyped(e1, e2, e3, e4, e5, e6))
	}
	for superblock := range min(c.Superblocks(), 20) + 1 {
		_, err := c.BlobOf(superblock)
		errs = append(errs, untyped(err))
	}
	return errors.Join(errs...)
}

func readDocs(d *Docs) error {
	var errs []error
	check := func(err error) { errs = append(errs, untyped(err)) }
	for doc := range min(d.Len(), 20) + 1 {
		blob, err := d.Blob(doc)
		check(err)
		_, err = d.RepoOf(doc)
		check(err)
		_, err = d.OID(doc)
		check(err)
		_, err = d.Skip(doc)
		check(err)
		_, err = d.Size(doc)
		check(err)
		_, err = d.Language(doc)
		check(err)
		_, err = d.AppendBranches(nil, doc)
		check(err)
		_, err = d.AppendBranchSet(nil, doc)
		check(err)
		path, err := d.AppendPath(nil, doc)
		check(err)
		_, _, err = d.FindPath(int(doc), path)
		check(err)
		for _, err := range d.DocsOf(blob) {
			check(err)
		}
	}
	for i := range min(d.Repos(), 20) + 1 {
		repo, err := d.Repo(i)
		check(err)
		_, _, err = d.FindRepo(repo.Name)
		check(err)
	}
	for off := uint64(0); off <= min(d.NamesLen(), 100); off++ {
		_, err := d.DocAt(off)
		check(err)
		_, err = d.AppendNames(nil, off, 9000)
		check(err)
	}
	return errors.Join(errs...)
}

func TestEveryFlippedByteIsFound(t *testing.T) {
	m := small()
	data := m.write(t)
	for i := range data {
		data[i] ^= 1 << (i % 8)
		c, d, err := open(data)
		if err == nil {
			err = errors.Join(checkContent(c, m), checkDocs(d, m))
		}
		// Everything was read, so damage is an error and never another answer.
		if err == nil || !isTyped(err) {
			t.Fatalf("byte %d of %d is flipped: %v", i, len(data), err)
		}
		data[i] ^= 1 << (i % 8)
	}
}

func TestEveryCutIsFound(t *testing.T) {
	data := small().write(t)
	for cut := range data {
		if _, _, err := open(data[:cut]); !errors.Is(err, format.ErrCorrupt) {
			t.Fatalf("cut at %d of %d: %v", cut, len(data), err)
		}
	}
}

// sections takes a shard apart; join reassembles it with correct checksums, so
// that hostile bytes reach the decoders.
type sections []section

type section struct {
	info format.SectionInfo
	data []byte
}

func split(t testingT, data []byte) (parts sections) {
	f, err := format.NewFile("test.trawl", data)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range f.Sections() {
		s, _ := f.Section(info.Tag)
		b, err := s.All()
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, struct {
			info format.SectionInfo
			data []byte
		}{info, bytes.Clone(b)})
	}
	return parts
}

func (parts sections) join(t testingT) []byte {
	var buf bytes.Buffer
	w := format.NewWriter(&buf)
	for _, p := range parts {
		_ = w.WriteSection(p.info.Tag, p.info.Flags, p.data) // errors stay
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// TestHostileSections changes every byte of every section in several ways, and
// truncates, extends and removes each section, with correct checksums.
func TestHostileSections(t *testing.T) {
	parts := split(t, small().write(t))
	check := func(what string, at int) {
		t.Helper()
		if err := readAll(parts.join(t)); err != nil {
			t.Fatalf("%s at %d: %v", what, at, err)
		}
	}
	for s := range parts {
		tag, good := parts[s].info.Tag.String(), parts[s].data
		for i := range good {
			parts[s].data = bytes.Clone(good)
			for _, flip := range []byte{1, 0x80, 0xff, 1 << (i % 8)} {
				parts[s].data[i] = good[i] ^ flip
				check(tag+" changed", i)
			}
			if i%16 == 0 || i < 32 {
				parts[s].data = good[:i]
				check(tag+" cut", i)
			}
		}
		parts[s].data = append(bytes.Clone(good), 0)
		check(tag+" longer", len(good))
		parts[s].data = good
		all := parts
		parts = slices.Delete(slices.Clone(parts), s, s+1)
		check(tag+" missing", 0)
		if _, _, err := open(parts.join(t)); !errors.Is(err, format.ErrCorrupt) && tag != format.TagRepoRanks.String() {
			t.Errorf("without section %s: %v", tag, err)
		}
		parts = all
	}
}

// TestListsThatDisagree: each list of a content's places is well formed, but one of them is that of other contents.
func TestListsThatDisagree(t *testing.T) {
	swapped := small()
	swapped.blobs[0], swapped.blobs[1] = swapped.blobs[1], swapped.blobs[0]
	others := split(t, swapped.write(t))
	for _, tag := range []format.Tag{format.TagBlobStarts, format.TagBlobSuperblocks} {
		parts := split(t, small().write(t))
		for i := range parts {
			if parts[i].info.Tag == tag {
				parts[i].data = others[i].data
			}
		}
		c, _, err := open(parts.join(t))
		if err != nil {
			t.Fatal(err)
		}
		for blob := range uint32(2) {
			_, _, span := c.Span(blob)
			_, text := c.NewReader().Append(nil, blob, 0, 1)
			if !errors.Is(span, format.ErrCorrupt) || !errors.Is(text, format.ErrCorrupt) {
				t.Errorf("%v of other contents, content %d: Span has the error %v, Append %v", tag, blob, span, text)
			}
		}
	}
}

// TestHostileSizes claims huge numbers of everything. Reading must not allocate
// more than the shard's size justifies.
func TestHostileSizes(t *testing.T) {
	parts := split(t, small().write(t))
	hostileSizes(t, parts)
	// Shards have ranks only if a repo has one.
	hostileSizes(t, slices.DeleteFunc(parts, func(p section) bool { return p.info.Tag == format.TagRepoRanks }))
}

func hostileSizes(t *testing.T, parts sections) {
	t.Helper()
	for s := range parts {
		if tag := parts[s].info.Tag; tag != format.TagContentInfo && tag != format.TagDocsInfo && tag != format.TagUnits {
			continue
		}
		good := parts[s].data
		for i := 0; i+4 <= min(len(good), 40); i += 4 {
			for _, n := range []uint32{1 << 20, 1<<31 - 2, 1<<32 - 1} {
				parts[s].data = bytes.Clone(good)
				le.PutUint32(parts[s].data[i:], n)
				data := parts.join(t)
				if _, d, err := open(data); err == nil && d.Repos() > len(data) {
					t.Errorf("%d at byte %d of section %s: %d repos in %d bytes", n, i, parts[s].info.Tag, d.Repos(), len(data))
				}
				before := allocated()
				if err := readAll(data); err != nil {
					t.Fatal(err)
				}
				if used := allocated() - before; used > 300*uint64(len(data))+8<<20 { // measured: up to 0.6 MB
					t.Errorf("%d at byte %d of section %s: %d bytes allocated", n, i, parts[s].info.Tag, used)
				}
			}
		}
		parts[s].data = good
	}
}

func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestUnknownCodec(t *testing.T) {
	parts := split(t, small().write(t))
	for s := range parts {
		if tag := parts[s].info.Tag; tag == format.TagUnits || tag == format.TagNames {
			parts[s].data[0]++
			if _, _, err := open(parts.join(t)); !errors.Is(err, format.ErrVersion) {
				t.Errorf("section %s: %v", tag, err)
			}
			parts[s].data[0]--
		}
	}
}

// FuzzSections replaces one or two sections of a sound shard by hostile bytes.
func FuzzSections(f *testing.F) {
	parts := split(f, small().write(f))
	for i, p := range parts {
		f.Add(uint8(i), p.data, uint8(0), parts[0].data)
	}
	f.Fuzz(func(t *testing.T, a uint8, dataA []byte, b uint8, dataB []byte) {
		parts := slices.Clone(parts)
		parts[int(a)%len(parts)].data = dataA
		if b != 0 {
			parts[int(b)%len(parts)].data = dataB
		}
		if err := readAll(parts.join(t)); err != nil {
			t.Fatal(err)
		}
	})
}
