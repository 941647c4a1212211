package access_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
)

// one accepts one token.
type one struct{ token access.Text }

func (o one) Authenticate(_ context.Context, shown access.Text) (access.Principal, error) {
	if shown != o.token {
		return nil, errors.New("there is no such token")
	}
	return access.Anyone, nil
}

// TestCookieIsForPages: a token in the cookie lets its holder read pages and do nothing
// else. Without a token, or with a wrong one, the reader is sent to the login, and
// back.
func TestCookieIsForPages(t *testing.T) {
	g, _ := guard(t, one{"good"}, access.Limits{Calls: 10})
	for _, pattern := range []string{"GET /{$}", "GET /repos", "GET /r/{rest...}"} {
		g.Page(pattern)
	}
	ask := func(method, target, cookie, header string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
		if cookie != "" {
			r.AddCookie(&http.Cookie{Name: "trawl-token", Value: cookie})
		}
		if header != "" {
			r.Header.Set("Authorization", header)
		}
		w := httptest.NewRecorder()
		g.HTTP(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })).ServeHTTP(w, r)
		return w
	}
	for _, c := range []struct {
		method, target, cookie, header string
		want                           int
	}{
		{"GET", "/?q=fish", "good", "", http.StatusTeapot},
		{"HEAD", "/", "good", "", http.StatusTeapot},
		{"GET", "/r/host/pond", "good", "", http.StatusTeapot},
		{"GET", "/repos", "", "Bearer good", http.StatusTeapot},
		{"GET", "/?q=fish", "", "", http.StatusSeeOther},
		{"GET", "/?q=fish", "bad", "", http.StatusSeeOther},
		{"GET", "/", "good", "Bearer bad", http.StatusSeeOther},
		{"POST", "/", "good", "", http.StatusUnauthorized},
		{"POST", "/api/search", "good", "", http.StatusUnauthorized},
		{"GET", "/api/search", "good", "", http.StatusUnauthorized},
		{"POST", "/mcp", "good", "", http.StatusUnauthorized},
		{"GET", "/nothing", "good", "", http.StatusUnauthorized},
		{"GET", "/r", "good", "", http.StatusTeapot}, // the server leads it to /r/
		{"POST", "/repos", "good", "", http.StatusUnauthorized},
		{"GET", "/repos/x", "good", "", http.StatusUnauthorized},
		{"GET", "/help", "good", "", http.StatusUnauthorized}, // nobody made it a page
	} {
		if w := ask(c.method, c.target, c.cookie, c.header); w.Code != c.want {
			t.Errorf("%s %s with cookie %q and header %q: %d, want %d", c.method, c.target, c.cookie, c.header, w.Code, c.want)
		}
	}
	if got := ask("GET", "/?q=a&b=c", "", "").Header().Get("Location"); got != "/login?next=%2F%3Fq%3Da%26b%3Dc" {
		t.Errorf("sent to %s", got)
	}
	if err := g.Admit(t.Context(), "good"); err != nil {
		t.Error(err)
	}
	if err := g.Admit(t.Context(), "bad"); status.Code(err) != codes.Unauthenticated {
		t.Errorf("a bad token: %v", err)
	}
}

// TestPageCookie: the cookie is for this host alone, and not for scripts. One set
// over TLS is sent over TLS only.
func TestPageCookie(t *testing.T) {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/login", nil)
	if got := access.PageCookie(r, "t").String(); got != "trawl-token=t; Path=/; Max-Age=2592000; HttpOnly; SameSite=Strict" {
		t.Error(got)
	}
	if got := access.PageCookie(r, "").MaxAge; got >= 0 {
		t.Errorf("a cookie that is removed has the age %d", got)
	}
	r.Header.Set("X-Forwarded-Proto", "https")
	if got := access.PageCookie(r, "t").String(); got != "__Host-trawl-token=t; Path=/; Max-Age=2592000; HttpOnly; Secure; SameSite=Strict" {
		t.Error(got)
	}
	r.AddCookie(&http.Cookie{Name: "trawl-token", Value: "planted by another host of the domain"})
	if access.HasPageCookie(r) {
		t.Error("a cookie that is not bound to the host counts over TLS")
	}
}
