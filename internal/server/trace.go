package server

import (
	"context"
	"net/http"

	"go.opentelemetry.io/contrib/instrumentation/google.golang.org/grpc/otelgrpc"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// tracing makes each call part of its caller's trace. If no spans are exported, it
// makes ids only: describing a call takes a tenth of the time of a short one.
func (s *Server) tracing() []grpc.ServerOption {
	if s.tel.Records() {
		return []grpc.ServerOption{grpc.StatsHandler(otelgrpc.NewServerHandler(
			otelgrpc.WithTracerProvider(s.tel.TracerProvider()), otelgrpc.WithPropagators(s.propagator),
			otelgrpc.WithFilter(worthTracing)))}
	}
	unary := func(ctx context.Context, req any, info *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
		return next(s.identify(ctx, incoming{ctx}, info.FullMethod), req)
	}
	stream := func(srv any, stream grpc.ServerStream, info *grpc.StreamServerInfo, next grpc.StreamHandler) error {
		ctx := stream.Context()
		return next(srv, streamWithContext{stream, s.identify(ctx, incoming{ctx}, info.FullMethod)})
	}
	return []grpc.ServerOption{grpc.ChainUnaryInterceptor(unary), grpc.ChainStreamInterceptor(stream)}
}

// streamWithContext is a stream under another context.
type streamWithContext struct {
	grpc.ServerStream
	ctx context.Context
}

// Context implements grpc.ServerStream.
func (s streamWithContext) Context() context.Context { return s.ctx }

// tracingHTTP is tracing for a handler.
func (s *Server) tracingHTTP(pattern string, h http.Handler) http.Handler {
	if s.tel.Records() {
		return otelhttp.NewHandler(h, pattern,
			otelhttp.WithTracerProvider(s.tel.TracerProvider()), otelhttp.WithPropagators(s.propagator))
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r.WithContext(s.identify(r.Context(), propagation.HeaderCarrier(r.Header), pattern)))
	})
}

// identify puts the ids of the caller's trace, or new ones, into the context of a
// call.
func (s *Server) identify(ctx context.Context, from propagation.TextMapCarrier, name string) context.Context {
	ctx, span := s.tracer.Start(s.propagator.Extract(ctx, from), name)
	span.End() // it is not exported
	return ctx
}

// incoming reads the metadata of a call.
type incoming struct {
	ctx context.Context //nolint:containedctx // only its metadata is read
}

// Get implements propagation.TextMapCarrier.
func (c incoming) Get(key string) string {
	if values := metadata.ValueFromIncomingContext(c.ctx, key); len(values) > 0 {
		return values[0]
	}
	return ""
}

// Set implements propagation.TextMapCarrier. It changes nothing.
func (incoming) Set(string, string) {}

// Keys implements propagation.TextMapCarrier.
func (c incoming) Keys() (keys []string) {
	md, _ := metadata.FromIncomingContext(c.ctx)
	for key := range md {
		keys = append(keys, key)
	}
	return keys
}
