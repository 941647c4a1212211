// Package zoekt serves zoekt's interfaces, so that programs made for zoekt work with a
// router: WebserverService over gRPC, and as JSON POST /api/search and POST /api/list.
// docs/zoekt-compat.md lists the differences.
//
// The package only translates, and has one model of an answer for both encodings: the types
// of the JSON. The service that answers Trawl's own callers answers every request, so
// deadlines, coverage, metrics and traces are the same.
package zoekt

import (
	"cmp"
	"context"
	"iter"
	"log/slog"
	"net/http"
	"time"

	"github.com/trawl-search/trawl/internal/access"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Answers answers the calls of one request, all from the same state of the index.
type Answers interface {
	Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error)
	// EachBatch passes the files of a Search to do as they are found, none of them divided, and the account at the end.
	EachBatch(ctx context.Context, req *searchv1.SearchRequest, do func(*searchv1.StreamSearchResponse) error) error
	// EachRepo passes all repos that a List finds to do, in batches.
	EachRepo(ctx context.Context, req *searchv1.ListRequest, do func([]*searchv1.RepoEntry) error) (*searchv1.Coverage, error)
	GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error)
	// Looking begins to look at all repos for the caller, who is charged for the time until done.
	Looking(ctx context.Context) (done func(), err error)
	// Identified are the repos that a search sees and to which the operator gave ids. They end with ctx.
	Identified(ctx context.Context) (iter.Seq2[uint32, string], error)
	// RepoIDs returns a function for the ids that the operator gave these repos; 0 where there is none.
	RepoIDs(ctx context.Context) (func(repo string) uint32, error)
}

// Limits bound one request. Options beyond them are lowered, and the answer names them.
type Limits struct {
	// WallTime of a search or a list.
	WallTime time.Duration
	// Files in one answer.
	Files uint32
	// Bytes of one answer, as it is sent in JSON. Messages are smaller.
	Bytes uint64
}

// within bounds a request by the time that it asks for, zero for as much as there is.
func (l Limits) within(ctx context.Context, asked time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, min(cmp.Or(asked, l.WallTime), l.WallTime))
}

// Open starts a request. It sees the repos for whose name and id keep holds; nil keeps all.
type Open func(keep func(repo string, id uint32) bool) Answers

// Handler serves the JSON. It is safe for concurrent use.
type Handler struct {
	open   Open
	limits Limits
	// large are the slots of requests with large bodies.
	large chan struct{}
	log   *slog.Logger
}

// New returns a handler that calls open once for each request.
func New(open Open, limits Limits, log *slog.Logger) *Handler {
	return &Handler{open: open, limits: limits, large: make(chan struct{}, maxLarge), log: log}
}

// Search serves /api/search.
func (h *Handler) Search() http.Handler { return endpoint(h, h.search) }

// List serves /api/list.
func (h *Handler) List() http.Handler { return endpoint(h, h.list) }

// defaultWallTime is what zoekt gives a request in JSON without MaxWallTime.
const defaultWallTime = 20 * time.Second

// endpoint reads a request of type Q from the body, and sends the result of answer.
func endpoint[Q, R any](h *Handler, answer func(context.Context, links, *Q) (*R, error)) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodPost {
			w.Header().Set("Allow", http.MethodPost)
			h.fail(w, r, refused(http.StatusMethodNotAllowed, "only POST is supported"))
			return
		}
		done, err := h.admit(r)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		defer done()
		var req Q
		if err := decode(w, r, &req); err != nil {
			h.fail(w, r, err)
			return
		}
		resp, err := answer(r.Context(), links(access.Origin(r)), &req)
		if err != nil {
			h.fail(w, r, err)
			return
		}
		h.send(w, r, http.StatusOK, resp)
	})
}
