package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/fair"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// WithHeaderGate is WithGate for a gate that decides by the headers of a call alone. The
// server reads no message of a call before the gate has admitted it, and the gate gets a
// nil request. A caller that is not admitted therefore cannot make the server hold,
// inflate or decode a message. Callers of such a server cannot choose which traces are
// kept either.
func WithHeaderGate(g Gate) Option {
	return func(s *Server) { s.gate, s.early, s.propagator = g, true, s.tel.CallersPropagator() }
}

const (
	// maxOpenCalls bounds the requests that are read at the same time for callers that
	// do not pass the gate: those of the health service. Addresses share them, so
	// that probes get in.
	maxOpenCalls = 64
	// openCallTime bounds the time in which such a request must arrive.
	openCallTime = 5 * time.Second
	// maxOpenRequests bounds HTTP requests in progress that do not pass the gate, such as the
	// many parts of a page whose callers all come through one proxy.
	maxOpenRequests = 512
)

// gatedFirst returns the description of a service whose unary methods run the
// interceptors before they read the request. gRPC reads a request when the generated
// handler asks for it, which otherwise happens before the interceptors.
func (s *Server) gatedFirst(desc *grpc.ServiceDesc) *grpc.ServiceDesc {
	if !s.early {
		return desc
	}
	own := *desc
	own.Methods = make([]grpc.MethodDesc, len(desc.Methods))
	for i, m := range desc.Methods {
		own.Methods[i] = grpc.MethodDesc{MethodName: m.MethodName, Handler: s.handleGated("/"+desc.ServiceName+"/"+m.MethodName, m.Handler)}
	}
	return &own
}

func (s *Server) handleGated(name string, handle grpc.MethodHandler) grpc.MethodHandler {
	return func(srv any, ctx context.Context, receive func(any) error, intercept grpc.UnaryServerInterceptor) (any, error) {
		info := &grpc.UnaryServerInfo{Server: srv, FullMethod: name}
		return intercept(ctx, nil, info, func(ctx context.Context, _ any) (any, error) {
			return handle(srv, ctx, func(m any) error {
				if err := s.receive(ctx, name, m, receive); err != nil {
					return err
				}
				return validate(m)
			}, nil)
		})
	}
}

// receive reads a request. Requests that do not pass the gate are limited in number
// and time. An error ends the call, and with it the reading.
func (s *Server) receive(ctx context.Context, method string, m any, receive func(any) error) error {
	if s.gate == nil || !s.open(method) {
		return receive(m)
	}
	from := ""
	if p, ok := peer.FromContext(ctx); ok {
		from = fair.Network(p.Addr.String())
	}
	if !s.openCalls.Take(from, 1) {
		return searchapi.Overloaded("too many requests without authorization are being read: try again later", openCallTime)
	}
	defer s.openCalls.Give(from, 1)
	received := make(chan error, 1)
	go func() { received <- receive(m) }()
	select {
	case err := <-received:
		return err
	case <-time.After(openCallTime):
		return status.Errorf(codes.DeadlineExceeded, "the request did not arrive within %v", openCallTime)
	}
}
