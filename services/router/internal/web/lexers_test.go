package web

import (
	"archive/zip"
	"bytes"
	"compress/flate"
	"encoding/xml"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/chroma/v2"
	chromalexers "github.com/alecthomas/chroma/v2/lexers"

	"github.com/trawl-search/trawl/internal/testrun"
)

// TestChromaLexers compares the lexers with those of chroma's module.
func TestChromaLexers(t *testing.T) {
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/alecthomas/chroma/v2").Output()
	if err != nil {
		t.Fatal(err)
	}
	paths, err := filepath.Glob(filepath.Join(strings.TrimSpace(string(dir)), "lexers", "embedded", "*.xml"))
	if err != nil || len(paths) < 200 {
		t.Fatalf("chroma has %d lexers: %v", len(paths), err)
	}
	var packed bytes.Buffer
	w := zip.NewWriter(&packed)
	w.RegisterCompressor(zip.Deflate, func(out io.Writer) (io.WriteCloser, error) { return flate.NewWriter(out, flate.BestCompression) })
	pack := func(name string, text []byte) {
		f, err := w.CreateHeader(&zip.FileHeader{Name: name, Method: zip.Deflate})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	inFiles := chroma.NewLexerRegistry()
	for _, path := range paths {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		pack(filepath.Base(path), text)
		inFiles.Register(chroma.MustNewXMLLexer(os.DirFS(filepath.Dir(path)), filepath.Base(path)))
	}
	for _, l := range chromalexers.GlobalLexerRegistry.Lexers {
		name := l.Config().Name
		if known := inFiles.Get(name); known != nil && known.Config().Name == name {
			continue
		}
		if text, ok := written(t, l); ok {
			pack("code-"+strings.ReplaceAll(strings.ToLower(name), " ", "-")+".xml", text)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	if testrun.Update() {
		if err := os.WriteFile("lexers.zip", packed.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	for _, name := range []string{"Go", "C", "Python", "Markdown", "HTML", "JavaScript", "TypeScript", "Java", "Rust", "Shell", "YAML"} {
		if lexers().Get(name) == nil {
			t.Errorf("%s has no colours", name)
		}
	}
	if !maps.Equal(contents(t, packed.Bytes()), contents(t, lexersZip)) { // compressors differ
		t.Error("lexers.zip is not chroma's: go test ./services/router/internal/web -run ChromaLexers -update")
	}
}

// written writes a lexer that chroma has as code into a file. It is not ok if that is impossible. Where such a lexer
// leaves a part of its text to another one, as in a block of code, ours colours that part as a string.
func written(t *testing.T, l chroma.Lexer) (text []byte, ok bool) {
	t.Helper()
	code, ok := l.(*chroma.RegexLexer)
	if !ok && l == chromalexers.Markdown {
		code, ok = reflect.TypeAssert[*chroma.RegexLexer](reflect.ValueOf(l).Elem().Field(0))
	}
	if !ok {
		return nil, false // one of two languages, such as Svelte's
	}
	rules, err := code.Rules()
	if err != nil {
		t.Fatal(err)
	}
	rules = rules.Clone()
	for _, state := range rules {
		for i := range state {
			if _, err := xml.Marshal(state[i]); err != nil {
				state[i].Type = chroma.LiteralString
			}
		}
	}
	text, err = chroma.Marshal(chroma.MustNewLexer(code.Config(), func() chroma.Rules { return rules }))
	return text, err == nil
}

// contents of the files of an archive, by name.
func contents(t *testing.T, archive []byte) map[string]string {
	t.Helper()
	r, err := zip.NewReader(bytes.NewReader(archive), int64(len(archive)))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, f := range r.File {
		text, err := fs.ReadFile(r, f.Name)
		if err != nil {
			t.Fatal(err)
		}
		lines := slices.Collect(strings.Lines(string(text)))
		slices.Sort(lines) // of lexers that chroma has as code, states are written in any order
		all[f.Name] = strings.Join(lines, "")
	}
	return all
}
