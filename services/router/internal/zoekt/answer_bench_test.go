package zoekt

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// BenchmarkAnswer measures what an answer of 50 files with 40 matches each costs
// between the message and its JSON.
//
//	go test -run '^$' -bench Answer ./services/router/internal/zoekt
func BenchmarkAnswer(b *testing.B) {
	var files []*searchv1.FileMatch
	for range 50 {
		text := strings.Repeat("\tcontainer := pod.Spec.Containers[0]\n", 40)
		var pairs []pair
		for i := 0; i < len(text); i += len(text) / 40 {
			pairs = append(pairs, pair{i + 1, i + 10})
		}
		files = append(files, send(text, pairs, 1))
	}
	o := searchOptions{ChunkMatches: true}
	show := func() *searchReply {
		r := &searchReply{}
		r.Result.Files = o.newView(newRoom(1<<30, &r.Result)).show(files)
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
			if err := json.NewEncoder(&buf).Encode(reply); err != nil {
				b.Fatal(err)
			}
		}
		b.SetBytes(int64(buf.Len()))
	})
}
