package zoekt

import (
	"bytes"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// BenchmarkAnswer measures what an answer of 50 files with 40 matches each costs
// between the message and its JSON, and one of a file of one line with 100,000 matches.
//
//	go test -run '^$' -bench Answer ./services/router/internal/zoekt
func BenchmarkAnswer(b *testing.B) {
	var files []*searchv1.FileMatch
	for range 50 {
		files = append(files, withMatches(strings.Repeat("\tcontainer := pod.Spec.Containers[0]\n", 40), 40))
	}
	b.Run("lines", func(b *testing.B) { benchmarkAnswer(b, files) })
	one := withMatches(strings.Repeat("container=pod.Spec;", 100_000), 100_000)
	b.Run("one line", func(b *testing.B) { benchmarkAnswer(b, []*searchv1.FileMatch{one}) })
}

// withMatches is a file with n matches.
func withMatches(text string, n int) *searchv1.FileMatch {
	var pairs []pair
	for i := 0; i < len(text); i += len(text) / n {
		pairs = append(pairs, pair{i + 1, i + 10})
	}
	f := &searchv1.FileMatch{Repo: "host/repo", Path: []byte("file"), MatchCount: uint64(n)}
	lines := strings.SplitAfter(text, "\n")
	for line, off, next := 0, 0, 0; line < len(lines); line++ {
		c := &searchv1.ChunkMatch{Content: []byte(lines[line]), ContentStart: &searchv1.Location{ByteOffset: uint32(off), LineNumber: uint32(line + 1), Column: 1}}
		place := func(at int) *searchv1.Location {
			return &searchv1.Location{ByteOffset: uint32(at), LineNumber: uint32(line + 1), Column: uint32(at - off + 1)}
		}
		end := off + len(lines[line])
		for ; next < len(pairs) && pairs[next].from < end; next++ {
			c.Ranges = append(c.Ranges, &searchv1.Range{Start: place(pairs[next].from), End: place(pairs[next].to)})
		}
		if off = end; len(c.Ranges) > 0 {
			f.Chunks = append(f.Chunks, c)
		}
	}
	return f
}

func benchmarkAnswer(b *testing.B, files []*searchv1.FileMatch) {
	o := searchOptions{ChunkMatches: true}
	show := func() *searchReply {
		r := &searchReply{}
		v := o.newView(newRoom(1<<30, &r.Result), "")
		v.id = testID
		r.Result.Files = v.show(files)
		return r
	}
	reply := show()
	b.Run("show", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			show()
		}
	})
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		var buf bytes.Buffer
		for b.Loop() {
			buf.Reset()
			if err := encode(&buf, reply); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(buf.Len()))
	})
}
