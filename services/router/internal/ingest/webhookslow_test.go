package ingest

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
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

// TestSlowSenders: slow senders to one source, or to one that does not exist, do not keep out the
// webhooks of others. A sender whose source or header is refused gets that answer at once.
func TestSlowSenders(t *testing.T) {
	w := newWorld(t)
	w.patience = time.Hour
	w.put("gitea")
	mux := http.NewServeMux()
	mux.Handle(WebhookPattern, w)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close) // after the connections, which it would wait for
	address := server.Listener.Addr().String()
	push := func(commit string) int {
		body := hubBody("main", commit)
		return w.send("gitea", hosts["gitea"].sign(secret, body), body)
	}
	good := hosts["github"].sign("another", "")
	for range maxAtOnce {
		if got := slow(t, address, "nowhere", good)(); got != http.StatusUnauthorized {
			t.Fatalf("to an unknown source: %d", got)
		}
		if got := slow(t, address, "gitlab", header("X-Gitlab-Event", "Push Hook", "X-Gitlab-Token", "wrong"))(); got != http.StatusUnauthorized {
			t.Fatalf("with a wrong secret: %d", got)
		}
	}
	for range maxAtOnce {
		slow(t, address, "github", good)
	}
	full := func() bool { w.slots.mu.Lock(); defer w.slots.mu.Unlock(); return w.slots.of["github"] == maxOfSource }
	for !full() {
		time.Sleep(time.Millisecond)
	}
	if got := push("c1"); got != http.StatusAccepted {
		t.Errorf("another source's push: %d", got)
	}
}

// TestSlowSendersAreCutOff: slow senders are cut off when their time is over, and leave their
// slots.
func TestSlowSendersAreCutOff(t *testing.T) {
	w := newWorld(t)
	w.patience = 10 * time.Millisecond
	mux := http.NewServeMux()
	mux.Handle(WebhookPattern, w)
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	for range 2 * maxOfSource {
		if got := slow(t, server.Listener.Addr().String(), "github", hosts["github"].sign("another", ""))(); got != http.StatusRequestTimeout {
			t.Fatalf("HTTP %d", got)
		}
	}
	if w.count(tooSlow) != 2*maxOfSource {
		t.Errorf("%d are counted", w.count(tooSlow))
	}
}
