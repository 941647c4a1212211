package docstore

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/format"
)

func open(data []byte) (*Content, *Docs, error) {
	f, err := format.NewFile("test.trawl", data)
	if err != nil {
		return nil, nil, err
	}
	c, err := OpenContent(f)
	if err != nil {
		return nil, nil, err
	}
	d, err := OpenDocs(f)
	return c, d, err
}

func TestContentIsTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		c, _, err := open(m.write(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := checkContent(c, m); err != nil {
			t.Fatal(err)
		}
		if len(m.blobs) == 0 {
			return
		}
		// One reader reads parts of blobs, one after the other.
		r := c.NewReader()
		for range 10 {
			i := rapid.IntRange(0, len(m.blobs)-1).Draw(t, "blob")
			blob := m.blobs[i]
			off := rapid.IntRange(0, len(blob)+1).Draw(t, "off")
			n := rapid.IntRange(0, len(blob)+1).Draw(t, "n")
			want := blob[min(off, len(blob)):min(off+n, len(blob))]
			got, err := r.Append([]byte("x"), uint32(i), uint32(off), uint32(n))
			if err != nil || !bytes.Equal(got[1:], want) || got[0] != 'x' {
				t.Fatalf("blob %d [%d,+%d) is %d bytes, %v; want %d", i, off, n, len(got)-1, err, len(want))
			}
			lines, err := r.LinesBefore(uint32(i), uint32(off))
			if want := bytes.Count(blob[:min(off, len(blob))], newline); err != nil || int(lines) != want {
				t.Fatalf("blob %d has %d lines before %d, %v; want %d", i, lines, off, err, want)
			}
		}
	})
}

// checkContent reads everything and compares it with the model.
func checkContent(c *Content, m *model) error {
	var total uint64
	next, r := uint32(0), c.NewReader()
	for i, blob := range m.blobs {
		n, err := c.Len(uint32(i))
		if err != nil || int(n) != len(blob) {
			return fmt.Errorf("blob %d has %d bytes, want %d: %w", i, n, len(blob), err)
		}
		sb, err := c.FirstSuperblock(uint32(i))
		if err != nil || sb != next {
			return fmt.Errorf("blob %d starts at superblock %d, want %d: %w", i, sb, next, err)
		}
		got, err := r.Append(nil, uint32(i), 0, ^uint32(0))
		if err != nil || !bytes.Equal(got, blob) {
			return fmt.Errorf("blob %d reads wrong: %w", i, err)
		}
		for range SuperblocksOf(uint64(n)) {
			if owner, err := c.BlobOf(next); err != nil || owner != uint32(i) {
				return fmt.Errorf("superblock %d belongs to %d, want %d: %w", next, owner, i, err)
			}
			next++
		}
		lines, err := r.LinesBefore(uint32(i), ^uint32(0))
		if err != nil || int(lines) != bytes.Count(blob, newline) {
			return fmt.Errorf("blob %d has %d lines: %w", i, lines, err)
		}
		total += uint64(len(blob))
	}
	end, err := c.FirstSuperblock(c.Blobs())
	if err != nil || end != next || c.Superblocks() != next || int(c.Blobs()) != len(m.blobs) || c.Bytes() != total {
		return fmt.Errorf("%d blobs in %d superblocks to %d of %d bytes: %w", c.Blobs(), c.Superblocks(), end, c.Bytes(), err)
	}
	if r.BytesDecoded < total || r.UnitsDecoded < uint64(next) {
		return fmt.Errorf("decoded %d bytes in %d units, want %d in %d", r.BytesDecoded, r.UnitsDecoded, total, next)
	}
	return nil
}

func TestDocsAreTheModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m := drawModel(t)
		_, d, err := open(m.write(t))
		if err != nil {
			t.Fatal(err)
		}
		if err := checkDocs(d, m); err != nil {
			t.Fatal(err)
		}
	})
}

