package snippet

import (
	"bytes"
	"strings"
	"testing"
)

// BenchmarkChunks cuts chunks out of texts with many matches, and with long lines.
func BenchmarkChunks(b *testing.B) {
	code := strings.Repeat("\tif needle := use(of, a, file); needle {\n"+strings.Repeat("\t\tother(\"words\")\n", 12)+"\t}\n", 50)
	minified := strings.Repeat(strings.Repeat("minified(code){return};", 13_000)+" needle ", 6)
	for _, c := range []struct {
		name, text string
		o          Options
	}{
		{"code", code, Options{}},
		{"code in context", code, Options{ContextLines: 3, MaxLine: 1000}},
		{"long line", minified, Options{}},
		{"long line cut", minified, Options{MaxLine: 1000}},
		{"many in a line", strings.Repeat("a needle, ", 180_000), Options{}},
		{"many in a line cut", strings.Repeat("a needle, ", 180_000), Options{MaxLine: 1000}},
		{"many in lines", strings.Repeat("a needle,\n", 180_000), Options{}},
		{"many in lines in context", strings.Repeat("a needle,\n\n\n\n\n\n\n\n", 180_000), Options{ContextLines: 3, MaxLine: 1000}},
		{"many far apart", strings.Repeat("a needle\n"+strings.Repeat("a line without\n", 800), 1000), Options{ContextLines: 3}},
	} {
		content, ranges := []byte(c.text), []Range(nil)
		for at := 0; ; {
			found := strings.Index(c.text[at:], "needle")
			if found < 0 {
				break
			}
			ranges = append(ranges, Match(uint32(at+found), uint32(at+found+len("needle"))))
			at += found + len("needle")
		}
		c.o.Room = unbounded
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			m, here, buf := &lined{memory{text: content}, nil}, make([]Range, len(ranges)), []byte(nil)
			m.count()
			for b.Loop() {
				copy(here, ranges)
				text := Text{Reader: m, Len: uint32(len(content)), Buf: buf}
				if _, err := text.Chunks(here, new(Arena[byte]), c.o); err != nil {
					b.Fatal(err)
				}
				buf = text.Buf
			}
		})
	}
}

// lined is a text in memory that knows how many newlines are before each superblock.
type lined struct {
	memory
	before []uint32
}

const lineStep = 4096

func (l *lined) count() {
	for at, n := 0, 0; at <= len(l.text); at += lineStep {
		l.before = append(l.before, uint32(n))
		n += bytes.Count(l.text[at:min(at+lineStep, len(l.text))], newline)
	}
}

func (l *lined) LinesBefore(off uint32) (uint32, error) {
	whole := off / lineStep
	return l.before[whole] + uint32(bytes.Count(l.text[whole*lineStep:off], newline)), nil
}
