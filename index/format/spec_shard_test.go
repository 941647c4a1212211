package format_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/format"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/postings"
)

// shard is a real shard, and what went into it.
type shard struct {
	data     []byte
	sections map[string][]byte
	blobs    [][]byte
	paths    []byte
	content  indexed
	names    indexed
}

// indexed is what an n-gram index was built from: the masks of each n-gram's
// postings by superblock.
type indexed struct {
	superblocks uint32
	masks       map[uint64]map[uint32]uint8
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	for _, err := range errs {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// sample writes a shard with some of everything: contents of more than 128
// superblocks, so that posting lists have several blocks of all codings.
func sample(t *testing.T) *shard {
	t.Helper()
	s := &shard{sections: map[string][]byte{}}
	var buf bytes.Buffer
	w := format.NewWriter(&buf)
	content, err := docstore.NewContentWriter(w, docstore.Fresh, 1)
	must(t, err)
	docs, blobs := docstore.NewDocsWriter(), texts()
	var names []byte
	next := 0
	add := func(path string, blob int, doc docstore.Document) {
		doc.Path, doc.Blob, doc.OID = []byte(path), uint32(blob), bytes.Repeat([]byte{byte(blob + 1)}, 20)
		if blob == next {
			next++
			_, err := content.Add(blobs[blob])
			must(t, err)
		}
		must(t, docs.AddDocument(doc))
		names = append(names, path...)
	}
	main, both := []uint32{0}, []uint32{0, 2}
	must(t, docs.AddRepo(docstore.Repo{Name: "a", URL: "https://a", Branches: make([]docstore.Branch, 3), Fork: true, Meta: map[string]string{"k": "v"}}))
	for i := range blobs {
		add(fmt.Sprintf("dir/file%03d.go", i), i, docstore.Document{Branches: both, Language: "Go"})
	}
	add("vendor/copy.go", 3, docstore.Document{Branches: main, Language: "C"})
	must(t, docs.AddRepo(docstore.Repo{Name: "b", Branches: make([]docstore.Branch, 1), Generation: 300}))
	blobs = append(blobs, nil)
	add("video", len(blobs)-1, docstore.Document{Branches: main, Skip: docstore.Binary, Size: 1 << 40})
	must(t, content.Close(), docs.Close(w))
	s.blobs, s.paths = blobs, names

	s.content = index(t, w, postings.ContentTags, 0, blobs)
	// The real names are too few for a wide gap between superblocks, which has
	// a coding of its own: they are spread.
	s.names = index(t, w, postings.NameTags, 9, slices.Collect(slices.Chunk(names, len(names)/10+1)))
	must(t, w.Close())
	s.data = buf.Bytes()
	f, err := format.NewFile("test", s.data)
	must(t, err)
	for _, info := range f.Sections() {
		section, _ := f.Section(info.Tag)
		s.sections[info.Tag.String()], err = section.All()
		must(t, err)
	}
	return s
}

// texts are made of words of very different frequency, the same in every run.
func texts() [][]byte {
	rng := rand.New(rand.NewPCG(1, 2))
	blobs := [][]byte{nil, []byte("short\n")}
	for len(blobs) < 60 {
		var text []byte
		for len(text) < 20_000 {
			word := int(rng.ExpFloat64() * 40)
			text = fmt.Appendf(text, "Word%c%c%d é ", 'a'+word%26, 'a'+word/7%26, word/300)
			if word%9 == 0 {
				text = append(text, '\n')
			}
		}
		if len(blobs) < 35 {
			text = append(text, "zebra crossing in half of them"...)
		}
		blobs = append(blobs, text)
	}
	return blobs
}

// index writes the index of texts, with gap superblocks left out after each, and a
// wide gap before the last but one.
func index(t *testing.T, w *format.Writer, tags postings.Tags, gap uint32, texts [][]byte) indexed {
	t.Helper()
	in := indexed{masks: map[uint64]map[uint32]uint8{}}
	b, e := postings.NewBuilder(postings.Config{}), ngram.NewExtractor()
	for i, text := range texts {
		if i == len(texts)-2 {
			in.superblocks += 200 * gap
		}
		e.Extract(text, func(superblock uint32, ids []ngram.ID, masks []uint8) {
			superblock += in.superblocks
			must(t, b.Add(superblock, ids, masks))
			for i, id := range ids {
				if in.masks[uint64(id)] == nil {
					in.masks[uint64(id)] = map[uint32]uint8{}
				}
				in.masks[uint64(id)][superblock] = masks[i]
			}
		})
		in.superblocks += uint32((len(text)+docstore.SuperblockSize-1)/docstore.SuperblockSize) + gap
	}
	must(t, b.Write(w, tags, in.superblocks))
	return in
}
