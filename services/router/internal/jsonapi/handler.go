// Package jsonapi serves trawl.search.v1 and trawl.ingest.v1 as JSON over HTTP, for programs
// and people without gRPC. docs/api.md describes it.
//
// The package only translates: each request becomes a call of the gRPC service, so answers,
// limits, tokens, metrics and traces are the same. The google.api.http options of the protos
// say which path calls which method. A stream becomes server-sent events.
package jsonapi

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Path is where the interface is: all of its paths are below it.
const Path = "/api/v1/"

// Limits bound one request.
type Limits struct {
	// WallTime is the most time of a call that is not a stream.
	WallTime time.Duration
	// BodyBytes is the largest body.
	BodyBytes int64
}

// Handler serves all paths of the interface. It is safe for concurrent use.
type Handler struct {
	conn   grpc.ClientConnInterface
	limits Limits
	routes map[string]*route
	log    *slog.Logger
}

// New returns a handler that calls the services through conn, with the token of each
// request. Requests are validated before.
func New(conn grpc.ClientConnInterface, limits Limits, log *slog.Logger) (*Handler, error) {
	routes, err := routesOf(services())
	if err != nil {
		return nil, err
	}
	return &Handler{conn: conn, limits: limits, routes: routes, log: log}, nil
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	route := h.routes[r.URL.Path]
	if route == nil {
		h.fail(w, r, refused(http.StatusNotFound, codes.NotFound, "there is no path %s: /api/openapi.json lists all", r.URL.Path))
		return
	}
	if !slices.Contains(route.verbs, r.Method) {
		verbs := strings.Join(route.verbs, ", ")
		w.Header().Set("Allow", verbs)
		h.fail(w, r, refused(http.StatusMethodNotAllowed, codes.Unimplemented, "%s takes %s", route.path, verbs))
		return
	}
	req, err := h.read(w, r, route)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	timeout, err := h.timeout(r, route)
	if err != nil {
		h.fail(w, r, err)
		return
	}
	ctx := r.Context()
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	ctx = metadata.NewOutgoingContext(ctx, metadata.MD{"authorization": r.Header.Values("Authorization")})
	if route.stream != nil {
		h.stream(ctx, w, r, route, req)
		return
	}
	resp := route.out.New().Interface()
	if err := h.conn.Invoke(ctx, route.call, req, resp); err != nil {
		h.fail(w, r, err)
		return
	}
	h.send(w, r, http.StatusOK, resp)
}

// timeoutParameter is a parameter of all paths: how long the call may take, such as 500ms.
const timeoutParameter = "timeout"

// timeout is the time of a call; zero is no limit.
func (h *Handler) timeout(r *http.Request, route *route) (time.Duration, error) {
	most := h.limits.WallTime
	if route.stream != nil {
		most = 0 // searches have their own limit, and to watch takes as long as the caller wants
	}
	text := r.URL.Query().Get(timeoutParameter)
	if text == "" {
		return most, nil
	}
	asked, err := time.ParseDuration(text)
	if err != nil || asked <= 0 {
		return 0, invalid("timeout: %q is not a time such as 500ms or 5s", text)
	}
	if most > 0 {
		asked = min(asked, most)
	}
	return asked, nil
}

// maxAnswer bounds an answer that is one JSON document, as gRPC would send it. JSON takes up
// to seven times the bytes, all of which are in memory at once.
const maxAnswer = 8 << 20

// checkSize refuses a request for an answer that is too large for one JSON document.
func checkSize(req proto.Message) error {
	var asked uint64
	switch req := req.(type) {
	case interface {
		GetOptions() *searchv1.SearchOptions
	}:
		asked = req.GetOptions().GetMaxBytes()
	case interface{ GetMaxBytes() uint64 }:
		asked = req.GetMaxBytes()
	}
	if asked > maxAnswer {
		return invalid("maxBytes: the most is %d over HTTP: ask for the rest in further requests, or use a stream", maxAnswer)
	}
	return nil
}

// send writes a message as the whole answer. It fails only if the caller has gone.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, code int, m proto.Message) {
	addTexts(m)
	body, err := encode(m)
	if err != nil {
		h.log.ErrorContext(r.Context(), "encode an answer as JSON", "path", r.URL.Path, "error", err)
		code, body = http.StatusInternalServerError, []byte(`{"code":13,"message":"the answer cannot be written as JSON, see the router's log"}`)
	}
	body = append(body, '\n')
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("Cache-Control", "no-store")
	header.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(code)
	if _, err := w.Write(body); err != nil {
		h.log.DebugContext(r.Context(), "send an answer", "path", r.URL.Path, "error", err)
	}
}

// readBody reads the whole body of a request.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, h.limits.BodyBytes))
	switch {
	case err == nil:
		return body, nil
	case errors.As(err, new(*http.MaxBytesError)):
		return nil, refused(http.StatusRequestEntityTooLarge, codes.InvalidArgument, "the body is larger than %d bytes", h.limits.BodyBytes)
	}
	return nil, invalid("read the body: %v", err)
}
