package fanout

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	otelcodes "go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/status"
)

// Values of trawl.outcome of an attempt's span.
const (
	answeredAttempt  = "answered"
	failedAttempt    = "failed"
	lateAttempt      = "late"      // no answer before the deadline
	abandonedAttempt = "abandoned" // others answered first, or the query ended
)

// startSpan begins the span of a call to a searcher, in the trace that ctx is part of.
func startSpan(ctx context.Context, t Target, shards int, hedge bool) (context.Context, trace.Span) {
	tracer := trace.SpanFromContext(ctx).TracerProvider().Tracer("github.com/trawl-search/trawl/services/router/internal/fanout")
	ctx, span := tracer.Start(ctx, "ask searcher")
	if span.IsRecording() {
		span.SetAttributes(
			attribute.String("trawl.searcher", t.ID), attribute.Int("trawl.shards", shards), attribute.Bool("trawl.hedge", hedge))
	}
	return ctx, span
}

// endAttributes sets how the call ended. Over is true if its deadline passed first. The
// error's text stays out: it may name repos.
func endAttributes(ctx context.Context, span trace.Span, err error, over bool) {
	if !span.IsRecording() {
		return
	}
	outcome := answeredAttempt
	switch {
	case over && errors.Is(context.Cause(ctx), context.Canceled):
		outcome = abandonedAttempt
	case over:
		outcome = lateAttempt
	case err != nil:
		outcome = failedAttempt
	}
	span.SetAttributes(attribute.String("trawl.outcome", outcome))
	if outcome == lateAttempt || outcome == failedAttempt {
		span.SetAttributes(attribute.String("trawl.code", status.Code(err).String()))
		span.SetStatus(otelcodes.Error, "")
	}
}
