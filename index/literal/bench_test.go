package literal

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// source is source code: the packages of the index.
func source(b *testing.B) (text []byte) {
	b.Helper()
	files, err := filepath.Glob("../*/*.go")
	if err != nil || len(files) == 0 {
		b.Fatalf("%d files of the packages of the index: %v", len(files), err)
	}
	for _, name := range files {
		more, err := os.ReadFile(filepath.Clean(name))
		if err != nil {
			b.Fatal(err)
		}
		text = append(text, more...)
	}
	return text
}

// BenchmarkFind looks for words of all kinds.
func BenchmarkFind(b *testing.B) {
	text := source(b)
	for _, pattern := range []string{"return", "style", "file", "quota", "ts", "e", "string", "x40087468"} {
		for name, caseful := range map[string]bool{"case": true, "fold": false} {
			f := New(pattern, caseful)
			b.Run(pattern+"/"+name, func(b *testing.B) { all(b, f, text) })
		}
	}
}

// BenchmarkFindNotASCII looks for words of other scripts in text of these
// scripts.
func BenchmarkFindNotASCII(b *testing.B) {
	text := []byte(strings.Repeat("Выберите команду меню Формат и нажмите кнопку. 選択したモジュールの名前を変更します。选择一个单元格区域。 Größe naïve\n", 2000))
	for _, pattern := range []string{"команду", "меню", "вот", "モジュール", "单元格", "größe", "naïve"} {
		for name, caseful := range map[string]bool{"case": true, "fold": false} {
			f := New(pattern, caseful)
			b.Run(pattern+"/"+name, func(b *testing.B) { all(b, f, text) })
		}
	}
}

// BenchmarkSet looks for several words at once.
func BenchmarkSet(b *testing.B) {
	text := source(b)
	for _, words := range [][]string{{"tested", "x40087468", "erremptycl"}, {"maybe", "allows"}, {"TODO", "FIXME"}, {"err", "nil", "net"}, {"one", "two", "three", "four", "five"}} {
		var s Set
		for _, word := range words {
			s = append(s, New(word, false))
		}
		b.Run(strings.Join(words, "|"), func(b *testing.B) { all(b, s, text) })
	}
}

func all(b *testing.B, f interface {
	Find(text []byte, from int) (start, end int, ok bool)
}, text []byte) {
	b.Helper()
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	matches := 0
	for b.Loop() {
		for _, end, ok := f.Find(text, 0); ok; _, end, ok = f.Find(text, end) {
			matches++
		}
	}
	b.ReportMetric(float64(matches)/float64(b.N), "matches/op")
}
