// Package zoektjson serves the JSON interface of zoekt, so that programs made
// for it work with a router: POST /api/search and POST /api/list. What differs
// is told in docs/zoekt-compat.md.
//
// It is a translation only. Every question is answered by the service that
// gRPC callers ask, so deadlines, coverage, metrics and traces are the same.
package zoektjson

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Answers are what one request may ask; all of it is about the same state of
// the index.
type Answers interface {
	Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error)
	// EachRepo gives all repos that a List finds to do, some at a time.
	EachRepo(ctx context.Context, req *searchv1.ListRequest, do func([]*searchv1.RepoEntry) error) (*searchv1.Coverage, error)
	GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error)
}

// Limits are the most that one request gets; what is asked beyond is lowered
// to them and told in the answer.
type Limits struct {
	// WallTime of a search or a list.
	WallTime time.Duration
	// Files in one answer.
	Files uint32
	// Bytes of one answer, as it is sent.
	Bytes uint64
}

// Handler serves the interface. It is safe for concurrent use.
type Handler struct {
	// open begins a request; it sees the repos that keep holds for, nil: all.
	open   func(keep func(repo string) bool) Answers
	limits Limits
	log    *slog.Logger
}

// New makes a handler that asks what open returns, once a request.
func New(open func(keep func(repo string) bool) Answers, limits Limits, log *slog.Logger) *Handler {
	return &Handler{open: open, limits: limits, log: log}
}

// Search serves /api/search.
func (h *Handler) Search() http.Handler { return endpoint(h, h.search) }

// List serves /api/list.
func (h *Handler) List() http.Handler { return endpoint(h, h.list) }

// defaultWallTime is what zoekt gives a request that does not say.
const defaultWallTime = 20 * time.Second

// sendTime is what sending the answer may take beyond the time for making it.
const sendTime = time.Minute

// wallTime is the time that a request gets.
func (h *Handler) wallTime(asked time.Duration) time.Duration {
	if asked == 0 {
		asked = defaultWallTime
	}
	return min(asked, h.limits.WallTime)
}

// endpoint reads a request of type Q from the body and sends what answer makes of it.
func endpoint[Q, R any](h *Handler, answer func(context.Context, *Q) (*R, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			h.fail(w, r, refused(http.StatusMethodNotAllowed, "only POST is supported"))
			return
		}
		// Where the connection knows no deadlines there is none to move.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(h.limits.WallTime + sendTime))
		var req Q
		if err := decode(w, r, &req); err != nil {
			h.fail(w, r, err)
			return
		}
		resp, err := answer(r.Context(), &req)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		h.send(w, r, http.StatusOK, resp)
	})
}
