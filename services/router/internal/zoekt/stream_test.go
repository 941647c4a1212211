package zoekt

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// streamAs asks StreamSearch with the options.
func (f *fake) streamAs(t *testing.T, o *webserverv1.SearchOptions) (*call, error) {
	t.Helper()
	s := f.service()
	s.limits.Bytes = 64 << 20
	stream := newCall(t)
	return stream, s.StreamSearch(&webserverv1.StreamSearchRequest{Request: &webserverv1.SearchRequest{Query: zoektQuery(t, `const: true`), Opts: o}}, stream)
}

// filesOf are the names of the files in each piece.
func filesOf(pieces []*webserverv1.SearchResponse) string {
	var all []string
	for _, p := range pieces {
		var names []string
		for _, f := range p.Files {
			names = append(names, string(f.FileName))
		}
		all = append(all, strings.Join(names, "+"))
	}
	return strings.Join(all, " ")
}

// TestStream: files are sent as they are found, statistics at the end, and the priorities of all pieces but the last make a client wait.
func TestStream(t *testing.T) {
	f := found(file("r", "a", "x\n"), file("r", "b", "x\n"), file("s", "c", "x\n"))
	var sent []int
	stream := newCall(t)
	f.found = func(int) { sent = append(sent, len(stream.pieces)) }
	if err := f.service().StreamSearch(&webserverv1.StreamSearchRequest{Request: &webserverv1.SearchRequest{Query: zoektQuery(t, `const: true`)}}, stream); err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprint(sent, " ", filesOf(stream.pieces)); got != "[1 2 3] a b c " {
		t.Errorf("sent %s", got)
	}
	for i, p := range stream.pieces {
		last := i == len(stream.pieces)-1
		if (p.Stats != nil) != last || math.IsInf(p.Progress.MaxPendingPriority, -1) != last {
			t.Errorf("piece %d of %d: %v, %v", i, len(stream.pieces), p.Stats, p.Progress)
		}
	}
	if s := stream.pieces[3].Stats; s.FileCount != 3 || stream.trailer[accountKey] == nil {
		t.Errorf("statistics %v, trailer %v", s, stream.trailer)
	}
}

// TestFlushWallTime: files that are found before it ends are sent together then, the best first. The others are sent as they are found.
func TestFlushWallTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := found(file("r", "a", "x\n"), file("r", "b", "x\n"), file("s", "c", "x\n"), file("s", "d", "x\n"))
		for i, score := range []float64{1, 3, 2, 5} {
			f.search.Files[i].Score = score
		}
		stream := newCall(t)
		f.found = func(i int) {
			time.Sleep(4 * time.Second)
			synctest.Wait()
			if want := []int{0, 0, 1, 2}[i]; len(stream.pieces) != want {
				t.Errorf("%d pieces were sent after file %d, want %d", len(stream.pieces), i, want)
			}
		}
		opts := &webserverv1.SearchOptions{FlushWallTime: durationpb.New(10 * time.Second)}
		if err := f.service().StreamSearch(&webserverv1.StreamSearchRequest{Request: &webserverv1.SearchRequest{Query: zoektQuery(t, `const: true`), Opts: opts}}, stream); err != nil {
			t.Fatal(err)
		}
		if got := filesOf(stream.pieces); got != "b+c+a d " || strings.Contains(strings.Join(stream.trailer[accountKey], ""), "Ignored") {
			t.Errorf("sent %q, %v", got, stream.trailer)
		}
	})
}

