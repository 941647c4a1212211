package jsonapi

import (
	"errors"
	"math"
	"net/http"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// refusal is an error whose HTTP status does not follow from its code.
type refusal struct {
	*status.Status
	http int
}

func (e *refusal) Error() string { return e.Message() }

func refused(http int, code codes.Code, format string, args ...any) error {
	return &refusal{status.Newf(code, format, args...), http}
}

func invalid(format string, args ...any) error {
	return refused(http.StatusBadRequest, codes.InvalidArgument, format, args...)
}

// problemOf returns the HTTP status of an error and its google.rpc.Status.
func problemOf(err error) (code int, s *status.Status) {
	if own, ok := errors.AsType[*refusal](err); ok {
		return own.http, own.Status
	}
	s, ok := status.FromError(err)
	if !ok {
		s = status.New(codes.Internal, "internal error") // the text was not written for callers
	}
	return searchapi.HTTPStatus(s.Code()), s
}

// pathsInBodies is said of a path in a body that does not exist: text that was sent in place of base64 is the base64 of another path.
const pathsInBodies = "; a path in a body is base64, and text in an address: ?path=…"

// fail answers with an error.
func (h *Handler) fail(w http.ResponseWriter, r *http.Request, err error) {
	code, s := problemOf(err)
	for _, detail := range s.Details() {
		if retry, ok := detail.(*errdetails.RetryInfo); ok {
			w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(retry.GetRetryDelay().AsDuration().Seconds()))))
		}
	}
	p := written(s)
	if r.Method == http.MethodPost && searchapi.NotFoundOf(err).GetField() == "path" {
		p.Message += pathsInBodies
	}
	h.send(w, r, code, p)
}

// written returns a status that can be encoded: in UTF-8, although it may quote bytes of the request that are not, and without
// details if this program does not know the type of one.
func written(s *status.Status) *spb.Status {
	p := s.Proto()
	p.Message = strings.ToValidUTF8(p.GetMessage(), "\uFFFD")
	if _, err := encoding.Marshal(p); err != nil {
		p.Details = nil
	}
	return p
}
