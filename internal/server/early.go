package server

import (
	"context"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
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
	// maxOpenRequests bounds the requests that are read at the same time for callers that
	// do not pass the gate: those of the health service.
	maxOpenRequests = 64
	// openRequestTime bounds the time in which such a request must arrive.
	openRequestTime = 5 * time.Second
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
				if err := s.receive(name, m, receive); err != nil {
					return err
				}
				return validate(m)
			}, nil)
		})
	}
}

// openStream is a stream that does not pass the gate.
type openStream struct {
	grpc.ServerStream
	server *Server
	method string
}

// RecvMsg implements grpc.ServerStream.
func (o openStream) RecvMsg(m any) error {
	return o.server.receive(o.method, m, o.ServerStream.RecvMsg)
}

// receive reads a request. Requests that do not pass the gate are limited in number
// and time. An error ends the call, and with it the reading.
func (s *Server) receive(method string, m any, receive func(any) error) error {
	if s.gate == nil || !s.open(method) {
		return receive(m)
	}
	select {
	case s.openRequests <- struct{}{}:
		defer func() { <-s.openRequests }()
	default:
		return status.Errorf(codes.ResourceExhausted, "%d requests without authorization are being read, which is the limit: try again later", maxOpenRequests)
	}
	received := make(chan error, 1)
	go func() { received <- receive(m) }()
	late := time.NewTimer(openRequestTime)
	defer late.Stop()
	select {
	case err := <-received:
		return err
	case <-late.C:
		return status.Errorf(codes.DeadlineExceeded, "the request did not arrive within %v", openRequestTime)
	}
}
