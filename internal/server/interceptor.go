package server

import (
	"context"
	"log/slog"
	"runtime"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/status"
)

// interceptors returns what runs before every handler. The metrics are outermost, so that
// they count the final status of a call. Next is the outcome, which turns panics and
// unknown errors into a status, and then the gate.
func (s *Server) interceptors(m *metrics) (unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) {
	unary = []grpc.UnaryServerInterceptor{m.grpc.UnaryServerInterceptor(), s.unaryOutcome, s.gateUnary}
	stream = []grpc.StreamServerInterceptor{m.grpc.StreamServerInterceptor(), s.streamOutcome, s.endWatches, s.gateStream}
	return unary, stream
}

// streamWorkers is how many goroutines a gRPC server keeps for its calls; calls
// beyond them get a goroutine of their own. One that is kept has a stack that is
// large enough: growing it is a tenth of what a short call costs.
var streamWorkers = uint32(4 * runtime.GOMAXPROCS(0))

// grpcOptions puts the limits and the interceptors together. What comes over the
// network is validated, after the gate.
func (s *Server) grpcOptions(unary []grpc.UnaryServerInterceptor, stream []grpc.StreamServerInterceptor) []grpc.ServerOption {
	options := append(append(s.transport(), s.tracing()...),
		grpc.MaxRecvMsgSize(int(s.cfg.MaxRequestBytes)),
		grpc.MaxSendMsgSize(int(s.cfg.MaxResponseBytes)),
		grpc.MaxConcurrentStreams(s.cfg.MaxStreams),
		grpc.MaxHeaderListSize(maxHeaderBytes),
		grpc.ConnectionTimeout(handshakeTimeout),
		grpc.KeepaliveParams(keepalive.ServerParameters{MaxConnectionIdle: maxIdle, Time: keepaliveTime, Timeout: keepaliveTimeout}),
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: keepaliveLeast, PermitWithoutStream: true}),
		grpc.ChainUnaryInterceptor(unary...),
		grpc.ChainStreamInterceptor(stream...),
		grpc.ChainStreamInterceptor(validateStream),
		grpc.WaitForHandlers(true),
		grpc.NumStreamWorkers(streamWorkers),
	)
	if s.early {
		return options // what reads the request validates it
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
	told := err
	attrs := []slog.Attr{slog.String("method", method), slog.Duration("duration", time.Since(start))}
	_, hasStatus := status.FromError(err)
	switch {
	case panicked != nil:
		s.metrics.panics.Inc()
		told = internal(ctx)
		attrs = append(attrs, slog.Any("panic", panicked), slog.String("stack", string(debug.Stack())))
	case hasStatus:
	case ctx.Err() != nil:
		told = status.FromContextError(ctx.Err()).Err()
	default:
		told = internal(ctx)
	}
	if err != nil {
		attrs = append(attrs, slog.String("error", err.Error()))
	}
	code := status.Code(told)
	s.log.LogAttrs(ctx, levelOf(code), "call", append(attrs, slog.String("code", code.String()))...)
	return told
}

// internal hides what happened behind the trace id by which the log has it.
func internal(ctx context.Context) error {
	return status.Errorf(codes.Internal, "internal error, logged with trace id %s", traceID(ctx))
}

func traceID(ctx context.Context) string { return trace.SpanContextFromContext(ctx).TraceID().String() }

// levelOf is how much a call's end concerns the operator: what callers cause is
// for debugging, what the process did wrong is an error. Refusals under overload are for
// debugging too: metrics count them, and a log line each would add to the load.
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
