package charttest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"testing"
)

// elided is what golden files leave out: random values, and text that has its own
// files.
var elided = []struct {
	kind string
	what *regexp.Regexp
	with string
}{
	{"Secret", regexp.MustCompile(`(?m)^(  (?:[a-z]+-key|username|password)): \S+$`), "$1: (made up)"},
	{"ConfigMap", regexp.MustCompile(`(?ms)^binaryData:\n.*\z`), "binaryData: (files)\n"},
	{"ConfigMap", regexp.MustCompile(`(?ms)^  [-a-z0-9]+\.json: \|\n.*\z`), "  (dashboard)\n"},
	{"PrometheusRule", regexp.MustCompile(`(?ms)^spec:\n.*\z`), "spec: (rules)\n"},
}

// TestGolden compares each set of values with its golden file, which people can read.
// go test -update rewrites the files.
func TestGolden(t *testing.T) {
	eachUsual(t, func(t *testing.T, r rendered) {
		var got bytes.Buffer
		for _, o := range r.objects {
			raw := bytes.Trim(o.raw, "\n")
			for _, e := range elided {
				if e.kind == o.kind {
					raw = e.what.ReplaceAll(raw, []byte(e.with))
				}
			}
			got.WriteString("---\n")
			got.Write(append(bytes.TrimRight(raw, "\n"), '\n'))
		}
		path := filepath.Join("testdata", r.set+".yaml")
		if *update {
			if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(got.Bytes(), want) {
			t.Errorf("%s differs in line %d; `make charts` writes it anew", path, firstDifference(got.Bytes(), want))
		}
	})
}

func firstDifference(got, want []byte) int {
	line := 1
	for i := range min(len(got), len(want)) {
		if got[i] != want[i] {
			break
		}
		if got[i] == '\n' {
			line++
		}
	}
	return line
}

// TestRenderIsDeterministic: an upgrade that changes nothing makes no new pods.
func TestRenderIsDeterministic(t *testing.T) {
	values := valuesOf(t, "external")
	first, err := render(usual, values)
	if err != nil {
		t.Fatal(err)
	}
	second, err := render(usual, values)
	if err != nil {
		t.Fatal(err)
	}
	for name := range first {
		if first[name] != second[name] {
			t.Errorf("%s is rendered in two ways", name)
		}
	}
}
