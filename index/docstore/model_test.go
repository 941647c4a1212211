package docstore

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"

	"pgregory.net/rapid"

	"github.com/trawl-search/trawl/index/format"
)

// testingT has the methods common to *testing.T, *testing.F and *rapid.T.
type testingT interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// model is the expected content of a shard.
type model struct {
	repos []modelRepo
	blobs [][]byte
	oids  [][]byte // of each blob
}

type modelRepo struct {
	repo Repo
	docs []Document
}

// docs returns all documents with the number of their repo.
func (m *model) docs() (docs []Document, repos []int) {
	for i, r := range m.repos {
		for _, d := range r.docs {
			docs, repos = append(docs, d), append(repos, i)
		}
	}
	return docs, repos
}

// size is what Size must return for a document.
func (m *model) size(d *Document) uint64 {
	if d.Skip != NotSkipped {
		return d.Size
	}
	return uint64(len(m.blobs[d.Blob]))
}

// drawBlob draws contents of all shapes: empty, text, and noise, with sizes at and around the
// borders of superblocks.
func drawBlob(t *rapid.T) []byte {
	n := rapid.OneOf(
		rapid.IntRange(0, 50),
		rapid.SampledFrom([]int{0, 1, SuperblockSize - 1, SuperblockSize, SuperblockSize + 1, 3 * SuperblockSize}),
		rapid.IntRange(0, 20_000),
	).Draw(t, "size")
	switch seed := rapid.SliceOfN(rapid.Byte(), 1, 40).Draw(t, "seed"); rapid.IntRange(0, 3).Draw(t, "kind") {
	case 0:
		return bytes.Repeat(seed, n/len(seed)+1)[:n]
	case 1: // noise: hashes of hashes
		var noise []byte
		for len(noise) < n {
			sum := sha256.Sum256(seed)
			seed = sum[:]
			noise = append(noise, seed...)
		}
		return noise[:n]
	default:
		var text []byte
		for i := 0; len(text) < n; i++ {
			text = fmt.Appendf(text, "line %d of %x\n", i, seed[:i%len(seed)])
		}
		return text[:n]
	}
}

// drawModel draws a shard.
func drawModel(t *rapid.T) *model {
	m := &model{}
	names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-c]{1,3}/[a-z]{0,4}`), 0, 4, rapid.ID).Draw(t, "repos")
	slices.Sort(names)
	languages := rapid.SliceOfN(rapid.StringMatching(`|Go|C|[A-Z][a-z]{0,9}`), 1, 4).Draw(t, "languages")
	for _, name := range names {
		r := modelRepo{repo: drawRepo(t, name)}
		oidLength := rapid.SampledFrom([]int{20, 20, 32, 0}).Draw(t, "oid")
		paths := rapid.SliceOfN(drawPath(), 0, 12).Draw(t, "paths")
		slices.SortFunc(paths, bytes.Compare)
		for _, path := range paths {
			d := m.drawDocument(t, &r.repo, languages, oidLength)
			d.Path = path
			if n := len(r.docs); n == 0 || !bytes.Equal(path, r.docs[n-1].Path) || d.Blob != r.docs[n-1].Blob {
				r.docs = append(r.docs, d) // the same document twice is an error
			}
		}
		m.repos = append(m.repos, r)
	}
	return m
}

func drawRepo(t *rapid.T, name string) Repo {
	r := Repo{
		Name: name, URL: rapid.String().Draw(t, "url"), Generation: rapid.Uint64().Draw(t, "generation"),
		Archived: rapid.Bool().Draw(t, "archived"), Fork: rapid.Bool().Draw(t, "fork"), Public: rapid.Bool().Draw(t, "public"),
		Meta: rapid.MapOfN(rapid.String(), rapid.String(), 0, 3).Draw(t, "meta"), Rank: rapid.Uint8Range(0, MaxRank).Draw(t, "rank"),
	}
	for i := range rapid.IntRange(1, 5).Draw(t, "branches") {
		r.Branches = append(r.Branches, Branch{Name: fmt.Sprint("branch", i), Commit: rapid.StringMatching(`[0-9a-f]{40}`).Draw(t, "commit")})
	}
	return r
}

func drawPath() *rapid.Generator[[]byte] {
	return rapid.OneOf(
		rapid.Map(rapid.StringMatching(`(src|lib)/[a-d]{1,3}\.go`), func(s string) []byte { return []byte(s) }),
		rapid.SliceOfN(rapid.Byte(), 1, 20),
		rapid.Just(bytes.Repeat([]byte("deep/"), SuperblockSize/2)),
	)
}

// drawDocument draws a document whose blob is new or, sometimes, that of an earlier one.
func (m *model) drawDocument(t *rapid.T, r *Repo, languages []string, oidLength int) Document {
	d := Document{Language: rapid.SampledFrom(languages).Draw(t, "language")}
	for b := range r.Branches {
		if rapid.Bool().Draw(t, "on") || len(d.Branches) == 0 && b == len(r.Branches)-1 {
			d.Branches = append(d.Branches, uint32(b))
		}
	}
	d.Blob = uint32(len(m.blobs))
	if n := len(m.blobs); n > 0 && rapid.IntRange(0, 3).Draw(t, "again") == 0 {
		again := rapid.IntRange(0, n-1).Draw(t, "blob")
		if oid := m.oids[again]; len(oid) == oidLength {
			d.Blob, d.OID = uint32(again), oid
			return d
		}
	}
	var blob []byte
	if rapid.IntRange(0, 4).Draw(t, "skip") == 0 {
		d.Skip = SkipReason(rapid.IntRange(1, int(TooDeep)).Draw(t, "reason"))
		d.Size = rapid.Uint64().Draw(t, "size")
	} else {
		blob = drawBlob(t)
	}
	sum := sha256.Sum256(fmt.Append(nil, len(m.blobs)))
	d.OID = sum[:oidLength]
	m.blobs, m.oids = append(m.blobs, blob), append(m.oids, d.OID)
	return d
}

// write writes the shard.
func (m *model) write(t testingT) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := format.NewWriter(&buf)
	content, err := NewContentWriter(w, Fresh, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, blob := range m.blobs {
		if _, err := content.Add(blob); err != nil {
			t.Fatal(err)
		}
	}
	docs := NewDocsWriter()
	for _, r := range m.repos {
		_ = docs.AddRepo(r.repo) // errors stay
		for _, d := range r.docs {
			_ = docs.AddDocument(d)
		}
	}
	if err := cmp.Or(content.Close(), docs.Close(w), w.Close()); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}
