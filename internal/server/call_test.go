package server_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/server"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestPanicEndsOnlyTheCall(t *testing.T) {
	s := run(t, &service{
		get: func(context.Context, *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) { panic("hunter2") },
		watch: func(*ingestv1.WatchRepoRequest, grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
			panic(errors.New("hunter2"))
		},
	}, asIs)
	for range 2 {
		if err := s.get(); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("panic in a call: %v, want Internal without its text", err)
		}
	}
	stream, err := s.client.WatchRepo(t.Context(), &ingestv1.WatchRepoRequest{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Recv(); status.Code(err) != codes.Internal || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("panic in a stream: %v, want Internal without its text", err)
	}
	s.wantMetric(`trawl_server_panics_total{component="test"} 3`)
	if logs := s.logs.String(); !strings.Contains(logs, `"panic":"hunter2"`) || !strings.Contains(logs, "call_test.go") {
		t.Errorf("the panic or its stack is not in the log:\n%s", logs)
	}
}

func TestErrorsOfHandlers(t *testing.T) {
	var answer error
	s := run(t, &service{get: func(ctx context.Context, _ *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		return nil, answer
	}}, asIs)
	for _, c := range []struct {
		err  error
		code codes.Code
		text string // part of the caller's error
	}{
		{status.Error(codes.NotFound, "no repo x"), codes.NotFound, "no repo x"},
		{fmt.Errorf("plan: %w", status.Error(codes.FailedPrecondition, "stale")), codes.FailedPrecondition, "plan: "},
		{errors.New("hunter2"), codes.Internal, "internal error, logged with trace id "},
		{context.DeadlineExceeded, codes.Internal, "internal error"}, // not the deadline of the call
	} {
		answer = c.err
		err := s.get()
		if status.Code(err) != c.code || !strings.Contains(err.Error(), c.text) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("error %v was told as %v, want %v with %q", c.err, err, c.code, c.text)
		}
	}
	if logs := s.logs.String(); !strings.Contains(logs, `"level":"ERROR"`) || !strings.Contains(logs, "hunter2") {
		t.Errorf("the error that was kept from the caller is not in the log:\n%s", logs)
	}
}

// TestRefusalsAreCountedNotLogged: under overload the log has no line for each call,
// and an operator sees the refusals in the metrics.
func TestRefusalsAreCountedNotLogged(t *testing.T) {
	s := run(t, &service{get: func(context.Context, *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		return nil, status.Error(codes.ResourceExhausted, "too many queries")
	}}, asIs)
	if err := s.get(); status.Code(err) != codes.ResourceExhausted {
		t.Fatalf("%v, want ResourceExhausted", err)
	}
	s.wantMetric(`grpc_server_handled_total{component="test",grpc_code="ResourceExhausted",grpc_method="GetRepo",grpc_service="trawl.ingest.v1.IngestService",grpc_type="unary"} 1`)
	if logs := s.logs.String(); strings.Contains(logs, `"level":"WARN"`) || strings.Contains(logs, `"level":"ERROR"`) {
		t.Errorf("a refusal is logged:\n%s", logs)
	}
}

func TestTheCallersDeadlineIsNoInternalError(t *testing.T) {
	told := make(chan error, 20)
	s := run(t, &service{get: func(ctx context.Context, _ *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		<-ctx.Done()
		told <- ctx.Err()
		return nil, fmt.Errorf("search: %w", ctx.Err())
	}}, asIs)
	for limit, arrived := 50*time.Millisecond, false; !arrived; limit *= 2 {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		if _, err := s.client.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: "x"}); status.Code(err) != codes.DeadlineExceeded {
			t.Errorf("error %v", err)
		}
		cancel()
		select {
		case <-told:
			arrived = true
		case <-time.After(limit): // a slow machine may not have sent the call in time
		}
	}
	s.await(func() bool { return strings.Contains(s.logs.String(), `"code":"`) })
	if logs := s.logs.String(); strings.Contains(logs, `"level":"ERROR"`) || !strings.Contains(logs, `"code":"DeadlineExceeded"`) && !strings.Contains(logs, `"code":"Canceled"`) {
		t.Errorf("log:\n%s", logs)
	}
}

func TestValidation(t *testing.T) {
	s := run(t, &service{get: fine, watch: func(*ingestv1.WatchRepoRequest, grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
		t.Error("the handler was called")
		return nil
	}}, asIs)
	put := func(req *ingestv1.PutRepoRequest) error {
		_, err := s.client.PutRepo(t.Context(), req)
		return err
	}
	watch := func() error {
		stream, err := s.client.WatchRepo(t.Context(), &ingestv1.WatchRepoRequest{})
		if err != nil {
			return err
		}
		_, err = stream.Recv()
		return err
	}
	for _, c := range []struct {
		err                    error
		field, limit, reasonIs string
	}{
		{put(&ingestv1.PutRepoRequest{}), "url", "1 character", "STRING_MIN_LEN"},
		{put(&ingestv1.PutRepoRequest{Url: "x", Name: strings.Repeat("secret", 200)}), "name", "1024 bytes", "STRING_MAX_BYTES"},
		{put(&ingestv1.PutRepoRequest{Url: "x", Branches: []string{"a", ""}}), "branches[1]", "1 character", "STRING_MIN_LEN"},
		{watch(), "name", "1 character", "STRING_MIN_LEN"},
	} {
		st := status.Convert(c.err)
		if st.Code() != codes.InvalidArgument || !strings.HasPrefix(st.Message(), c.field+": ") || strings.Contains(st.Message(), "secret") {
			t.Errorf("%s: error %v", c.field, c.err)
		}
		var violations []*errdetails.BadRequest_FieldViolation
		for _, d := range st.Details() {
			if bad, ok := d.(*errdetails.BadRequest); ok {
				violations = bad.GetFieldViolations()
			}
		}
		if len(violations) != 1 || violations[0].GetField() != c.field || !strings.HasSuffix(violations[0].GetDescription(), c.limit) || violations[0].GetReason() != c.reasonIs {
			t.Errorf("%s: details %v, want one that names the limit %q", c.field, violations, c.limit)
		}
	}
	if err := put(&ingestv1.PutRepoRequest{Url: "x", Branches: make([]string, 1024)}); len(status.Convert(err).Details()) != 1 {
		t.Errorf("many mistakes: %v", err)
	} else if n := len(status.Convert(err).Details()[0].(*errdetails.BadRequest).GetFieldViolations()); n != 20 {
		t.Errorf("%d violations are listed, want 20", n)
	}
	if err := put(&ingestv1.PutRepoRequest{Url: "x"}); err != nil {
		t.Errorf("a good request: %v", err)
	}
}

