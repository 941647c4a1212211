package zoekt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"
	"time"

	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// maxBody bounds a request in bytes. It has room for half a million repo IDs.
const maxBody = 8 << 20

const (
	// largeBody is the size in bytes from which a body is large. Only repo IDs make it so.
	largeBody = 64 << 10
	// maxLarge bounds the requests with large bodies at once: with the set of its repo
	// IDs, the largest takes about 30 MiB.
	maxLarge = 16
	// largeWait is how long such a request waits for others to end.
	largeWait = 5 * time.Second
)

// admit waits until the body of a request may be read. Done must follow the answer.
func (h *Handler) admit(r *http.Request) (done func(), err error) {
	if 0 <= r.ContentLength && r.ContentLength <= largeBody {
		return func() {}, nil
	}
	select {
	case h.large <- struct{}{}:
		return func() { <-h.large }, nil
	case <-time.After(largeWait):
		return nil, refused(http.StatusTooManyRequests, "%d requests with more than %d bytes are in progress, which is the limit: try again later", maxLarge, largeBody)
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

// refusal is an error with its HTTP status.
type refusal struct {
	status int
	text   string
}

func (e *refusal) Error() string { return e.text }

func refused(status int, format string, args ...any) error {
	return &refusal{status, fmt.Sprintf(format, args...)}
}

// decode reads the first JSON value of the body. It ignores the case of keys, unknown
// keys, and what follows the value.
func decode(w http.ResponseWriter, r *http.Request, into any) error {
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody)).Decode(into)
	var large *http.MaxBytesError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &large):
		return refused(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes", large.Limit)
	case errors.Is(err, io.EOF):
		return refused(http.StatusBadRequest, "the body is empty: send a JSON object")
	}
	return refused(http.StatusBadRequest, "read the body: %v", err)
}

// problem is the JSON of an error.
type problem struct {
	Error string `json:"Error"`
}

func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	code, text := explain(err)
	// The caller or its deadline caused the others.
	if code == http.StatusInternalServerError || code == http.StatusServiceUnavailable {
		h.log.WarnContext(r.Context(), "zoekt request", "path", r.URL.Path, "status", code, "error", err)
	}
	h.send(w, r, code, problem{text})
}

const internalError = "internal error, see the router's log"

// explain returns the HTTP status and text of an error. It hides the text of an error
// without a status, which was not written for callers.
func explain(err error) (code int, text string) {
	if own, ok := errors.AsType[*refusal](err); ok {
		return own.status, own.text
	}
	s, ok := status.FromError(err)
	switch {
	case ok: // what it wraps is for the log
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		s = status.FromContextError(err)
	default:
		return http.StatusInternalServerError, internalError
	}
	return searchapi.HTTPStatus(s.Code()), s.Message()
}

// send writes v as the whole answer. It fails only if the caller has gone.
func (h *Handler) send(w http.ResponseWriter, r *http.Request, code int, v any) {
	body, _ := buffers.Get().(*bytes.Buffer)
	defer func() {
		if body.Cap() <= keptBuffer {
			buffers.Put(body)
		}
	}()
	body.Reset()
	if err := encode(body, v); err != nil {
		h.log.ErrorContext(r.Context(), "encode the answer to a zoekt request", "path", r.URL.Path, "error", err)
		h.send(w, r, http.StatusInternalServerError, problem{internalError})
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(body.Len()))
	w.WriteHeader(code)
	if _, err := w.Write(body.Bytes()); err != nil {
		h.log.DebugContext(r.Context(), "send the answer to a zoekt request", "path", r.URL.Path, "error", err)
	}
}

// encode writes v as JSON.
func encode(body *bytes.Buffer, v any) error {
	reply, ok := v.(*searchReply)
	if !ok {
		return json.NewEncoder(body).Encode(v) //nolint:wrapcheck // the caller says of what
	}
	text, err := reply.appendJSON(body.AvailableBuffer())
	body.Write(text)
	return err
}

// buffers are reused for later answers, unless they are larger than keptBuffer.
var buffers = sync.Pool{New: func() any { return new(bytes.Buffer) }}

const keptBuffer = 4 << 20
