package build_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"

	"github.com/trawl-search/trawl/index/build"
	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
)

var repo = docstore.Repo{Name: "r", Branches: []docstore.Branch{{Name: "main", Commit: "c0ffee"}}}

// write builds a shard of documents of one repo.
func write(w io.Writer, opts build.Options, docs ...build.Document) (build.Result, error) {
	b, err := build.NewBuilder(w, opts)
	if err != nil {
		return build.Result{}, err
	}
	errs := []error{b.AddRepo(repo)}
	for _, d := range docs {
		d.Branches = []uint32{0}
		errs = append(errs, b.Add(d))
	}
	res, err := b.Close()
	return res, errors.Join(append(errs, err)...)
}

func doc(path, content string) build.Document {
	return build.Document{Path: []byte(path), Content: []byte(content)}
}

// open reads back the documents of a shard.
func open(t *testing.T, data []byte) *docstore.Docs {
	t.Helper()
	f, err := format.NewFile("test.trawl", data)
	if err != nil {
		t.Fatal(err)
	}
	docs, err := docstore.OpenDocs(f)
	if err != nil {
		t.Fatal(err)
	}
	return docs
}

func TestSameInputSameShard(t *testing.T) {
	var first, second bytes.Buffer
	docs := []build.Document{doc("a", "one\n"), doc("b", "two\n"), doc("c", "one\n")}
	res, err := write(&first, build.Options{}, docs...)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := write(&second, build.Options{}, docs...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("two builds of the same documents differ")
	}
	if res.SHA256 != sha256.Sum256(first.Bytes()) || res.Size != int64(first.Len()) {
		t.Errorf("result says %d bytes, %x", res.Size, res.SHA256)
	}
	if res.Documents != 3 || res.Blobs != 2 || res.ContentBytes != 8 {
		t.Errorf("identical contents are not stored once: %+v", res)
	}
}

// TestProcessorsDoNotShow builds the same shard on one, two and more processors. It has many
// contents, some with opaque superblocks, and some larger than a batch.
func TestProcessorsDoNotShow(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	var docs []build.Document
	for i := range 60 {
		var text bytes.Buffer
		for size := random.IntN(60_000) + i/59*1_000_000; text.Len() < size; {
			switch random.IntN(200) {
			case 0:
				text.Write(bytes.Repeat([]byte{'x'}, random.IntN(5_000)))
			case 1:
				text.WriteString("\u212A long \u017F")
			default:
				fmt.Fprintf(&text, "word%d.", random.IntN(3_000))
			}
		}
		docs = append(docs, doc(fmt.Sprintf("%03d", i), text.String()))
	}
	var want []byte
	for _, processors := range []int{1, 2, 3, 4} {
		var got bytes.Buffer
		if _, err := write(&got, build.Options{Processors: processors}, docs...); err != nil {
			t.Fatal(err)
		}
		if want == nil {
			want = got.Bytes()
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("with %d processors another shard is written", processors)
		}
	}
}

func TestWhatIsFoundByNameOnly(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var noise bytes.Buffer
	for noise.Len() < 60_000 {
		fmt.Fprintf(&noise, "%c", ' '+rune(random.IntN(95)))
	}
	opts := build.Options{MaxFileSize: 100_000}
	var buf bytes.Buffer
	res, err := write(&buf, opts,
		doc("binary", "a\x00b"),
		doc("empty", ""),
		doc("large", string(bytes.Repeat([]byte("x"), 100_001))),
		doc("noise", noise.String()),
		build.Document{Path: []byte("submodule"), Skip: docstore.Submodule, Size: 7},
	)
	if err != nil {
		t.Fatal(err)
	}
	want := []docstore.SkipReason{docstore.Binary, docstore.NotSkipped, docstore.TooLarge, docstore.NotSkipped, docstore.Submodule}
	sizes := []uint64{3, 0, 100_001, uint64(noise.Len()), 7}
	docs := open(t, buf.Bytes())
	for i := range want {
		skip, err := docs.Skip(uint32(i))
		size, sizeErr := docs.Size(uint32(i))
		if errors.Join(err, sizeErr) != nil || skip != want[i] || size != sizes[i] {
			t.Errorf("document %d: skip %v, size %d, want %v, %d (%v, %v)", i, skip, size, want[i], sizes[i], err, sizeErr)
		}
	}
	if res.Skipped != 3 || res.Documents != 5 {
		t.Errorf("result %+v, want 3 of 5 documents skipped", res)
	}
}

func TestOrderIsRequired(t *testing.T) {
	for name, docs := range map[string][]build.Document{
		"paths":        {doc("b", "1"), doc("a", "2")},
		"same":         {doc("a", "1"), doc("a", "1")},
		"object ids":   {{Path: []byte("a"), OID: bytes.Repeat([]byte{2}, 20)}, {Path: []byte("a"), OID: bytes.Repeat([]byte{1}, 20)}},
		"byte order":   {doc("\xff", "1"), doc("a", "2")},
		"prefix first": {doc("a/b", "1"), doc("a", "2")},
	} {
		if _, err := write(io.Discard, build.Options{}, docs...); !errors.Is(err, build.ErrOrder) {
			t.Errorf("%s: %v, want ErrOrder", name, err)
		}
	}
}

func TestFullSaysWhenToStop(t *testing.T) {
	b, err := build.NewBuilder(io.Discard, build.Options{MaxSourceBytes: 10})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.AddRepo(repo); err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, false, true} {
		d := doc(fmt.Sprint(i), fmt.Sprint("four", i))
		d.Branches = []uint32{0}
		if i == 1 {
			d.Content = []byte("four0") // stored once
		}
		if err := b.Add(d); err != nil {
			t.Fatal(err)
		}
		if b.Full() != want {
			t.Errorf("after document %d Full = %v", i, b.Full())
		}
	}
	if _, err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Close(); err == nil {
		t.Error("a second Close succeeded")
	}
	if err := b.AddRepo(docstore.Repo{Name: "s"}); err == nil {
		t.Error("AddRepo after Close succeeded")
	}
}

var errDisk = errors.New("disk full")

// fullDisk fails after that many bytes.
type fullDisk int

func (d *fullDisk) Write(p []byte) (int, error) {
	if *d -= fullDisk(len(p)); *d < 0 {
		return 0, errDisk
	}
	return len(p), nil
}

// TestFullDisk runs out of space at every point: the builder returns an error, and the next
// builder, which reuses its memory, works.
func TestFullDisk(t *testing.T) {
	docs := []build.Document{doc("a", "hello world\n"), doc("b", string(bytes.Repeat([]byte("some text "), 1000)))}
	var sound bytes.Buffer
	if _, err := write(&sound, build.Options{}, docs...); err != nil {
		t.Fatal(err)
	}
	for n := 0; n < sound.Len(); n += 13 {
		disk := fullDisk(n)
		if _, err := write(&disk, build.Options{}, docs...); !errors.Is(err, errDisk) {
			t.Fatalf("with room for %d of %d bytes: %v", n, sound.Len(), err)
		}
	}
	var after bytes.Buffer
	if _, err := write(&after, build.Options{}, docs...); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(after.Bytes(), sound.Bytes()) {
		t.Error("a shard built after failed ones differs")
	}
}
