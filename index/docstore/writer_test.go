package docstore

import (
	"bytes"
	"errors"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

func TestDocsWriterRefuses(t *testing.T) {
	good := func() Document {
		return Document{Path: []byte("b"), Blob: 1, Branches: []uint32{0}, OID: bytes.Repeat([]byte{2}, 20)}
	}
	for name, change := range map[string]func(*Document){
		"earlier path":      func(d *Document) { d.Path = []byte("A") },
		"same again":        func(d *Document) { d.Path, d.Blob = []byte("a"), 0; d.OID = bytes.Repeat([]byte{1}, 20) },
		"no path":           func(d *Document) { d.Path = nil },
		"long path":         func(d *Document) { d.Path = bytes.Repeat([]byte("b"), MaxPath+1) },
		"blob after next":   func(d *Document) { d.Blob = 2 },
		"no branch":         func(d *Document) { d.Branches = nil },
		"unknown branch":    func(d *Document) { d.Branches = []uint32{2} },
		"branches descend":  func(d *Document) { d.Branches = []uint32{1, 0} },
		"branch twice":      func(d *Document) { d.Branches = []uint32{1, 1} },
		"odd object id":     func(d *Document) { d.OID = []byte{1} },
		"longer object id":  func(d *Document) { d.OID = make([]byte, 32) },
		"no object id":      func(d *Document) { d.OID = nil },
		"another object id": func(d *Document) { d.Blob = 0 },
	} {
		t.Run(name, func(t *testing.T) {
			w := NewDocsWriter()
			_ = w.AddRepo(Repo{Name: "r", Branches: []Branch{{"main", ""}, {"next", ""}}})
			first := good()
			first.Path, first.Blob, first.OID = []byte("a"), 0, bytes.Repeat([]byte{1}, 20)
			if err := w.AddDocument(first); err != nil {
				t.Fatal(err)
			}
			bad := good()
			change(&bad)
			if err := w.AddDocument(bad); err == nil || !strings.Contains(err.Error(), `repo "r"`) {
				t.Errorf("AddDocument: %v", err)
			}
			if err := w.Close(format.NewWriter(io.Discard)); err == nil {
				t.Error("the error does not stay")
			}
		})
	}
	w := NewDocsWriter()
	if err := w.AddDocument(good()); err == nil {
		t.Error("a document of no repo")
	}
	for _, names := range [][2]string{{"b", "a"}, {"a", "a"}} {
		w := NewDocsWriter()
		_ = w.AddRepo(Repo{Name: names[0]})
		if err := w.AddRepo(Repo{Name: names[1]}); err == nil {
			t.Errorf("repo %q after %q", names[1], names[0])
		}
	}
	w = NewDocsWriter()
	_ = w.AddRepo(Repo{Name: "r", URL: strings.Repeat("x", maxRepoRecord)})
	if err := w.Close(format.NewWriter(io.Discard)); err == nil {
		t.Error("a huge repo record")
	}
}

// full is a disk with room for some bytes.
type full struct{ left int }

var errFull = errors.New("disk full")

func (f *full) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, errFull
	}
	return len(p), nil
}

func TestFullDisk(t *testing.T) {
	m := small()
	size := len(m.write(t))
	for room := 0; room < size; room += 7 {
		w := format.NewWriter(&full{left: room})
		content, err := NewContentWriter(w, Fresh, 1)
		if err == nil {
			for _, blob := range m.blobs {
				_, _ = content.Add(blob) // errors stay
			}
			docs := NewDocsWriter()
			for _, r := range m.repos {
				_ = docs.AddRepo(r.repo)
				for _, d := range r.docs {
					_ = docs.AddDocument(d)
				}
			}
			err = errors.Join(content.Close(), docs.Close(w), w.Close())
		}
		if !errors.Is(err, errFull) {
			t.Fatalf("with room for %d of %d bytes: %v", room, size, err)
		}
	}
}

// TestSkipReasonsAreThoseOfTheProto reads the numbers from the text of the
// proto, since the engine does not import generated code.
func TestSkipReasonsAreThoseOfTheProto(t *testing.T) {
	text, err := os.ReadFile("../../proto/trawl/search/v1/search.proto")
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]SkipReason{
		"UNSPECIFIED": NotSkipped, "TOO_LARGE": TooLarge, "BINARY": Binary,
		"SUBMODULE": Submodule, "UNREADABLE": Unreadable, "TOO_DEEP": TooDeep,
	}
	found := regexp.MustCompile(`SKIP_REASON_(\w+) = (\d+);`).FindAllStringSubmatch(string(text), -1)
	if len(found) != len(names) {
		t.Errorf("%d reasons in the proto, %d here", len(found), len(names))
	}
	for _, f := range found {
		reason, ok := names[f[1]]
		if n, _ := strconv.Atoi(f[2]); !ok || int(reason) != n {
			t.Errorf("%s is %s in the proto, %d here", f[1], f[2], reason)
		}
		if strings.HasPrefix(reason.String(), "unknown") {
			t.Errorf("no words for %s", f[1])
		}
	}
	if got := SkipReason(200).String(); got != "unknown reason 200" {
		t.Errorf("reason 200 is %q", got)
	}
}

func TestSizeOfDocuments(t *testing.T) {
	const docs = 20_000
	w := NewDocsWriter()
	_ = w.AddRepo(Repo{Name: "r", Branches: []Branch{{"main", ""}}})
	for i := range docs {
		path := []byte("src/package" + strconv.Itoa(10_000+i/30) + "/some_file_" + strconv.Itoa(10+i%30) + ".go")
		if err := w.AddDocument(Document{Path: path, Blob: uint32(i), Branches: []uint32{0}, Language: "Go"}); err != nil {
			t.Fatal(err)
		}
	}
	out := format.NewWriter(io.Discard)
	if err := w.Close(out); err != nil {
		t.Fatal(err)
	}
	if perDoc := float64(out.Size()) / docs; perDoc > 12 {
		t.Errorf("%.1f bytes for a document without its object id", perDoc)
	} else {
		t.Logf("%.1f bytes for a document without its object id", perDoc)
	}
}
