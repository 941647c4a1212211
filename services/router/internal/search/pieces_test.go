package search

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// sent records the files of a stream, and when each was sent.
type sent struct {
	start time.Time
	files []string
}

func (s *sent) Send(m *searchv1.StreamSearchResponse) error {
	for _, f := range m.Files {
		s.files = append(s.files, fmt.Sprint(f.Repo, "@", time.Since(s.start)))
	}
	return nil
}

// TestTheBestFirst: an exhaustive stream starts with the best of the files that are found early. It
// does not hold them longer for slow searchers, and sends the files of slow ones at once.
func TestTheBestFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stream := &sent{start: time.Now()}
		page := &searchPage{options: &searchv1.SearchOptions{MaxFiles: 10, MaxBytes: 1 << 20}, statistics: &searchv1.Statistics{}}
		out := &pieces{to: sink{stream.Send, undivided}, execution: &execution{}, page: page, results: (&Service{}).newFileSet()}
		reply := func(after time.Duration, repo string, score float64) {
			time.Sleep(after)
			files := out.results.open()
			files.add(&searchv1.FileMatch{Repo: repo, Score: score})
			out.add(&searchReply{files: files, statistics: &searchv1.Statistics{}})
		}
		stop := out.sendFirst()
		reply(10*time.Millisecond, "worse", 1)
		reply(10*time.Millisecond, "best", 3)
		reply(time.Second, "slow", 2)
		reply(time.Second, "slowest", 4)
		stop()
		if got, want := fmt.Sprint(stream.files), "[best@50ms worse@50ms slow@1.02s slowest@2.02s]"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

// TestNothingComesAfterWhatHadNoRoom: when a file has no room in an exhaustive stream, or was cut so that it fits, no
// later file is sent, however small, and the stream says that files are left out.
func TestNothingComesAfterWhatHadNoRoom(t *testing.T) {
	small, large := []int{100}, []int{1000, 1000, 1000, 1000}
	for _, c := range []struct {
		files [][]int // the bytes of their chunks
		sent  int
	}{{[][]int{large, small}, 1}, {[][]int{large, large}, 1}, {[][]int{small, large, small}, 1}, {[][]int{small, small, large, small}, 2}} {
		stream := &sent{start: time.Now()}
		page := &searchPage{options: &searchv1.SearchOptions{MaxFiles: 10, MaxBytes: 3500}, statistics: &searchv1.Statistics{}}
		out := &pieces{to: sink{stream.Send, undivided}, execution: &execution{}, page: page, results: (&Service{}).newFileSet(), flowing: true}
		for i, chunks := range c.files {
			file := &searchv1.FileMatch{Repo: fmt.Sprint(i)}
			for _, bytes := range chunks {
				file.Chunks = append(file.Chunks, &searchv1.ChunkMatch{Content: make([]byte, bytes)})
			}
			files := out.results.open()
			files.add(file)
			out.add(&searchReply{files: files, statistics: &searchv1.Statistics{}})
		}
		if len(stream.files) != c.sent || out.reason() != searchv1.CutReason_CUT_REASON_MAX_BYTES {
			t.Errorf("%v: sent %v, and the reason is %v", c.files, stream.files, out.reason())
		}
	}
}
