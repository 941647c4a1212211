package serving_test

import (
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
)

// reader is a browser that keeps cookies.
type reader struct {
	c      *cluster
	client *http.Client
}

func (c *cluster) reader() *reader {
	c.t.Helper()
	jar, err := cookiejar.New(nil)
	c.must(err)
	transport := &http.Transport{}
	c.t.Cleanup(transport.CloseIdleConnections)
	return &reader{c, &http.Client{Transport: transport, Jar: jar}}
}

// open opens a page, and returns where redirects led and what the page shows.
func (r *reader) open(target string, form url.Values) (code int, path, page string) {
	r.c.t.Helper()
	method, body := http.MethodGet, io.Reader(nil)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	req, err := http.NewRequestWithContext(r.c.t.Context(), method, "http://"+r.c.routerHTTP+target, body)
	r.c.must(err)
	if form != nil {
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	resp, err := r.client.Do(req)
	r.c.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	r.c.must(err)
	return resp.StatusCode, resp.Request.URL.RequestURI(), string(text)
}

// TestPagesShowWhatTheTokenMaySee: every page leads to the sign-in form until the reader signs
// in. After that every page shows what the token allows: other repos are neither shown nor counted.
func TestPagesShowWhatTheTokenMaySee(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
	c.publish("host/open/pond", map[string]string{"a/fish.go": "package a\n\n// needle\nfunc Swim() {}\n", "b.txt": "needle in b\n"})
	c.publish("host/secret/pond", map[string]string{"a/fish.go": "needle of the secret\n"})
	text, id := c.token(access.Spec{Scopes: []access.Scope{access.ScopeSearch}, Allow: []string{"host/open/*"}})
	c.as(text)
	r := c.reader()
	for _, target := range []string{"/", "/?q=needle", "/repos", "/help", "/r/host/open/pond/-/b.txt", "/r/host/secret/pond", "/?q=needle&part=1&live=1"} {
		if _, path, page := r.open(target, nil); !strings.HasPrefix(path, "/login?next=") || strings.Contains(page, "needle in b") {
			t.Errorf("%s without a token leads to %s", target, path)
		}
	}
	if code, _, _ := r.open("/login", url.Values{"token": {string(text) + "x"}}); code != http.StatusForbidden {
		t.Errorf("a wrong token: %d", code)
	}
	if _, path, page := r.open("/login", url.Values{"token": {string(text)}, "next": {"/?q=needle"}}); path != "/?q=needle" || !strings.Contains(page, "2 matches</strong> in 2 files") {
		t.Errorf("signing in leads to %s:\n%s", path, page)
	}
	for target, want := range map[string]string{
		"/":                               "1 repo can be searched",
		"/?q=needle":                      "Complete over 1 repo,",
		"/?q=the":                         "Nothing matches. The whole index was searched",
		"/repos":                          "host/open/pond",
		"/r/host/open/pond":               "b.txt",
		"/r/host/open/pond/-/a/fish.go":   "Swim",
		"/r/host/secret/pond":             "There is no repo host/[redacted]/pond, or you may not see it.",
		"/r/host/secret/pond/-/a/fish.go": "There is no repo host/[redacted]/pond, or you may not see it.",
	} {
		_, _, page := r.open(target, nil)
		page = strings.ReplaceAll(page, "no repo host/secret", "no repo host/[redacted]")
		if !strings.Contains(page, want) || strings.Contains(page, "secret") {
			t.Errorf("%s: no %q, or a secret, in\n%s", target, want, page)
		}
	}
	c.must(access.NewStore(c.servers.Client(), "").Revoke(t.Context(), id))
	c.eventually("the token is revoked", func() bool {
		_, path, _ := r.open("/repos", nil)
		return strings.HasPrefix(path, "/login")
	})
}
