package cli

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// callError is a failed call to a router.
type callError struct {
	addr string
	// reached: the connection stands, so the error is the router's.
	reached bool
	error
}

func callFailed(addr string, conn *grpc.ClientConn, err error) error {
	return &callError{addr, conn.GetState() == connectivity.Ready, err}
}

// Unwrap returns the error of the call.
func (e *callError) Unwrap() error { return e.error }

// explain turns an error into advice for the person at the terminal.
func explain(err error) string {
	coded, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		return err.Error()
	}
	s := coded.GRPCStatus()
	if call, ok := errors.AsType[*callError](err); ok && s.Code() == codes.Unavailable {
		if call.reached {
			return fmt.Sprintf("Trawl at %s cannot answer now: %s", call.addr, render.Safe([]byte(s.Message())))
		}
		return fmt.Sprintf("cannot reach Trawl at %s (%s); %s", call.addr, render.Safe([]byte(s.Message())), whyUnreachable(s.Message()))
	}
	var b strings.Builder
	b.WriteString(render.Safe([]byte(withoutField(s))))
	for _, detail := range s.Details() {
		switch d := detail.(type) {
		case *searchv1.QueryError:
			pointAt(&b, queryOf(err), int(d.GetPosition()))
		case *errdetails.BadRequest:
			fieldViolations(&b, d, s.Message())
		case *searchv1.Coverage:
			for line := range render.Gaps(d) {
				b.WriteString("\n  " + render.Safe([]byte(line)))
			}
		}
	}
	return b.String()
}

// withoutField is the message of an error without the field that it begins with, since a command line has none. It keeps that of a rule of
// the protos, which has a reason: the text of such a rule does not say what it is about.
func withoutField(s *status.Status) string {
	message := strings.TrimPrefix(s.Message(), "query: ")
	for _, detail := range s.Details() {
		bad, _ := detail.(*errdetails.BadRequest)
		for _, v := range bad.GetFieldViolations() {
			if v.GetReason() == "" {
				message = strings.TrimPrefix(message, v.GetField()+": ")
			}
		}
	}
	return message
}

// whyUnreachable looks for the cause of a failed connection.
func whyUnreachable(message string) string {
	switch {
	case strings.Contains(message, "first record does not look like a TLS handshake"):
		return "it speaks plain text: leave out --tls and the files"
	case strings.Contains(message, "looked like an HTTP/1.1 header"):
		return "this is an HTTP address, such as that of a router's pages: --addr takes the router's gRPC address, by default " + defaultAddress
	case strings.Contains(message, "error reading server preface"), strings.Contains(message, "connection closed before server preface"):
		return "does it want TLS (--tls, --ca-file), or a certificate of yours (--cert-file)?"
	case strings.Contains(message, "tls: "):
		return "do --ca-file, --cert-file and the name in --addr match its certificates?"
	}
	return "is `trawl up` running there?"
}

// pointAt shows the query with a mark under the byte at position.
func pointAt(b *strings.Builder, query string, position int) {
	if query == "" {
		return
	}
	before := render.Safe([]byte(query[:min(position, len(query))]))
	fmt.Fprintf(b, "\n  %s\n  %s^", render.Safe([]byte(query)), strings.Repeat(" ", len([]rune(before))))
}

// fieldViolations lists the fields that the message does not name already.
func fieldViolations(b *strings.Builder, d *errdetails.BadRequest, message string) {
	for _, v := range d.GetFieldViolations() {
		if !strings.Contains(message, v.GetDescription()) {
			fmt.Fprintf(b, "\n  %s: %s", v.GetField(), render.Safe([]byte(v.GetDescription())))
		}
	}
}
