package merge_test

import (
	"bytes"
	"cmp"
	"crypto/sha1"
	"fmt"
	"slices"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/merge"
)

// fataler has the methods common to testing.TB and rapid.T.
type fataler interface {
	Helper()
	Fatalf(format string, args ...any)
}

// document is a document of the model, with its branches by name.
type document struct {
	path, language string
	content        []byte
	branches       []string
	skip           docstore.SkipReason
	size           uint64
	oid            []byte
}

// repository is a repo of the model, with its documents in order.
type repository struct {
	record    docstore.Repo
	documents []document
}

// modelOf returns the repos of a corpus, in order of name.
func modelOf(c *indextest.Corpus) []repository {
	var repos []repository
	for _, r := range c.Repos {
		m := repository{record: docstore.Repo{
			Name: r.Name, URL: "https://" + r.Name, Archived: r.Archived, Fork: r.Fork, Public: r.Public, Meta: r.Meta, Rank: r.Rank, Generation: uint64(len(r.Name)),
		}}
		for i, name := range r.Branches {
			m.record.Branches = append(m.record.Branches, docstore.Branch{Name: name, Commit: fmt.Sprintf("%040d", i)})
		}
		for i, d := range r.Documents {
			have := document{path: d.Path, language: d.Language, content: d.Content, branches: d.Branches, oid: gitID(d.Content)}
			if d.Skipped {
				have.skip, have.size, have.oid = docstore.Binary, uint64(i+1), gitID([]byte{0, byte(i), byte(i >> 8)})
			}
			m.documents = append(m.documents, have)
		}
		m.sort()
		repos = append(repos, m)
	}
	return repos
}

func (r *repository) sort() {
	slices.SortFunc(r.documents, func(a, b document) int {
		return cmp.Or(cmp.Compare(a.path, b.path), bytes.Compare(a.oid, b.oid))
	})
}

// shardOf builds a shard from the repos.
func shardOf(t fataler, repos []repository, opts build.Options) ([]byte, build.Result) {
	t.Helper()
	var buf bytes.Buffer
	b, err := build.NewBuilder(&buf, opts)
	if err != nil {
		t.Fatalf("new builder: %v", err)
	}
	for _, r := range repos {
		if err := b.AddRepo(r.record); err != nil {
			t.Fatalf("%v", err)
		}
		for _, d := range r.documents {
			if err := b.Add(d.of(&r.record)); err != nil {
				t.Fatalf("%v", err)
			}
		}
	}
	res, err := b.Close()
	if err != nil {
		t.Fatalf("close builder: %v", err)
	}
	return buf.Bytes(), res
}

// of returns the document with the ordinals of its branches.
func (d *document) of(r *docstore.Repo) build.Document {
	doc := build.Document{Path: []byte(d.path), Content: d.content, Language: d.language, Skip: d.skip, Size: d.size, OID: d.oid}
	for _, name := range d.branches {
		doc.Branches = append(doc.Branches, uint32(slices.IndexFunc(r.Branches, func(b docstore.Branch) bool { return b.Name == name })))
	}
	slices.Sort(doc.Branches)
	return doc
}

func gitID(content []byte) []byte {
	id := sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(content), content))
	return id[:]
}

func open(t fataler, name string, data []byte) *format.File {
	t.Helper()
	f, err := format.NewFile(name, data)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	return f
}

// merged merges inputs, which must be sound.
func merged(t fataler, inputs []merge.Input, opts merge.Options) ([]byte, build.Result) {
	t.Helper()
	var buf bytes.Buffer
	res, err := merge.Shards(context(), &buf, inputs, opts)
	if err != nil {
		t.Fatalf("merge: %v", err)
	}
	return buf.Bytes(), res
}

// checkSame compares two shards section by section.
func checkSame(t fataler, got, want []byte, gotResult, wantResult build.Result) {
	t.Helper()
	if fmt.Sprintf("%+v", gotResult) != fmt.Sprintf("%+v", wantResult) {
		t.Fatalf("merging results in %+v,\nbuilding in %+v", gotResult, wantResult)
	}
	if bytes.Equal(got, want) {
		return
	}
	a, b := open(t, "merged", got), open(t, "built", want)
	for i, s := range a.Sections() {
		o := b.Sections()[i]
		x, y := got[s.Offset:s.Offset+s.Length], want[o.Offset:o.Offset+o.Length]
		if !bytes.Equal(x, y) {
			t.Fatalf("section %s differs: %d bytes %.80x, should be %d bytes %.80x", s.Tag, len(x), x, len(y), y)
		}
	}
	t.Fatalf("shards differ outside of their sections")
}
