package delivery

import (
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protojson"

	"github.com/trawl-search/trawl/internal/fair"
)

// HTTP is the middleware of an HTTP server. Handlers need no deadlines for writing: each part
// of an answer has the time of patience, and what a handler writes is charged while it
// waits. An answer whose first part is refused is replaced by an error.
func (a *Answers) HTTP(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ctx, c := a.begin(r.Context(), fair.Network(r.RemoteAddr))
		defer c.end()
		out := &writer{ResponseWriter: w, call: c, conn: http.NewResponseController(w)}
		next.ServeHTTP(out, r.WithContext(ctx))
		if out.cut {
			panic(http.ErrAbortHandler) //nolint:forbidigo // how a handler cuts off an answer, so that it does not look complete
		}
		out.sendHeader()
		out.extend()
	})
}

// writer charges for what is written.
type writer struct {
	http.ResponseWriter

	call *call
	conn *http.ResponseController
	// code is the status that the handler wants, and sent whether it was sent.
	code int
	sent bool
	err  error
	// cut means that a part of an answer that had begun was refused.
	cut bool
}

// Unwrap is for http.ResponseController.
func (w *writer) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter. The status waits for the first part of the
// answer, which may be refused.
func (w *writer) WriteHeader(code int) {
	switch {
	case code < http.StatusOK:
		w.ResponseWriter.WriteHeader(code)
	case w.code == 0:
		w.code = code
	}
}

func (w *writer) sendHeader() {
	if !w.sent && w.code != 0 {
		w.ResponseWriter.WriteHeader(w.code)
	}
	w.sent = true
}

// extend gives the caller the time of patience to take a part.
func (w *writer) extend() {
	// A connection without deadlines has none to move.
	_ = w.conn.SetWriteDeadline(time.Now().Add(w.call.answers.patience))
}

// Write implements http.ResponseWriter.
func (w *writer) Write(p []byte) (n int, err error) {
	if w.err != nil {
		return 0, w.err
	}
	caller, err := w.call.charge(int64(len(p)))
	if err != nil {
		w.err = err
		w.refuse()
		return 0, err
	}
	defer w.call.give(caller, int64(len(p)))
	w.sendHeader()
	for more := true; more && err == nil; more = n < len(p) {
		var sent int
		w.extend()
		sent, err = w.ResponseWriter.Write(p[n:min(n+chunk, len(p))])
		n += sent
	}
	w.err = err
	return n, err
}

// refuse sends the error instead of an answer that has not begun. An answer that has begun is cut off.
func (w *writer) refuse() {
	if w.sent {
		w.cut = true
		return
	}
	w.sent = true
	header := w.Header()
	header.Del("Content-Length")
	header.Del("Content-Encoding")
	header.Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
	w.extend()
	_ = WriteError(w.ResponseWriter, http.StatusTooManyRequests, status.Convert(w.err))
}

// WriteError sends an error as the whole answer, in a form that combines zoekt's interface and google.rpc.Status. It fails only if the
// caller has gone.
func WriteError(w http.ResponseWriter, code int, s *status.Status) error {
	body := struct {
		Error   string
		Code    codes.Code        `json:"code"`
		Message string            `json:"message"`
		Details []json.RawMessage `json:"details"`
	}{s.Message(), s.Code(), s.Message(), []json.RawMessage{}}
	for _, detail := range s.Proto().GetDetails() {
		if text, err := protojson.Marshal(detail); err == nil { // else its type is one that this program does not know
			body.Details = append(body.Details, text)
		}
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	return json.NewEncoder(w).Encode(body) //nolint:wrapcheck // it is that of Write
}

// Flush implements http.Flusher.
func (w *writer) Flush() { _ = w.FlushError() }

// FlushError is for http.ResponseController.
func (w *writer) FlushError() error {
	w.sendHeader()
	w.extend()
	return w.conn.Flush()
}