// checkDocs reads everything and compares it with the model.
func checkDocs(d *Docs, m *model) error {
	docs, repos := m.docs()
	if int(d.Len()) != len(docs) || d.Repos() != len(m.repos) || int(d.content.blobs) != len(m.blobs) {
		return fmt.Errorf("%d documents of %d repos with %d blobs", d.Len(), d.Repos(), d.content.blobs)
	}
	for i := range docs {
		if err := checkDocument(d, m, uint32(i), &docs[i], repos[i]); err != nil {
			return fmt.Errorf("document %d: %w", i, err)
		}
	}
	for _, check := range []func(*Docs, *model) error{checkRepos, checkBlobs, checkNames} {
		if err := check(d, m); err != nil {
			return err
		}
	}
	return nil
}

func checkDocument(d *Docs, m *model, doc uint32, want *Document, repo int) error {
	blob, err := d.Blob(doc)
	if err != nil || blob != want.Blob {
		return fmt.Errorf("blob %d, want %d: %w", blob, want.Blob, err)
	}
	if got, err := d.RepoOf(doc); err != nil || got != repo {
		return fmt.Errorf("repo %d, want %d: %w", got, repo, err)
	}
	if got, err := d.AppendPath(nil, doc); err != nil || !bytes.Equal(got, want.Path) {
		return fmt.Errorf("path %q, want %q: %w", got, want.Path, err)
	}
	if got, err := d.OID(doc); err != nil || !bytes.Equal(got, want.OID) {
		return fmt.Errorf("object id %x, want %x: %w", got, want.OID, err)
	}
	if got, err := d.Skip(doc); err != nil || got != want.Skip {
		return fmt.Errorf("%v, want %v: %w", got, want.Skip, err)
	}
	if got, err := d.Size(doc); err != nil || got != m.size(want) {
		return fmt.Errorf("size %d, want %d: %w", got, m.size(want), err)
	}
	return checkLabels(d, doc, want)
}

// languagesOf returns the names of all languages by their ids.
func languagesOf(d *Docs) (names []string, err error) {
	for id := range d.info.languages {
		name, nameErr := d.LanguageName(uint16(id))
		names, err = append(names, name), errors.Join(err, nameErr)
	}
	return names, err
}

func checkLabels(d *Docs, doc uint32, want *Document) error {
	language, err := d.Language(doc)
	if err != nil || language != want.Language {
		return fmt.Errorf("language %q, want %q: %w", language, want.Language, err)
	}
	id, err := d.LanguageID(doc)
	if names, nameErr := languagesOf(d); err != nil || nameErr != nil || names[id] != language || !slices.IsSorted(names) {
		return fmt.Errorf("language %d of %q: %w", id, names, errors.Join(err, nameErr))
	}
	if found, ok, err := d.FindLanguage(language); err != nil || !ok || found != id {
		return fmt.Errorf("language %q is found as %d, %t, not as %d: %w", language, found, ok, id, err)
	}
	if found, ok, err := d.FindLanguage(language + "?"); err != nil || ok {
		return fmt.Errorf("language %q is found as %d: %w", language+"?", found, err)
	}
	if got, err := d.AppendBranches(nil, doc); err != nil || !slices.Equal(got, want.Branches) {
		return fmt.Errorf("branches %v, want %v: %w", got, want.Branches, err)
	}
	set, err := d.BranchSet(doc)
	if err != nil || set >= d.info.sets {
		return fmt.Errorf("branch set %d of %d: %w", set, d.info.sets, err)
	}
	if got, err := d.AppendBranchSet(nil, set); err != nil || !slices.Equal(got, want.Branches) {
		return fmt.Errorf("branch set %v, want %v: %w", got, want.Branches, err)
	}
	return nil
}

func checkRepos(d *Docs, m *model) error {
	first := uint32(0)
	for i, r := range m.repos {
		want := r.repo
		want.FirstDoc, want.Docs = first, uint32(len(r.docs))
		got, err := d.Repo(i)
		if len(want.Meta) == 0 {
			want.Meta = nil
		}
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			return fmt.Errorf("repo %d is %+v, want %+v: %w", i, got, want, err)
		}
		if at, ok, err := d.FindRepo(want.Name); err != nil || !ok || at != i {
			return fmt.Errorf("repo %q is at %d %v, want %d: %w", want.Name, at, ok, i, err)
		}
		if _, ok, err := d.FindRepo(want.Name + "\x00"); ok || err != nil {
			return fmt.Errorf("a repo that is not there is found, or %w", err)
		}
		if err := checkPaths(d, i, first, r.docs); err != nil {
			return err
		}
		first += want.Docs
	}
	return nil
}