func TestLimits(t *testing.T) {
	large := strings.Repeat("x", 5000)
	impl := &service{get: func(_ context.Context, req *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		if req.GetName() == "large" {
			return &ingestv1.GetRepoResponse{Status: &ingestv1.RepoStatus{Reason: large}}, nil
		}
		return &ingestv1.GetRepoResponse{}, nil
	}}
	get := func(s *shell, name string, header ...string) error {
		ctx := metadata.AppendToOutgoingContext(t.Context(), header...)
		_, err := s.client.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name})
		return err
	}
	s := run(t, impl, func(c *server.Config, _ *server.ClientConfig) {
		c.Limits.RequestBytes, c.Limits.ResponseBytes = 4<<10, 4<<10
	})
	if err := get(s, large); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large request: %v", err)
	}
	if err := get(s, "large"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a large response: %v", err)
	}
	if err := get(s, "small", "key", strings.Repeat("x", 100<<10)); err == nil {
		t.Error("100 KiB of headers were taken")
	}
	if err := get(s, "small"); err != nil {
		t.Errorf("a small request after that: %v", err)
	}
	s = run(t, impl, func(_ *server.Config, c *server.ClientConfig) { c.MaxResponseBytes = 4 << 10 })
	if err := get(s, "large"); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("a response too large for the client: %v", err)
	}
}

func TestTracesGoFromCallerToHandler(t *testing.T) {
	var inside trace.SpanContext
	s := run(t, &service{get: func(ctx context.Context, _ *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		inside = trace.SpanContextFromContext(ctx)
		return &ingestv1.GetRepoResponse{}, nil
	}}, asIs)
	ctx, span := s.telemetry().Tracer("test").Start(t.Context(), "caller")
	if _, err := s.client.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: "x"}); err != nil {
		t.Fatal(err)
	}
	span.End()
	if _, err := healthv1.NewHealthClient(s.conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Fatal(err)
	}
	if inside.TraceID() != span.SpanContext().TraceID() {
		t.Errorf("the handler is in trace %s, the caller in %s", inside.TraceID(), span.SpanContext().TraceID())
	}
	s.await(func() bool { return len(s.spans.GetSpans()) >= 3 })
	var kinds []string
	for _, span := range s.spans.GetSpans() {
		kinds = append(kinds, fmt.Sprint(span.SpanKind, " ", span.Name))
	}
	slices.Sort(kinds)
	const method = " trawl.ingest.v1.IngestService/GetRepo"
	if want := []string{"client" + method, "internal caller", "server" + method}; !slices.Equal(kinds, want) {
		t.Errorf("spans %q, want %q and none of the health check", kinds, want)
	}
	if want := `"trace_id":"` + inside.TraceID().String() + `"`; !strings.Contains(s.logs.String(), want) {
		t.Errorf("the call is logged without %s:\n%s", want, s.logs)
	}
}

func TestReflection(t *testing.T) {
	s := run(t, &service{}, asIs)
	stream, err := reflectionv1.NewServerReflectionClient(s.conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatal(err)
	}
	answer, err := stream.Recv()
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, service := range answer.GetListServicesResponse().GetService() {
		names = append(names, service.GetName())
	}
	if !slices.Contains(names, "trawl.ingest.v1.IngestService") || !slices.Contains(names, "grpc.health.v1.Health") {
		t.Errorf("services %q", names)
	}
	if err := stream.CloseSend(); err != nil {
		t.Error(err)
	}
	for err == nil {
		_, err = stream.Recv()
	}
}

func TestCallsAreCounted(t *testing.T) {
	s := run(t, &service{get: fine}, asIs)
	for range 3 {
		if err := s.get(); err != nil {
			t.Fatal(err)
		}
	}
	const of = `component="test",grpc_method="GetRepo",grpc_service="trawl.ingest.v1.IngestService",grpc_type="unary"`
	s.wantMetric(`grpc_server_started_total{` + of + `} 3`)
	s.wantMetric(`grpc_server_handling_seconds_count{` + of + `} 3`)
	s.wantMetric(`grpc_server_handled_total{component="test",grpc_code="OK",grpc_method="GetRepo",grpc_service="trawl.ingest.v1.IngestService",grpc_type="unary"} 3`)
	s.wantMetric(`grpc_server_handled_total{component="test",grpc_code="OK",grpc_method="WatchRepo",grpc_service="trawl.ingest.v1.IngestService",grpc_type="server_stream"} 0`)
}
