package peer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// script writes a shell script as a program.
func script(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestTrawlStartsAndEnds(t *testing.T) {
	s, err := Trawl(t.Context(), io.Discard, script(t, `trap 'exit 0' TERM
echo "ready: gRPC 127.0.0.1:1, HTTP 127.0.0.1:2, etcd http://127.0.0.1:3, NATS x"
while :; do sleep 0.01; done`), "folder")
	if err != nil {
		t.Fatal(err)
	}
	if s.GRPC != "127.0.0.1:1" || s.HTTP != "127.0.0.1:2" || s.Etcd != "http://127.0.0.1:3" || s.NATS != "x" {
		t.Errorf("addresses %s, %s and %s", s.GRPC, s.HTTP, s.Etcd)
	}
	if _, err := s.Usage(); err != nil {
		t.Error(err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Usage(); err == nil {
		t.Error("the process is there after it was closed")
	}
}

func TestProgramsThatDoNotStart(t *testing.T) {
	for _, text := range []string{"exit 1", "echo failed", "exec sleep 60 >/dev/null"} {
		if s, err := Trawl(t.Context(), io.Discard, script(t, text), "folder"); err == nil {
			t.Errorf("%q started: %v", text, s.Close())
		}
	}
	if s, err := Role(t.Context(), io.Discard, script(t, "exit 1"), "searcher", "etcd", nil); err == nil {
		t.Errorf("a searcher that ended started: %v", s.Close())
	}
	if s, err := Zoekt(t.Context(), filepath.Join(t.TempDir(), "none"), "folder"); err == nil {
		t.Errorf("a program that is not there started: %v", s.Close())
	}
}

// TestServersEndWithTheirContext also checks that a server that does not handle SIGTERM does not
// count as failed.
func TestServersEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := Zoekt(ctx, script(t, "test $NAME = value || exit 3\nexec sleep 60"), "folder", "NAME=value")
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	<-s.ended
	other, err := Zoekt(t.Context(), script(t, "exec sleep 60"), "folder")
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Close(); err != nil {
		t.Error(err)
	}
	if err := other.AwaitRepos(t.Context(), 1); err == nil {
		t.Error("a server that ended has repos")
	}
}

// serving returns an HTTP server in the process of the test.
func serving(t *testing.T, answer http.HandlerFunc) *Server {
	t.Helper()
	h := httptest.NewServer(answer)
	t.Cleanup(h.Close)
	return &Server{HTTP: strings.TrimPrefix(h.URL, "http://"), client: h.Client(), ended: make(chan struct{})}
}

const answered = `{"Result":{"ContentBytesLoaded":1,"Duration":1234567,"FileCount":2,"MatchCount":3,"Crashes":4,"ShardsSkipped":5,` +
	`"Files":[{"FileName":"x.go","Repository":"a","ChunkMatches":[{"Content":"aGk="}]},{"FileName":"d/y.go","Repository":"b"}],"Duration":9}}`

func TestSearch(t *testing.T) {
	var body string
	s := serving(t, func(w http.ResponseWriter, r *http.Request) {
		got := make([]byte, 1000)
		n, _ := r.Body.Read(got)
		body = r.URL.Path + " " + string(got[:n])
		fmt.Fprint(w, answered)
	})
	opts := Every(50)
	opts.MaxWallTime = time.Second
	reply, err := s.Search(t.Context(), "q", opts)
	if err != nil {
		t.Fatal(err)
	}
	if want := `/api/search {"Opts":{"MaxDocDisplayCount":50,"ChunkMatches":true,"ShardMaxMatchCount":1073741824,"TotalMaxMatchCount":1073741824,"MaxWallTime":1000000000},"Q":"q"}`; body != want {
		t.Errorf("asked %s, not %s", body, want)
	}
	stats, err := reply.Stats()
	if want := (Stats{1234567, 2, 3, 4, 5}); err != nil || stats != want {
		t.Errorf("statistics %+v, not %+v (%v)", stats, want, err)
	}
	files, err := reply.Files()
	if err != nil || len(files) != 2 || !files["a/x.go"] || !files["b/d/y.go"] {
		t.Errorf("files %v (%v)", files, err)
	}
	if reply.Took <= 0 {
		t.Errorf("answered in %s", reply.Took)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	for _, text := range []string{"", "{}", `{"Error":"x"}`, `{"Result":[]}`, `{"Result":{"Duration":"x"}}`, `{"Result":{"Duration":1`} {
		s := serving(t, func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, text) })
		reply, err := s.Search(t.Context(), "q", Early(50))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := reply.Stats(); err == nil {
			t.Errorf("%s has statistics %+v", text, got)
		}
	}
	refusing := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "overloaded", http.StatusServiceUnavailable)
	})
	if _, err := refusing.Search(t.Context(), "q", Early(50)); err == nil || !strings.Contains(err.Error(), "overloaded") {
		t.Errorf("a refusal is %v", err)
	}
	late := serving(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusGatewayTimeout) })
	if _, err := late.Search(t.Context(), "q", Early(50)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a query that ran out of time is %v", err)
	}
}

// TestAwaitRepos waits for all repos and all of their shards.
func TestAwaitRepos(t *testing.T) {
	asked := 0
	s := serving(t, func(w http.ResponseWriter, _ *http.Request) {
		answers := []string{"", `{"List":{"Repos":[{}]}}`, `{"List":{"Repos":[{},{}],"Trawl":{"Complete":false}}}`, `{"List":{"Repos":[{},{}],"Trawl":{"Complete":true}}}`}
		fmt.Fprint(w, answers[asked])
		asked++
	})
	if err := s.AwaitRepos(t.Context(), 2); err != nil || asked != 4 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}