func checkPaths(d *Docs, repo int, first uint32, docs []Document) error {
	for k, doc := range docs {
		want := first + uint32(slices.IndexFunc(docs, func(o Document) bool { return bytes.Equal(o.Path, doc.Path) }))
		if got, ok, err := d.FindPath(repo, doc.Path); err != nil || !ok || got != want {
			return fmt.Errorf("path %q of document %d is at %d %v, want %d: %w", doc.Path, k, got, ok, want, err)
		}
		if _, ok, err := d.FindPath(repo, append(bytes.Clone(doc.Path), "\xff\xff"...)); ok || err != nil {
			return fmt.Errorf("a path that is not there is found, or %w", err)
		}
	}
	return nil
}

func checkBlobs(d *Docs, m *model) error {
	docs, _ := m.docs()
	for blob := range m.blobs {
		var want, got []uint32
		for i := range docs {
			if docs[i].Blob == uint32(blob) {
				want = append(want, uint32(i))
			}
		}
		for doc, err := range d.DocsOf(uint32(blob)) {
			if err != nil {
				return err
			}
			got = append(got, doc)
		}
		if first, err := d.FirstDoc(uint32(blob)); err != nil || !slices.Equal(got, want) || first != want[0] {
			return fmt.Errorf("blob %d has the documents %v, first %d, want %v: %w", blob, got, first, want, err)
		}
	}
	return nil
}

func checkNames(d *Docs, m *model) error {
	var names []byte
	docs, _ := m.docs()
	for i := range docs {
		start, end, err := d.PathRange(uint32(i))
		if err != nil || int(start) != len(names) || int(end-start) != len(docs[i].Path) {
			return fmt.Errorf("path %d is at [%d,%d): %w", i, start, end, err)
		}
		for _, off := range []uint64{start, (start + end) / 2, end - 1} {
			if at, err := d.DocAt(off); err != nil || at != uint32(i) {
				return fmt.Errorf("byte %d is of document %d, want %d: %w", off, at, i, err)
			}
		}
		names = append(names, docs[i].Path...)
	}
	if d.NamesLen() != uint64(len(names)) {
		return fmt.Errorf("names have %d bytes, want %d", d.NamesLen(), len(names))
	}
	for off := 0; off <= len(names); off += 1000 {
		want := names[off:min(off+5000, len(names))]
		if got, err := d.AppendNames(nil, uint64(off), 5000); err != nil || !bytes.Equal(got, want) {
			return fmt.Errorf("names at %d: %w", off, err)
		}
	}
	return nil
}

