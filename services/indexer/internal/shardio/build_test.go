package shardio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/search"
	"github.com/trawl-search/trawl/internal/bucket"
)

// listed is a Source of given documents, which may end in an error.
type listed struct {
	docs []build.Document
	err  error
}

func (l *listed) Branches() []docstore.Branch { return []docstore.Branch{{Name: "main"}} }
func (l *listed) Total() int                  { return len(l.docs) }
func (l *listed) Omitted() int                { return 0 }
func (l *listed) Close() error                { return nil }

func (l *listed) Documents(context.Context) iter.Seq2[*build.Document, error] {
	return func(yield func(*build.Document, error) bool) {
		for i := range l.docs {
			if !yield(&l.docs[i], nil) {
				return
			}
		}
		if l.err != nil {
			yield(nil, l.err)
		}
	}
}

func documents(n int) []build.Document {
	var docs []build.Document
	for i := range n {
		docs = append(docs, build.Document{
			Path: fmt.Appendf(nil, "f%03d", i), Content: fmt.Appendf(nil, "%d %s", i, strings.Repeat("x", 50)), Branches: []uint32{0},
		})
	}
	docs[0].Content, docs[0].Skip = nil, docstore.Submodule
	return docs
}

func newBuilder(t *testing.T) (*Builder, *bucket.Memory) {
	b := bucket.NewMemory(1 << 30)
	return &Builder{Bucket: b, Fence: 7, TempDir: t.TempDir(), Options: build.Options{MaxSourceBytes: 100}}, b
}

var testRepo = docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main"}}}

func left(t *testing.T, dir string) int {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

func TestBuild(t *testing.T) {
	b, store := newBuilder(t)
	var last uint64
	b.Progress = func(done uint64) { last = done }
	result, err := b.Build(t.Context(), testRepo, &listed{docs: documents(11)})
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Shards) != 5 || result.Documents != 11 || result.Skipped != 1 || last != 11 {
		t.Errorf("result %+v, progress %d", result, last)
	}
	total := 0
	for _, ref := range result.Shards {
		r, info, err := store.Get(t.Context(), ref.GetKey())
		if err != nil || info.Size != int64(ref.GetSizeBytes()) {
			t.Fatalf("%v: %v, %v", ref, info, err)
		}
		name := filepath.Join(t.TempDir(), "s")
		file, _ := os.Create(name)
		io.Copy(file, r)
		file.Close()
		s, err := search.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Verify(t.Context()); err != nil {
			t.Error(err)
		}
		total += s.Documents()
		s.Close()
	}
	if total != 11 || left(t, b.TempDir) != 0 {
		t.Errorf("%d documents in shards, %d temporary files", total, left(t, b.TempDir))
	}
	again, err := b.Build(t.Context(), testRepo, &listed{docs: documents(11)})
	if err != nil || again.Shards[0].GetKey() != result.Shards[0].GetKey() {
		t.Errorf("the same documents make another shard: %v, %v", again.Shards, err)
	}
	b.Fence++
	other, err := b.Build(t.Context(), testRepo, &listed{docs: documents(11)})
	if err != nil || !bytes.Equal(other.Shards[0].GetDigest(), result.Shards[0].GetDigest()) || other.Shards[0].GetKey() == result.Shards[0].GetKey() {
		t.Errorf("two jobs share an object: %v, %v", other.Shards, err)
	}
}

func TestBuildFailures(t *testing.T) {
	gone := errors.New("git died")
	full := bucket.NewMemory(10) // holds no shard
	for name, c := range map[string]struct {
		change func(*Builder)
		src    *listed
		check  func(error) bool
	}{
		"source":    {func(*Builder) {}, &listed{documents(5), gone}, func(err error) bool { return errors.Is(err, gone) }},
		"bucket":    {func(b *Builder) { b.Bucket = full }, &listed{documents(5), nil}, isStore},
		"disk":      {func(b *Builder) { b.TempDir += "/none" }, &listed{documents(5), nil}, isStore},
		"documents": {func(*Builder) {}, &listed{append(documents(2), documents(2)...), nil}, isBuild},
	} {
		b, _ := newBuilder(t)
		dir := b.TempDir
		c.change(b)
		if _, err := b.Build(t.Context(), testRepo, c.src); err == nil || !c.check(err) {
			t.Errorf("%s: got %v (%T)", name, err, err)
		}
		if left(t, dir) != 0 {
			t.Errorf("%s: temporary files stay", name)
		}
	}
}

func isStore(err error) bool { _, ok := errors.AsType[*StoreError](err); return ok }
func isBuild(err error) bool { _, ok := errors.AsType[*BuildError](err); return ok }

// TestFullDisk writes to the device that is always full.
func TestFullDisk(t *testing.T) {
	file, err := os.OpenFile("/dev/full", os.O_WRONLY, 0)
	if err != nil {
		t.Skip("no device that is always full")
	}
	defer file.Close()
	s := &localWriter{w: file}
	if _, err := s.Write([]byte("x")); err == nil {
		t.Fatal("it took a byte")
	}
	w := writer{local: s}
	if err := w.buildError(errors.New("finish shard: no space")); !isStore(err) {
		t.Errorf("got %v (%T)", err, err)
	}
}

// TestPack: the roots of a pack count what is theirs, and equal contents of several repos are stored once.
func TestPack(t *testing.T) {
	b, stored := newBuilder(t)
	doc := func(path, content, language string) build.Document {
		return build.Document{Path: []byte(path), Content: []byte(content), Language: language, Branches: []uint32{0}, OID: fmt.Appendf(nil, "%020s", content)}
	}
	skipped := build.Document{Path: []byte("z"), Skip: docstore.Binary, Size: 5, Branches: []uint32{0}, OID: []byte("01234567890123456789")}
	main := []docstore.Branch{{Name: "main"}}
	refs, err := b.Pack(t.Context(), []Member{
		{docstore.Repo{Name: "a", Branches: main}, []build.Document{doc("x", "same", "Go"), doc("y", "same", "Go"), skipped}},
		{docstore.Repo{Name: "b", Branches: main}, nil},
		{docstore.Repo{Name: "c", Branches: main}, []build.Document{doc("x", "same", "Go"), doc("y", "other", "C")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i, r := range refs {
		if r.GetRepoNumber() != uint32(i) {
			t.Errorf("repo %d has the number %d", i, r.GetRepoNumber())
		}
		if r.GetKey() != refs[0].GetKey() || r.GetRepos() != 3 || r.GetDocuments() != 5 || r.GetContentBytes() != 9 {
			t.Errorf("shard %v", r)
		}
		got = append(got, fmt.Sprint(r.GetLiveDocuments(), r.GetLiveContentBytes(), r.GetLiveSkippedDocuments(), r.GetLanguages()))
	}
	if want := "[3 4 1 [Go] 0 0 0 [] 2 9 0 [C Go]]"; fmt.Sprint(got) != want {
		t.Errorf("counted are %v, want %s", got, want)
	}
	objects := 0
	for range stored.List(t.Context(), "") {
		objects++
	}
	if objects != 1 {
		t.Errorf("%d objects", objects)
	}
	if left, err := os.ReadDir(b.TempDir); err != nil || len(left) > 0 {
		t.Errorf("temporary files %v, %v", left, err)
	}
	if _, err := b.Pack(t.Context(), []Member{{Repo: docstore.Repo{Name: "b"}}, {Repo: docstore.Repo{Name: "a"}}}); !isBuild(err) {
		t.Errorf("repos out of order: %v", err)
	}
}
