package jsonapi

import (
	"context"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestEvents: results come as they are found, then the account. A silent stream sends heartbeats,
// and a failing one its error.
func TestEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &calls{each: func(_ context.Context, n int, m proto.Message) error {
			piece := m.(*searchv1.StreamSearchResponse)
			switch n {
			case 1:
				time.Sleep(2*heartbeat + time.Second)
				piece.Files = []*searchv1.FileMatch{{Repo: "r\n\ndata: x", Path: []byte("a\xff")}}
			case 2:
				time.Sleep(heartbeat)
				piece.Coverage = &searchv1.Coverage{Complete: true}
			default:
				return io.EOF
			}
			return nil
		}}
		w := f.do(t, "GET", "/api/v1/search/stream?q=x", "")
		if kind := w.Header().Get("Content-Type"); w.Code != 200 || kind != "text/event-stream" {
			t.Errorf("%d %s", w.Code, kind)
		}
		var got []string
		for event := range strings.SplitSeq(strings.TrimSuffix(w.Body.String(), "\n\n"), "\n\n") {
			name, data, _ := strings.Cut(event, "\n")
			got = append(got, name)
			if text, ok := strings.CutPrefix(data, "data: "); ok {
				object(t, []byte(text))
			}
		}
		if want := ": heartbeat|: heartbeat|event: result|: heartbeat|event: end"; strings.Join(got, "|") != want {
			t.Errorf("got %q, want %s", got, want)
		}
		if !strings.Contains(w.Body.String(), `"YP8="`) && !strings.Contains(w.Body.String(), `"Yf8="`) {
			t.Errorf("no path in %s", w.Body)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		f := &calls{each: func(ctx context.Context, n int, m proto.Message) error {
			if n > 1 {
				return io.EOF
			}
			<-ctx.Done() // its account takes no time
			m.(*searchv1.StreamSearchResponse).Coverage = &searchv1.Coverage{NotReached: 1}
			return nil
		}}
		if got := f.do(t, "GET", "/api/v1/search/stream?q=x&timeout=1ms", "").Body.String(); !strings.HasPrefix(got, "event: end\n") {
			t.Errorf("an account after the deadline: %q", got)
		}
	})
	f := &calls{each: func(_ context.Context, n int, _ proto.Message) error {
		if n == 2 {
			return status.Error(codes.Unavailable, "the reason")
		}
		return nil
	}}
	events := strings.Split(f.do(t, "GET", "/api/v1/search/stream", "").Body.String(), "\n\n")
	if len(events) != 3 || !strings.HasPrefix(events[1], "event: error\ndata: {") || !strings.Contains(events[1], "the reason") {
		t.Errorf("%q", events)
	}
}
