package server_test

import (
	"context"
	"io"
	"net/http"
	"sync"
	"testing"

	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"

	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// startUntraced starts a server that exports no spans.
func startUntraced(t *testing.T, impl *service) (*server.Server, *telemetry.Telemetry) {
	t.Helper()
	var logs telemetry.Config
	logs.SetDefaults()
	tel, err := telemetry.Start(t.Context(), logs, telemetry.Identity{Service: "test", Version: "test"}, telemetry.WithLogs(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	var cfg server.Config
	cfg.SetDefaults()
	cfg.GRPC, cfg.HTTP, cfg.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	s, err := server.New(cfg, tel)
	if err != nil {
		t.Fatal(err)
	}
	ingestv1.RegisterIngestServiceServer(s, impl)
	s.Handle("GET /ids", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, traceOf(r.Context())) }))
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := s.Run(ctx); err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(func() { stop(); running.Wait() })
	return s, tel
}

// traceOf is the id of a handler's trace, empty if it is invalid.
func traceOf(ctx context.Context) string {
	if ids := trace.SpanContextFromContext(ctx); ids.IsValid() {
		return ids.TraceID().String()
	}
	return "none"
}

// TestTraceIDsWithoutCollector: if no spans are exported, calls are still in their
// callers' traces, or in new ones if callers have none.
func TestTraceIDsWithoutCollector(t *testing.T) {
	s, tel := startUntraced(t, &service{
		get: func(ctx context.Context, _ *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
			return &ingestv1.GetRepoResponse{Status: &ingestv1.RepoStatus{Reason: traceOf(ctx)}}, nil
		},
		watch: func(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
			return stream.Send(&ingestv1.WatchRepoResponse{Status: &ingestv1.RepoStatus{Reason: traceOf(stream.Context())}})
		},
	})
	plain, err := grpc.NewClient(s.GRPCAddr().String(), insecureCreds())
	if err != nil {
		t.Fatal(err)
	}
	defer plain.Close()
	var cfg server.ClientConfig
	cfg.SetDefaults()
	ours, err := server.Dial(s.GRPCAddr().String(), cfg, insecure.NewCredentials(), tel)
	if err != nil {
		t.Fatal(err)
	}
	defer ours.Close()

	const id, parent = "0123456789abcdef0123456789abcdef", "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"
	other := metadata.AppendToOutgoingContext(t.Context(), "traceparent", parent)
	role, _ := tel.Tracer("test").Start(t.Context(), "a role that calls another") //nolint:spancheck // it only has ids
	for what, c := range map[string]struct {
		conn grpc.ClientConnInterface
		ctx  context.Context
		want string // empty: any
	}{
		"another program": {plain, other, id}, "no trace": {plain, t.Context(), ""},
		"a role": {ours, role, traceOf(role)}, "a role here": {s.Local(), role, traceOf(role)},
	} {
		client := ingestv1.NewIngestServiceClient(c.conn)
		got, err := client.GetRepo(c.ctx, &ingestv1.GetRepoRequest{Name: "x"})
		if in := got.GetStatus().GetReason(); err != nil || in == "none" || c.want != "" && in != c.want {
			t.Errorf("%s: a call is in trace %q, %v, want %q", what, in, err, c.want)
		}
		messages, err := watch(c.ctx, client, "x")
		if err != nil || len(messages) != 1 {
			t.Fatalf("%s: %d messages, %v", what, len(messages), err)
		}
		if in := messages[0].GetStatus().GetReason(); in == "none" || c.want != "" && in != c.want {
			t.Errorf("%s: a stream is in trace %q, want %q", what, in, c.want)
		}
	}
	for _, want := range []string{id, ""} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.HTTPAddr().String()+"/ids", nil)
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			req.Header.Set("Traceparent", parent)
		}
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || len(body) != 32 || want != "" && string(body) != want {
			t.Errorf("a request is in trace %q, %v, want %q", body, err, want)
		}
	}
}
