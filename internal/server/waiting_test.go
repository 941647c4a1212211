package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/telemetry"
)

// TestCallersMayWait: the timeout for reading does not end a request that has been read, for
// any handler, with a body of known length, in chunks or without. A request that is slow to
// arrive is still cut off. net/http clears the deadline when a body has been read to its end.
func TestCallersMayWait(t *testing.T) {
	reading := 50 * time.Millisecond
	for err := callersMayWait(t, reading); err != nil; err = callersMayWait(t, reading) {
		if reading *= 2; reading > 10*time.Second { // more than a slow machine needs
			t.Fatal(err)
		}
	}
}

func callersMayWait(t *testing.T, reading time.Duration) error {
	t.Helper()
	var cfg Config
	cfg.SetDefaults()
	tel, err := telemetry.Start(t.Context(), telemetry.Config{}, telemetry.Identity{Service: "test"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	s, err := New(cfg, tel.For("test"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	s.Handle("/", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, "slow", http.StatusRequestTimeout)
			return
		}
		select {
		case <-r.Context().Done():
			http.Error(w, "ended", http.StatusInternalServerError)
		case <-time.After(3 * reading):
			fmt.Fprintf(w, "%d bytes", len(body))
		}
	}))
	srv := httptest.NewUnstartedServer(nil)
	srv.Config = s.http
	srv.Config.ReadTimeout = reading
	srv.Start()
	defer srv.Close()
	slow, end := io.Pipe()
	defer end.Close()
	for _, c := range []struct {
		what   string
		body   io.Reader
		status int
	}{
		{"no body", nil, http.StatusOK},
		{"known length", strings.NewReader("four"), http.StatusOK},
		{"chunks", io.MultiReader(strings.NewReader("fo"), strings.NewReader("ur")), http.StatusOK},
		{"slow", slow, http.StatusRequestTimeout},
	} {
		for range 2 { // the second on the same connection
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, srv.URL, c.body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := srv.Client().Do(req)
			if err != nil {
				return fmt.Errorf("%s: %w", c.what, err)
			}
			text, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode != c.status {
				return fmt.Errorf("%s: %s: %s, want %d", c.what, resp.Status, text, c.status)
			}
			c.body = nil
			if c.status != http.StatusOK {
				break
			}
		}
	}
	return nil
}