func TestUnknownThings(t *testing.T) {
	c, d, err := open(small().write(t))
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func() error{
		"document":        func() error { _, err := d.Blob(d.Len()); return err },
		"path":            func() error { _, err := d.AppendPath(nil, d.Len()); return err },
		"repo of":         func() error { _, err := d.RepoOf(^uint32(0)); return err },
		"language":        func() error { _, err := d.Language(d.Len()); return err },
		"branches":        func() error { _, err := d.AppendBranches(nil, d.Len()); return err },
		"branch set":      func() error { _, err := d.AppendBranchSet(nil, d.info.sets); return err },
		"repo":            func() error { _, err := d.Repo(d.Repos()); return err },
		"negative repo":   func() error { _, err := d.RepoName(-1); return err },
		"path of no repo": func() error { _, _, err := d.FindPath(d.Repos(), nil); return err },
		"names":           func() error { _, err := d.DocAt(d.NamesLen()); return err },
		"first document":  func() error { _, err := d.FirstDoc(d.content.blobs); return err },
		"blob":            func() error { _, err := c.Len(c.Blobs()); return err },
		"superblock":      func() error { _, err := c.BlobOf(c.Superblocks()); return err },
		"first of blob":   func() error { _, err := c.FirstSuperblock(c.Blobs() + 1); return err },
		"content":         func() error { _, err := c.NewReader().Append(nil, c.Blobs(), 0, 1); return err },
		"lines":           func() error { _, err := c.NewReader().LinesBefore(c.Blobs(), 1); return err },
	} {
		if err := read(); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if got, err := d.AppendNames(nil, d.NamesLen(), 9); err != nil || len(got) != 0 {
		t.Errorf("names behind the end: %q %v", got, err)
	}
}

// TestRepoAllocatesItsStrings: a search of many repos reads the records of
// those that it shows, and each allocates only its contents. How often a map does is up to Go, so
// the bound is twice of what is measured.
func TestRepoAllocatesItsStrings(t *testing.T) {
	_, d, err := open(small().write(t))
	if err != nil {
		t.Fatal(err)
	}
	for i := range d.Repos() {
		r, err := d.Repo(i)
		if err != nil {
			t.Fatal(err)
		}
		want := 0
		for _, s := range []string{r.Name, r.URL} {
			want += min(len(s), 1)
		}
		for _, b := range r.Branches {
			want += min(len(b.Name), 1) + min(len(b.Commit), 1)
		}
		want += min(len(r.Branches), 1)
		if len(r.Meta) > 0 {
			want += 2 + 2*len(r.Meta) // the map and its first group
		}
		if got := testing.AllocsPerRun(20, func() { _, _ = d.Repo(i) }); int(got) > 2*want {
			t.Errorf("reading %+v takes %v allocations, usually %d", r, got, want)
		}
		if got := testing.AllocsPerRun(20, func() { _, _ = d.RepoName(i) }); got > 2 { // measured: 1
			t.Errorf("reading the name %q takes %v allocations", r.Name, got)
		}
	}
}

// small is a shard with some of everything.
func small() *model {
	text := func(n int) (b []byte) {
		for i := 0; len(b) < n; i++ {
			b = fmt.Appendf(b, "func f%d() { return }\n", i)
		}
		return b[:n]
	}
	oid := func(c byte, n int) []byte { return bytes.Repeat([]byte{c}, n) }
	return &model{
		blobs: [][]byte{text(300), text(9000), nil, []byte("shared\n"), nil},
		oids:  [][]byte{oid('a', 20), oid('b', 20), oid('c', 20), oid('d', 20), oid('e', 32)},
		repos: []modelRepo{
			{repo: Repo{Name: "example.org/empty", Branches: []Branch{{"main", "00"}}}},
			{repo: Repo{
				Name: "example.org/one", URL: "https://example.org/one", Generation: 3, Public: true, Meta: map[string]string{"team": "red"},
				Branches: []Branch{{"main", "1234"}, {"next", "5678"}},
			}, docs: []Document{
				{Path: []byte("README"), Blob: 0, Branches: []uint32{0, 1}, OID: oid('a', 20)},
				{Path: []byte("main.go"), Blob: 1, Branches: []uint32{0}, Language: "Go", OID: oid('b', 20)},
				{Path: []byte("main.go"), Blob: 0, Branches: []uint32{1}, Language: "Go", OID: oid('a', 20)},
				{Path: []byte("movie"), Blob: 2, Branches: []uint32{0, 1}, Skip: TooLarge, Size: 1 << 33, OID: oid('c', 20)},
				{Path: []byte("x/a"), Blob: 3, Branches: []uint32{1}, Language: "C", OID: oid('d', 20)},
				{Path: []byte("x/b"), Blob: 3, Branches: []uint32{1}, Language: "C", OID: oid('d', 20)},
			}},
			{repo: Repo{Name: "example.org/two", Branches: []Branch{{"main", "9a"}}, Fork: true, Rank: 70}, docs: []Document{
				{Path: []byte("\xff\n"), Blob: 4, Branches: []uint32{0}, Skip: Binary, Size: 7, OID: oid('e', 32)},
			}},
		},
	}
}
