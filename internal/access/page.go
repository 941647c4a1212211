package access

import (
	"context"
	"net/http"
	"net/url"
	"strings"
)

// People read pages in a browser, which sends no Authorization of its own. They show their
// token once, to the page at LoginPath, and their browser keeps it in a cookie that scripts
// cannot read and that pages of other sites cannot have sent. The cookie counts only for
// reading pages: interfaces for programs take a token in the header only.

// LoginPath is the page at which people show their token.
const LoginPath = "/login"

// Page makes a pattern of http.ServeMux, with its method, a page for people: to read it takes
// ScopeSearch, and the token may come from the cookie. It must be called before the first call
// arrives.
func (g *Guard) Page(pattern string) { g.pages.Handle(pattern, http.NotFoundHandler()) }

// isPage reports whether the request reads a page for people.
func (g *Guard) isPage(r *http.Request) bool {
	_, pattern := g.pages.Handler(r)
	return pattern != ""
}

// PageCookie is the cookie that holds a token for pages; an empty token removes it. Where
// the browser's connection is encrypted, the cookie is never sent over another one.
func PageCookie(r *http.Request, token Text) *http.Cookie {
	secure := Encrypted(r)
	c := &http.Cookie{ //nolint:gosec // it is Secure if the connection is
		Name: cookieName(secure), Value: string(token), Path: "/",
		HttpOnly: true, Secure: secure, SameSite: http.SameSiteStrictMode, MaxAge: cookieAge,
	}
	if token == "" {
		c.MaxAge = -1
	}
	return c
}

// cookieAge is how long a browser keeps a token, in seconds.
const cookieAge = 30 * 24 * 3600

// cookieName is the name of the cookie. Browsers accept the prefix from the host itself
// only, and over TLS.
func cookieName(secure bool) string {
	if secure {
		return "__Host-trawl-token"
	}
	return "trawl-token"
}

// Encrypted reports whether the browser's connection is encrypted. A proxy in front of the
// server says so in a header. A client that forges the header only gets a cookie that its
// browser sends less often.
func Encrypted(r *http.Request) bool {
	return r.TLS != nil || strings.EqualFold(r.Header.Get("X-Forwarded-Proto"), "https")
}

// Origin is the scheme and the host by which the client reached the server.
func Origin(r *http.Request) string {
	if Encrypted(r) {
		return "https://" + r.Host
	}
	return "http://" + r.Host
}

// HasPageCookie reports whether the browser shows a token, good or not.
func HasPageCookie(r *http.Request) bool { return pageCookie(r) != "" }

func pageCookie(r *http.Request) string {
	c, err := r.Cookie(cookieName(Encrypted(r)))
	if err != nil {
		return ""
	}
	return c.Value
}

// shownBy returns the credentials of a request over HTTP: those in the header or, for a
// page, in the cookie.
func shownBy(r *http.Request, page bool) []string {
	header := r.Header.Values("Authorization")
	if len(header) > 0 || !page {
		return header
	}
	if token := pageCookie(r); token != "" {
		return []string{"Bearer " + token}
	}
	return nil
}

// toLogin sends a person to the page that asks for a token, and from there back.
func toLogin(w http.ResponseWriter, r *http.Request) {
	to := url.URL{Path: LoginPath, RawQuery: url.Values{"next": {r.URL.RequestURI()}}.Encode()}
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("Location", to.String())
	w.WriteHeader(http.StatusSeeOther)
}

// Admit returns an error, fit for the caller, unless the token lets its holder search.
func (g *Guard) Admit(ctx context.Context, token Text) error {
	if g.who == nil {
		return nil
	}
	_, err := g.identify(ctx, []string{"Bearer " + string(token)}, ScopeSearch)
	return err
}
