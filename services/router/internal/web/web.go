// Package web serves the pages for people: search, files, folders, repos and help.
//
// The pages are made on the server and work without scripts; a small script adds results as
// one types, and keys. The service that answers gRPC callers answers every request, so
// visibility, deadlines, coverage, metrics and traces are the same.
//
// Names and contents of repositories are by strangers. They reach a page through html/template
// or appendText only, and the Content-Security-Policy permits no script but the page's own.
// Every page is bounded in bytes.
package web

import (
	"bytes"
	"context"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"

	"github.com/trawl-search/trawl/internal/access"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Answers answers the calls of one page, all from the same state of the index, and as the
// caller in the context may see it.
type Answers interface {
	Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error)
	List(ctx context.Context, req *searchv1.ListRequest) (*searchv1.ListResponse, error)
	Definitions(ctx context.Context, req *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error)
	GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error)
	ListTree(ctx context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error)
	// Repos is how many repos the caller may see.
	Repos(ctx context.Context) (int, error)
	// RepoNames are the names of these repos that contain a text, ascending.
	RepoNames(ctx context.Context, text string) (iter.Seq[string], error)
	// NearestRepos are the names of these repos that differ least from one that does not exist.
	NearestRepos(ctx context.Context, name string) ([]string, error)
	// Unindexed says of a repo that no search sees how far its indexing is; empty if it is not registered.
	Unindexed(ctx context.Context, repo string) string
	// Languages are the known languages of their files.
	Languages(ctx context.Context) ([]string, error)
}

// Statuses lists the repos that are behind. Pages ask it only for callers with the scope ingest.
type Statuses interface {
	ListStaleRepos(ctx context.Context, req *ingestv1.ListStaleReposRequest) (*ingestv1.ListStaleReposResponse, error)
}

// Config is what pages depend on.
type Config struct {
	// Open starts a page.
	Open     func() Answers
	Statuses Statuses
	// Sources are those that say where hosts show files; nil if none do. The caller does not change them.
	Sources func() []*ingestv1.Source
	// Admit returns an error that says why a token is not valid for searching. Admit is nil without
	// authentication.
	Admit func(ctx context.Context, token access.Text) error
	// WallTime bounds the time of a page.
	WallTime time.Duration
	Log      *slog.Logger
}

func (c *Config) sources() []*ingestv1.Source {
	if c.Sources == nil {
		return nil
	}
	return c.Sources()
}

// Pages serves the pages. It is safe for concurrent use.
type Pages struct {
	cfg    Config
	colour *colourist
}

// New returns the pages. They must be closed.
func New(cfg Config) *Pages { return &Pages{cfg: cfg, colour: newColourist()} }

// Close waits for work that pages did not wait for.
func (p *Pages) Close() { p.colour.close() }

// Routes are the handlers by their patterns for http.ServeMux. Callers of pages must be
// authenticated before; the open handlers are for anybody.
func (p *Pages) Routes() (pages, open map[string]http.Handler) {
	pages = map[string]http.Handler{
		"GET /{$}":           p.page(p.search),
		"GET /r/{rest...}":   p.page(p.browse),
		"GET /raw/{rest...}": p.page(p.browse),
		"GET /repos":         p.page(p.repos),
		"GET /help":          p.page(p.help),
		"GET /complete":      p.page(p.complete),
		"GET /def":           p.page(p.definition),
		"GET /search":        p.page(zoektSearch),
		"GET /print":         p.page(zoektPrint),
	}
	open = map[string]http.Handler{"GET /assets/{name}": gzhttp.GzipHandler(http.HandlerFunc(serveAsset)), "GET " + openSearchPath: http.HandlerFunc(openSearch)}
	if p.cfg.Admit != nil {
		open["GET "+access.LoginPath] = p.page(p.login)
		open["POST "+access.LoginPath] = p.page(p.logIn)
		open["POST /logout"] = p.page(p.logOut)
	}
	return pages, open
}

// reply is a page that is to be sent.
type reply struct {
	status   int
	template string
	data     any
	// redirect is where to go instead, and cookie what to keep; nil for nothing.
	redirect string
	cookie   *http.Cookie
	// raw sends something that is not a page.
	raw func(w http.ResponseWriter)
}

