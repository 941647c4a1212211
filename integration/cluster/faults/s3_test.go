package faults

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// object is served behind a proxy with one fault for all requests.
func object(t *testing.T, content []byte, f S3Fault) (*S3, string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Seen-Host", r.Host)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
	}))
	t.Cleanup(server.Close)
	p, err := NewS3("127.0.0.1:0", server.URL)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if f != (S3Fault{}) {
		p.Set(func(*http.Request) S3Fault { return f })
	}
	return p, "http://" + p.Addr() + "/bucket/key"
}

func fetch(t *testing.T, url string) (int, []byte, error) {
	t.Helper()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	if want := req.URL.Host; resp.StatusCode == http.StatusOK && resp.Header.Get("Seen-Host") != want {
		t.Errorf("the server was asked as %q, not %q: signatures would break", resp.Header.Get("Seen-Host"), want)
	}
	got, err := io.ReadAll(resp.Body)
	return resp.StatusCode, got, err
}

func TestS3Faults(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 10_000)
	flippedContent := bytes.Clone(content)
	flippedContent[len(content)/2] ^= 1
	open := make(chan struct{})
	close(open)
	for _, tt := range []struct {
		name   string
		fault  S3Fault
		status int
		body   []byte
		broken bool
	}{
		{"none", S3Fault{}, 200, content, false},
		{"failing", S3Fault{Status: 500}, 500, []byte("injected\n"), false},
		{"waiting", S3Fault{Wait: open}, 200, content, false},
		{"truncated", S3Fault{Truncate: true}, 200, content[:len(content)/2], true},
		{"shortened", S3Fault{Shorten: true}, 200, content[:len(content)/2], false},
		{"flipped", S3Fault{Flip: true}, 200, flippedContent, false},
		{"slow", S3Fault{BytesPerSecond: 1 << 20}, 200, content, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p, url := object(t, content, tt.fault)
			status, got, err := fetch(t, url)
			if status != tt.status || (err != nil) != tt.broken {
				t.Errorf("status %d, %v", status, err)
			}
			// A broken connection may deliver less than was sent.
			if !tt.broken && !bytes.Equal(got, tt.body) || len(got) > len(tt.body) {
				t.Errorf("%d bytes, want %d", len(got), len(tt.body))
			}
			if want := tt.fault != (S3Fault{}); (p.Injected() == 1) != want {
				t.Errorf("%d faults were counted", p.Injected())
			}
		})
	}
}