// TestStreamOptions: the limits of a request hold over all pieces.
func TestStreamOptions(t *testing.T) {
	for _, c := range []struct {
		o    *webserverv1.SearchOptions
		want string
	}{
		{&webserverv1.SearchOptions{MaxDocDisplayCount: 2}, "a:3 b:1 skipped 0"},
		{&webserverv1.SearchOptions{MaxMatchDisplayCount: 4}, "a:3 b:1 skipped 0"},
		{&webserverv1.SearchOptions{TotalMaxMatchCount: 3}, "a:3 skipped 2"},
		{&webserverv1.SearchOptions{ShardRepoMaxMatchCount: 1}, "a:3 c:1 skipped 1"},
		{&webserverv1.SearchOptions{UseBm25Scoring: true}, "a:3 b:1 c:1 skipped 0 [UseBM25Scoring]"},
		{&webserverv1.SearchOptions{Whole: true}, "a=x|y|z|:3 b=x|:1 c=x|:1 skipped 0"},
		{&webserverv1.SearchOptions{FlushWallTime: durationpb.New(time.Hour)}, "a:3 b:1 c:1 skipped 0"},
	} {
		f := found(file("r", "a", "x\ny\nz\n"), file("r", "b", "x\n"), file("s", "c", "x\n"))
		f.files = map[string]string{"a": "x\ny\nz\n", "b": "x\n", "c": "x\n"}
		stream, err := f.streamAs(t, c.o)
		if err != nil {
			t.Fatal(err)
		}
		whole := stream.pieces[len(stream.pieces)-1]
		for i := len(stream.pieces) - 2; i >= 0; i-- {
			whole.Files = append(stream.pieces[i].Files, whole.Files...)
		}
		if got := tellMessage(whole, strings.Join(stream.trailer[accountKey], "")); got != c.want {
			t.Errorf("%v: %s, want %s", c.o, got, c.want)
		}
	}
	f := found(file("r", "a", "x\n"))
	f.list = &searchv1.ListResponse{Coverage: &searchv1.Coverage{Complete: true}, Repos: []*searchv1.RepoEntry{{Name: "r", Documents: 7}}}
	if stream, err := f.streamAs(t, &webserverv1.SearchOptions{EstimateDocCount: true}); err != nil || len(stream.pieces) != 1 || stream.pieces[0].Stats.ShardFilesConsidered != 7 {
		t.Errorf("an estimate: %v, %v", stream.pieces, err)
	}
}

// TestPieces: messages hold about 1 MiB, and what there is no room for is counted.
func TestPieces(t *testing.T) {
	var files []*searchv1.FileMatch
	for i := range 5 {
		files = append(files, file("r", fmt.Sprint(i), strings.Repeat("x", 300_000)+"\n"))
	}
	hold := &webserverv1.SearchOptions{FlushWallTime: durationpb.New(time.Hour)}
	for _, c := range []struct {
		files []*searchv1.FileMatch
		want  string
	}{{files[:0], ""}, {files[:1], "0 "}, {files, "0+1+2 3+4 "}} {
		stream, err := found(c.files...).streamAs(t, hold)
		if got := filesOf(stream.pieces); err != nil || got != c.want {
			t.Errorf("%d files: %q, want %q, %v", len(c.files), got, c.want, err)
		}
		for _, p := range stream.pieces {
			if n := proto.Size(p); n > maxPiece+1000 {
				t.Errorf("a piece of %d bytes", n)
			}
		}
	}
	stream := newCall(t)
	if err := found(files...).service().StreamSearch(&webserverv1.StreamSearchRequest{Request: &webserverv1.SearchRequest{Query: zoektQuery(t, `const: true`)}}, stream); err != nil {
		t.Fatal(err)
	}
	last := stream.pieces[len(stream.pieces)-1]
	if got := filesOf(stream.pieces); got != "0 1 " || last.Stats.FilesSkipped != 3 || last.Stats.FlushReason != webserverv1.FlushReason_FLUSH_REASON_MAX_SIZE {
		t.Errorf("with little room: %q, %v", got, last.Stats)
	}
}

// TestStreamErrors: an error ends the stream with its status, and no account follows.
func TestStreamErrors(t *testing.T) {
	f := found(file("r", "a", "x\n"))
	f.err = status.Error(codes.ResourceExhausted, "later")
	if stream, err := f.streamAs(t, nil); status.Code(err) != codes.ResourceExhausted || len(stream.pieces) > 0 {
		t.Errorf("%v, %v", stream.pieces, err)
	}
	if _, err := found().streamAs(t, &webserverv1.SearchOptions{MaxWallTime: durationpb.New(-1)}); status.Code(err) != codes.InvalidArgument {
		t.Errorf("a negative time: %v", err)
	}
}
