package web

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/trawl-search/trawl/internal/access"
)

const (
	nextParam  = "next"
	tokenParam = "token"
	// maxForm bounds a form in bytes.
	maxForm = 16 << 10
)

// loginPage asks for a token.
type loginPage struct {
	frame

	// Next is where to go with a token.
	Next string
	// Known: the browser shows a token, though maybe not a good one.
	Known   bool
	Refused string
	// Exposed: others may read along.
	Exposed bool
	// Forward: go to Next at once.
	Forward bool
}

func (p *Pages) login(_ context.Context, r *http.Request) reply {
	page := p.newLogin(r, param(r, nextParam))
	// A browser keeps the cookie back when a link of another site leads here. It sends it
	// when this page leads on.
	page.Forward = page.Next != "/" && strings.HasSuffix(r.Header.Get("Sec-Fetch-Site"), "-site")
	return reply{status: http.StatusOK, template: "login", data: page}
}

func (p *Pages) newLogin(r *http.Request, next string) loginPage {
	f := p.frame(r, "Sign in · Trawl", "")
	f.Login = false
	return loginPage{frame: f, Next: ownPath(next), Known: access.HasPageCookie(r), Exposed: !access.Encrypted(r) && !onThisMachine(r)}
}

// ownPath is a path on this host with its query, or the start page for anything else.
func ownPath(next string) string {
	u, err := url.Parse(next)
	if err != nil || u.Scheme != "" || u.Host != "" || u.Opaque != "" || !strings.HasPrefix(next, "/") ||
		strings.HasPrefix(next, "//") || strings.ContainsAny(next, "\\\x00\r\n\t") || len(next) > maxPath {
		return "/"
	}
	return next
}

// sameOrigin refuses forms of other sites, which could sign somebody in with a token of theirs.
var sameOrigin = http.NewCrossOriginProtection()

func (p *Pages) logIn(ctx context.Context, r *http.Request) reply {
	if wrong := readForm(r); wrong != nil {
		return p.failed(r, wrong)
	}
	page := p.newLogin(r, r.PostForm.Get(nextParam))
	token := access.Text(strings.TrimSpace(r.PostForm.Get(tokenParam)))
	if err := p.cfg.Admit(ctx, token); err != nil {
		wrong := problemOf("", err)
		page.Refused = "The token was refused. It must be one of `trawl tokens create` with the scope search."
		if wrong.Status >= http.StatusInternalServerError && wrong.Status != http.StatusInternalServerError {
			page.Refused = wrong.Text
		}
		return reply{status: http.StatusForbidden, template: "login", data: page}
	}
	return reply{redirect: page.Next, cookie: access.PageCookie(r, token)}
}

func (p *Pages) logOut(_ context.Context, r *http.Request) reply {
	if wrong := readForm(r); wrong != nil {
		return p.failed(r, wrong)
	}
	return reply{redirect: access.LoginPath, cookie: access.PageCookie(r, "")}
}

// readForm reads a form of this site's own pages.
func readForm(r *http.Request) *problem {
	if err := sameOrigin.Check(r); err != nil {
		return &problem{Status: http.StatusForbidden, Text: "The form comes from a page of another site."}
	}
	r.Body = http.MaxBytesReader(nil, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return &problem{Status: http.StatusBadRequest, Text: "The form cannot be read."}
	}
	return nil
}

// onThisMachine reports whether the browser runs on this machine.
func onThisMachine(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return false
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.Unmap().IsLoopback()
}