// page makes a handler from a function that makes a page. Pages are compressed: no other site can have one sent with the
// cookie of the reader, so nobody can guess what is in it from its length.
func (p *Pages) page(answer func(ctx context.Context, r *http.Request) reply) http.Handler {
	return gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		protect(w.Header())
		if foreign(r) {
			http.Error(w, "pages of other sites may link to this one, not embed or fetch it", http.StatusForbidden)
			return
		}
		ctx, cancel := context.WithTimeout(r.Context(), p.cfg.WallTime)
		defer cancel()
		p.send(w, r, answer(ctx, r))
	}))
}

// send sends a page, or the part of it that a script asks for.
func (p *Pages) send(w http.ResponseWriter, r *http.Request, reply reply) {
	if reply.cookie != nil {
		http.SetCookie(w, reply.cookie)
	}
	if reply.redirect != "" {
		w.Header().Set("Location", reply.redirect)
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	if reply.raw != nil {
		reply.raw(w)
		return
	}
	if reply.template == "login" {
		// Without any referrer, a form of this site would look like one of another site.
		w.Header().Set("Referrer-Policy", "same-origin")
	}
	name := "page"
	if param(r, partParam) != "" {
		name = "main"
	}
	var body bytes.Buffer
	if err := templates()[reply.template].ExecuteTemplate(&body, name, reply.data); err != nil {
		p.cfg.Log.ErrorContext(r.Context(), "make a page", "template", reply.template, "error", err)
		http.Error(w, "the page could not be made", http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(reply.status)
	if r.Method == http.MethodHead {
		return
	}
	if _, err := w.Write(body.Bytes()); err != nil {
		p.cfg.Log.DebugContext(r.Context(), "send a page", "error", err) // the reader has gone
	}
}

// partParam asks for the part of a page that changes as one types.
const partParam = "part"

// policy lets a page load its own script, style and icon, fetch and submit to its own host, and
// nothing else. Nobody may frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets the headers by which browsers keep a page from other sites.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "private, no-cache")
}

// foreign reports whether a page of another site makes a request other than to navigate here. Such
// a page cannot read the answer, but it could learn from the time that the answer takes. Browsers
// report where a request comes from; other programs do not.
func foreign(r *http.Request) bool {
	switch r.Header.Get("Sec-Fetch-Site") {
	case "", "none", "same-origin":
		return false
	}
	navigates := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return !navigates || r.Method != http.MethodGet && r.Method != http.MethodHead
}

// frame is what every page has.
type frame struct {
	Title string
	// Query is the text in the search box.
	Query string
	// Login: the reader can sign out.
	Login bool
	// Path of the page.
	Path string
}

func (p *Pages) frame(r *http.Request, title, query string) frame {
	return frame{Title: title, Query: query, Login: p.cfg.Admit != nil, Path: r.URL.Path}
}

// Nowhere answers what no other handler does. It is not for the cookies of pages, since interfaces for programs are below it, too.
func (p *Pages) Nowhere() http.Handler { return p.page(p.nowhere) }

func (p *Pages) nowhere(_ context.Context, r *http.Request) reply {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return p.failed(r, &problem{Status: http.StatusMethodNotAllowed, Text: "Pages take GET only. For programs there is the interface that /api/openapi.json describes."})
	}
	return p.failed(r, &problem{Status: http.StatusNotFound, Text: "There is no page " + plain(cut(r.URL.Path, nameBytes)) + ". For programs there is the interface that /api/openapi.json describes."})
}

func (p *Pages) help(_ context.Context, r *http.Request) reply {
	return reply{status: http.StatusOK, template: "help", data: struct{ frame }{p.frame(r, "Help", "")}}
}

// plural is a number with its noun.
func plural[N int | uint32 | uint64](n N, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%s %s", grouped(uint64(n)), many)
}

// grouped is a number with commas between thousands.
func grouped(n uint64) string {
	text := fmt.Sprint(n)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// param is a parameter of the address of a page.
func param(r *http.Request, name string) string { return r.URL.Query().Get(name) }
