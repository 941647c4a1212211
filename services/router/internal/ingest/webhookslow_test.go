package ingest

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/testrun"
)

// slow starts a webhook over a connection of its own, and never finishes it. It returns the status,
// 0 if the connection ends without an answer.
func slow(t *testing.T, address, source string, h http.Header) func() int {
	t.Helper()
	conn, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	var text bytes.Buffer
	fmt.Fprintf(&text, "POST /hooks/%s HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n", source)
	if err := h.Write(&text); err != nil {
		t.Fatal(err)
	}
	text.WriteString("\r\n{")
	if _, err := conn.Write(text.Bytes()); err != nil {
		t.Fatal(err)
	}
	return func() int {
		resp, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return 0
		}
		resp.Body.Close()
		return resp.StatusCode
	}
}

// TestSlowSenders: slow senders do not keep out the webhooks of others, of the same source or from
// the same address.
func TestSlowSenders(t *testing.T) {
	const senders = 200
	w := newWorld(t)
	w.patience = time.Hour
	w.put("github")
	mux := http.NewServeMux()
	mux.Handle(WebhookPattern, w)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close) // after the connections, which it would wait for
	address := server.Listener.Addr().String()
	for range senders / 2 {
		slow(t, address, "github", hosts["github"].sign("another", ""))
		slow(t, address, "nowhere", hosts["github"].sign("another", ""))
	}
	testrun.Until(t, "all have sent a piece", func() bool { return w.bodies.Taken() >= senders*piece })
	body := hubBody("main", "c1")
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/hooks/github", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header = hosts["github"].sign(secret, body)
	resp, err := server.Client().Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusAccepted {
		t.Errorf("a push beside slow senders: %s", resp.Status)
	}
}

// TestSourcesCannotBeEnumerated: whoever cannot sign sees no difference between sources that exist and
// one that does not, of any kind and with any header, whether a body comes or not.
func TestSourcesCannotBeEnumerated(t *testing.T) {
	w := newWorld(t)
	mux := http.NewServeMux()
	mux.Handle(WebhookPattern, w)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for kind, h := range hosts {
		for what, header := range map[string]http.Header{"signed": h.sign("another", "body"), "unsigned": h.sign("", "body"), "bare": {}} {
			for _, source := range []string{kind, "nowhere", "none"} { // none has no secret
				read := &counting{Reader: strings.NewReader("body")}
				r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/"+source, read)
				r.Header = header.Clone()
				answer := httptest.NewRecorder()
				mux.ServeHTTP(answer, r)
				if answer.Code != forged.status || answer.Body.String() != forged.text+"\n" || answer.Header().Get("Connection") != "" || read.bytes != 4 {
					t.Fatalf("%s, %s, to %s: HTTP %d %q, %v, %d bytes read", kind, what, source, answer.Code, answer.Body, answer.Header(), read.bytes)
				}
			}
		}
	}
	w.patience = time.Millisecond
	for _, source := range []string{"github", "gitlab", "nowhere"} {
		if got := slow(t, server.Listener.Addr().String(), source, hosts["github"].sign("another", ""))(); got != http.StatusRequestTimeout {
			t.Errorf("slowly to %s: HTTP %d", source, got)
		}
	}
}

// counting counts what is read.
type counting struct {
	io.Reader
	bytes int
}

func (c *counting) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.bytes += n
	return n, err
}

// TestSlowSendersAreCutOff: slow senders are cut off when their time is over, and leave nothing.
func TestSlowSendersAreCutOff(t *testing.T) {
	w := newWorld(t)
	w.patience = 10 * time.Millisecond
	mux := http.NewServeMux()
	mux.Handle(WebhookPattern, w)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for range 16 {
		if got := slow(t, server.Listener.Addr().String(), "github", hosts["github"].sign("another", ""))(); got != http.StatusRequestTimeout {
			t.Fatalf("HTTP %d", got)
		}
	}
	if w.count(tooSlow) != 16 {
		t.Errorf("%d are counted", w.count(tooSlow))
	}
	if n := w.bodies.Taken(); n != 0 {
		t.Errorf("%d bytes were not given back", n)
	}
}

// TestBodiesAreCharged: a webhook takes no more memory than its sender is charged for, and leaves nothing.
func TestBodiesAreCharged(t *testing.T) {
	w := newWorld(t)
	for _, size := range []int{0, 1, piece - bytes.MinRead, piece, piece + 1, 1<<20 + 1, maxBody} {
		text := bytes.Repeat([]byte("x"), size)
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/github", bytes.NewReader(text))
		body, give, _, err := w.read(httptest.NewRecorder(), r)
		if err != nil || !bytes.Equal(body, text) {
			t.Errorf("%d bytes: got %d, %v", size, len(body), err)
		}
		if taken := w.bodies.Taken(); int64(cap(body)) > taken || taken > int64(size)+2*piece+int64(size)/64 {
			t.Errorf("%d bytes take %d, and %d are charged", size, cap(body), taken)
		}
		if give(); w.bodies.Taken() != 0 {
			t.Errorf("%d bytes: %d were not given back", size, w.bodies.Taken())
		}
	}
}

// TestWarningsAreRare: anybody can send webhooks that fail. They do not fill the log.
func TestWarningsAreRare(t *testing.T) {
	w := newWorld(t)
	w.warnings.Interval = time.Hour
	for range 100 {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/hooks/x", bytes.NewReader(make([]byte, maxBody+1)))
		w.ServeHTTP(httptest.NewRecorder(), r)
	}
	if n := strings.Count(w.log.String(), "could not handle a webhook"); n != 1 || w.count(tooLarge) != 100 {
		t.Errorf("%d lines, %d counted", n, w.count(tooLarge))
	}
}
