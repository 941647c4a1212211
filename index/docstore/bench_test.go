package docstore

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// goTree returns the first source files of the Go toolchain, as many as share a
// dictionary.
func goTree(b *testing.B) (units [][]byte, text []byte) {
	b.Helper()
	root, err := exec.CommandContext(b.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		b.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Join(strings.TrimSpace(string(root)), "src"), func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		blob, err := os.ReadFile(path)
		for len(blob) > 0 {
			if len(units) == unitsPerDictionary {
				return fs.SkipAll
			}
			unit := blob[:min(len(blob), SuperblockSize)]
			blob = blob[len(unit):]
			units, text = append(units, unit), append(text, unit...)
		}
		return err
	})
	if err != nil {
		b.Fatal(err)
	}
	return units, text
}

func BenchmarkUnits(b *testing.B) {
	units, text := goTree(b)
	for name, effort := range map[string]Effort{"fresh": Fresh, "compact": Compact} {
		dict := appendDictionary(nil, text, effort)
		e, encoded, size := newEncoders()[effort], make([][]byte, len(units)), 0
		e.setDictionary(dict)
		b.Run(name+"/dictionary", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				dict = appendDictionary(dict[:0], text, effort)
				e.setDictionary(dict)
			}
		})
		b.Run(name+"/encode", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				size = len(dict)
				for _, unit := range units {
					size += len(e.encode(unit))
				}
			}
			b.ReportMetric(float64(size)/float64(len(text)), "encoded/source")
		})
		for i, unit := range units {
			encoded[i] = bytes.Clone(e.encode(unit))
		}
		buf := append(bytes.Clone(dict), make([]byte, SuperblockSize+decodeMargin)...)
		b.Run(name+"/decode", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				for i, unit := range units {
					if err := decodeUnit(buf, len(dict), len(unit), encoded[i]); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}

// BenchmarkReader reads superblocks in order, and alternately from two
// dictionaries, so that it copies one for each superblock.
func BenchmarkReader(b *testing.B) {
	var buf bytes.Buffer
	_, text := goTree(b)
	w := format.NewWriter(&buf)
	content, err := NewContentWriter(w, Fresh, 1)
	if err != nil {
		b.Fatal(err)
	}
	for range 2 * unitsPerDictionary / SuperblocksOf(uint64(len(text))) {
		_, _ = content.Add(text) // errors stay
	}
	if err := errors.Join(content.Close(), w.Close()); err != nil {
		b.Fatal(err)
	}
	f, err := format.NewFile("test.trawl", buf.Bytes())
	if err != nil {
		b.Fatal(err)
	}
	c, err := OpenContent(f)
	if err != nil {
		b.Fatal(err)
	}
	for name, place := range map[string]func(i uint32) (blob, off uint32){
		"scan": func(i uint32) (blob, off uint32) { return 0, i * SuperblockSize % uint32(len(text)) },
		"jump": func(i uint32) (blob, off uint32) { return i % 2, i * 7 * SuperblockSize % uint32(len(text)) },
	} {
		b.Run(name, func(b *testing.B) {
			r, dst, i := c.NewReader(), []byte(nil), uint32(0)
			b.SetBytes(SuperblockSize)
			for b.Loop() {
				blob, off := place(i)
				if dst, err = r.Append(dst[:0], blob, off, SuperblockSize); err != nil {
					b.Fatal(err)
				}
				i++
			}
		})
	}
}

func BenchmarkAppendPath(b *testing.B) {
	_, d, err := open(small().write(b))
	if err != nil {
		b.Fatal(err)
	}
	var buf []byte
	for i := uint32(0); b.Loop(); i++ {
		buf, _ = d.AppendPath(buf[:0], i%d.Len())
	}
}
