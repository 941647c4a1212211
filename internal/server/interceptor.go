package server

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/delivery"
)

// interceptors returns the interceptors that run before every handler. The metrics are
// outermost, so that they count the final status of a call. Next is the outcome, which
// turns panics and unknown errors into a status, and then the gate.
func (s *Server) interceptors(m *metrics) (unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) {
	unary = []grpc.UnaryServerInterceptor{m.grpc.UnaryServerInterceptor(), s.unaryOutcome, s.gateUnary}
	stream = []grpc.StreamServerInterceptor{m.grpc.StreamServerInterceptor(), s.streamOutcome, s.gateStream}
	return unary, stream
}

// streamWorkers is how many goroutines a gRPC server keeps for its calls; further
// calls get a goroutine of their own. The stack of a kept goroutine is large enough
// already: growing one takes a tenth of the time of a short call.
var streamWorkers = uint32(4 * runtime.GOMAXPROCS(0))

// grpcOptions puts the limits and the interceptors together. Requests from the network are
// validated after the gate, and their answers are held until they are read, whatever their
// status is.
func (s *Server) grpcOptions(unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) []grpc.ServerOption {
	unary, stream = slices.Insert(slices.Clone(unary), 1, s.answers.Unary), slices.Insert(slices.Clone(stream), 1, s.answers.Stream)
	options := append(append(s.transport(), s.tracing()...),
		grpc.MaxRecvMsgSize(s.cfg.Limits.RequestBytes),
		grpc.MaxSendMsgSize(s.cfg.Limits.ResponseBytes),
		grpc.MaxConcurrentStreams(s.cfg.Limits.Streams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveLeast, PermitWithoutStream: true}),
		grpc.ForceServerCodecV2(delivery.Codec()),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.ChainStreamInterceptor(validateStream),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(streamWorkers),
	)
	if s.early {
		return options // receive validates the request
	}
	return append(options, grpc.ChainUnaryInterceptor(validateUnary))
}

func (s *Server) unaryOutcome(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (resp any, err error) {
	defer func(start time.Time) {
		err = s.outcome(ctx, info.FullMethod, start, recover(), err)
	}(time.Now())
	return next(ctx, req)
}

func (s *Server) streamOutcome(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) (err error) {
	defer func(start time.Time) {
		err = s.outcome(stream.Context(), info.FullMethod, start, recover(), err)
	}(time.Now())
	return next(srv, stream)
}

// outcome logs how a call ended and returns the error for its caller. A status is passed
// on. A panic or an error without a status is logged in full; the caller gets Internal with
// the trace id only, because the text was not written for callers.
func (s *Server) outcome(ctx context.Context, method string, start time.Time, panicked any, err error) error {
	returned := err
	attrs := []slog.Attr{slog.String("method", method), slog.Duration("duration", time.Since(start))}
	_, hasStatus := status.FromError(err)
	switch {
	case panicked != nil:
		s.metrics.panics.Inc()
		returned = internal(ctx)
		attrs = append(attrs, slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
	case hasStatus:
	case ctx.Err() != nil:
		returned = status.FromContextError(ctx.Err()).Err()
	default:
		returned = internal(ctx)
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	code := status.Code(returned)
	s.log.LogAttrs(ctx, levelOf(code), "call", append(attrs, slog.String("code", code.String()))...)
	return returned
}

// internal hides the error from the caller. It names the trace id that the log has.
func internal(ctx context.Context) error {
	return status.Errorf(codes.Internal, "internal error, logged with trace id %s", traceID(ctx))
}

func traceID(ctx context.Context) string { return trace.SpanContextFromContext(ctx).TraceID().String() }

// levelOf is how much a call's end concerns the operator: faults of callers are for
// debugging, those of the process are errors. Refusals under overload are for debugging
// too: metrics count them, and a log line for each would add to the load.
func levelOf(code codes.Code) slog.Level {
	switch code {
	case codes.Internal, codes.Unknown, codes.DataLoss:
		return slog.LevelError
	case codes.Unavailable:
		return slog.LevelWarn
	default:
		return slog.LevelDebug
	}
}
