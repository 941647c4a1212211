package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/server"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// ways are how a server can be called.
func (s *shell) ways() map[string]grpc.ClientConnInterface {
	return map[string]grpc.ClientConnInterface{"network": s.conn, "local": s.Local()}
}

// watch returns the messages of a stream of answers, and the error that ends it; nil is a regular end.
func watch(ctx context.Context, client ingestv1.IngestServiceClient, name string) (messages []*ingestv1.WatchRepoResponse, err error) {
	take := func(m *ingestv1.WatchRepoResponse) error {
		messages = append(messages, m)
		return nil
	}
	stream, err := client.WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: name}, server.To(take))
	for err == nil {
		var m *ingestv1.WatchRepoResponse
		if m, err = stream.Recv(); err == nil {
			err = take(m)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return messages, err
}

// TestLocalCallsAreAsOthers: whatever a handler does, a local caller sees the same as
// one over the network.
func TestLocalCallsAreAsOthers(t *testing.T) {
	s := run(t, &service{get: func(ctx context.Context, req *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		switch req.Name {
		case "panics":
			panic("hunter2")
		case "fails":
			return nil, errors.New("hunter2")
		case "refuses":
			return nil, fmt.Errorf("plan: %w", status.Error(codes.FailedPrecondition, "stale"))
		case "waits":
			<-ctx.Done()
			return nil, fmt.Errorf("wait: %w", ctx.Err())
		}
		if err := grpc.SetHeader(ctx, metadata.Pairs("head", "a")); err != nil {
			return nil, err
		}
		if err := grpc.SetTrailer(ctx, metadata.Pairs("trail", "b")); err != nil {
			return nil, err
		}
		return &ingestv1.GetRepoResponse{Status: &ingestv1.RepoStatus{Reason: req.Name}}, nil
	}}, asIs)
	for way, conn := range s.ways() {
		client := ingestv1.NewIngestServiceClient(conn)
		for name, want := range map[string]codes.Code{
			"panics": codes.Internal, "fails": codes.Internal, "refuses": codes.FailedPrecondition, "waits": codes.DeadlineExceeded,
		} {
			ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
			if name != "waits" {
				ctx = t.Context()
			}
			_, err := client.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name})
			cancel()
			if status.Code(err) != want || strings.Contains(fmt.Sprint(err), "hunter2") || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s, %q: %v, want %v", way, name, err, want)
			}
		}
		var header, trailer metadata.MD
		var from peer.Peer
		resp, err := client.GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: "x"}, grpc.Header(&header), grpc.Trailer(&trailer), grpc.Peer(&from))
		if err != nil || resp.Status.Reason != "x" {
			t.Errorf("%s: %v, %v", way, resp, err)
		}
		if len(header["content-type"]) != 1 || fmt.Sprint(header["head"], trailer["trail"]) != "[a] [b]" || from.Addr == nil {
			t.Errorf("%s: header %v, trailer %v, peer %v", way, header, trailer, from)
		}
		if _, err := healthv1.NewHealthClient(conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
			t.Errorf("%s: health: %v", way, err)
		}
		if err := conn.Invoke(t.Context(), "/trawl.ingest.v1.IngestService/Nothing", &ingestv1.GetRepoRequest{}, &ingestv1.GetRepoResponse{}); status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: no such method: %v", way, err)
		}
	}
	s.wantMetric(`trawl_server_panics_total{component="test"} 2`)
	s.wantMetric(`grpc_server_handled_total{component="test",grpc_code="OK",grpc_method="GetRepo",grpc_service="trawl.ingest.v1.IngestService",grpc_type="unary"} 2`)
}

// TestLocalMetadata: a handler sees the metadata that its caller sends, and none that
// the caller itself received.
func TestLocalMetadata(t *testing.T) {
	s := run(t, &service{get: func(ctx context.Context, _ *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		in, _ := metadata.FromIncomingContext(ctx)
		out, _ := metadata.FromOutgoingContext(ctx)
		from, _ := peer.FromContext(ctx)
		return &ingestv1.GetRepoResponse{Status: &ingestv1.RepoStatus{Reason: fmt.Sprint(in["key"], in["secret"], len(out), from.Addr)}}, nil
	}}, asIs)
	ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("secret", "hunter2"))
	ctx = metadata.AppendToOutgoingContext(ctx, "key", "value")
	resp, err := ingestv1.NewIngestServiceClient(s.Local()).GetRepo(ctx, &ingestv1.GetRepoRequest{Name: "x"})
	if want := "[value] [] 0 local"; err != nil || resp.Status.Reason != want {
		t.Errorf("the handler saw %q, %v, want %q", resp.GetStatus().GetReason(), err, want)
	}
}

// TestTakenStreams: a caller that takes the messages of a stream gets the same messages and the same end over the
// network and from a local server, which has taken all of them when the call returns.
func TestTakenStreams(t *testing.T) {
	s := run(t, &service{watch: func(req *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
		stream.SetTrailer(metadata.Pairs("trail", req.Name))
		for i := range 3 {
			if err := stream.Send(&ingestv1.WatchRepoResponse{Status: &ingestv1.RepoStatus{Reason: fmt.Sprint(i)}}); err != nil {
				return fmt.Errorf("hunter2: %w", err)
			}
		}
		switch req.Name {
		case "panics":
			panic("hunter2")
		case "refuses":
			return status.Error(codes.FailedPrecondition, "stale")
		case "waits":
			<-stream.Context().Done()
			return stream.Context().Err()
		}
		return nil
	}}, asIs)
	enough := errors.New("enough")
	for way, conn := range s.ways() {
		for name, want := range map[string]error{
			"ends": io.EOF, "enough": enough, "panics": status.Error(codes.Internal, ""), "refuses": status.Error(codes.FailedPrecondition, ""),
			"waits": status.Error(codes.Canceled, ""),
		} {
			ctx, cancel := context.WithCancel(t.Context())
			var got []string
			take := func(m *ingestv1.WatchRepoResponse) error {
				got = append(got, m.Status.Reason)
				switch {
				case name == "enough" && len(got) == 2:
					return enough
				case name == "waits" && len(got) == 3:
					cancel()
				}
				return nil
			}
			var header, trailer metadata.MD
			stream, err := ingestv1.NewIngestServiceClient(conn).WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: name}, grpc.Header(&header), grpc.Trailer(&trailer), server.To(take))
			if way == "local" && len(got) < 2 {
				t.Errorf("%s: %d messages came before the call returned", name, len(got))
			}
			for err == nil {
				var m *ingestv1.WatchRepoResponse
				if m, err = stream.Recv(); err == nil {
					err = take(m)
				}
			}
			cancel()
			if !errors.Is(err, want) && (status.Code(err) != status.Code(want) || status.Code(err) == codes.Unknown) {
				t.Errorf("%s, %s: ended with %v, want %v", way, name, err, want)
			}
			if wanted := []string{"0", "1", "2"}; fmt.Sprint(got) != fmt.Sprint(wanted[:len(got)]) || len(got) < 2 || len(got) < 3 && name != "enough" {
				t.Errorf("%s, %s: got %q", way, name, got)
			}
			if name == "ends" && (len(header) == 0 || fmt.Sprint(trailer["trail"]) != "[ends]") {
				t.Errorf("%s: header %v, trailer %v", way, header, trailer)
			}
		}
	}
	stream, err := ingestv1.NewIngestServiceClient(s.Local()).WatchRepo(t.Context(), &ingestv1.WatchRepoRequest{}, server.To(func(*ingestv1.GetRepoResponse) error { return nil }))
	if err == nil {
		_, err = stream.Recv()
	}
	if status.Code(err) != codes.Internal {
		t.Errorf("messages of another kind: %v", err)
	}
	if _, err := ingestv1.NewIngestServiceClient(s.Local()).WatchRepo(t.Context(), &ingestv1.WatchRepoRequest{}); status.Code(err) != codes.Unimplemented {
		t.Errorf("a local stream without the option: %v", err)
	}
}

// TestLocalStreamAfterItsDeadline: what a handler says when its time is over, such as what it did not reach, comes to a local caller
// who still waits, and not to one who left.
func TestLocalStreamAfterItsDeadline(t *testing.T) {
	s := run(t, &service{watch: func(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
		<-stream.Context().Done()
		return stream.Send(&ingestv1.WatchRepoResponse{})
	}}, asIs)
	late, cancel := context.WithTimeout(t.Context(), -1)
	defer cancel()
	left, leave := context.WithCancel(t.Context())
	leave()
	for ctx, want := range map[context.Context]codes.Code{late: codes.OK, left: codes.Canceled} {
		taken := 0
		stream, err := ingestv1.NewIngestServiceClient(s.Local()).WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: "x"}, server.To(func(*ingestv1.WatchRepoResponse) error { taken++; return nil }))
		if err == nil {
			_, err = stream.Recv()
		}
		if errors.Is(err, io.EOF) {
			err = nil
		}
		if status.Code(err) != want || (taken == 1) != (want == codes.OK) {
			t.Errorf("%d messages, %v, want %v", taken, err, want)
		}
	}
}

// TestDrainWaitsForLocalCalls: a running call ends well, and a later one fails as if
// the server were gone.
func TestDrainWaitsForLocalCalls(t *testing.T) {
	running, release := make(chan struct{}), make(chan struct{})
	s := run(t, &service{get: func(context.Context, *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		close(running)
		<-release
		return &ingestv1.GetRepoResponse{}, nil
	}}, asIs)
	client := ingestv1.NewIngestServiceClient(s.Local())
	var calling sync.WaitGroup
	calling.Go(func() {
		if _, err := client.GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: "x"}); err != nil {
			t.Errorf("the call that ran: %v", err)
		}
	})
	<-running
	s.stop()
	refused := func() bool {
		var header metadata.MD
		_, err := healthv1.NewHealthClient(s.Local()).Check(t.Context(), &healthv1.HealthCheckRequest{}, grpc.Header(&header))
		if err != nil && (status.Code(err) != codes.Unavailable || len(header) > 0) {
			t.Errorf("a later call: %v, header %v", err, header)
		}
		return err != nil
	}
	s.await(refused)
	select {
	case err := <-s.done:
		t.Fatalf("the server ended (%v) before the call", err)
	default:
	}
	close(release)
	calling.Wait()
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

// TestDrainCutsOffLocalCalls: the contexts of calls that do not end in time are
// ended.
func TestDrainCutsOffLocalCalls(t *testing.T) {
	running := make(chan struct{})
	s := run(t, &service{watch: func(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
		close(running)
		<-stream.Context().Done()
		return stream.Context().Err()
	}}, func(c *server.Config, _ *server.ClientConfig) { c.DrainTimeout = 10 * time.Millisecond })
	ended := make(chan error, 1)
	go func() {
		_, err := watch(t.Context(), ingestv1.NewIngestServiceClient(s.Local()), "x")
		ended <- err
	}()
	<-running
	s.stop()
	if err := <-ended; status.Code(err) != codes.Canceled {
		t.Errorf("the stream ended with %v", err)
	}
	if err := <-s.done; err != nil {
		t.Error(err)
	}
}

// TestLocalInterceptors: a caller's interceptors also run before local calls.
func TestLocalInterceptors(t *testing.T) {
	seen := func(ctx context.Context) string {
		in, _ := metadata.FromIncomingContext(ctx)
		return strings.Join(in["seal"], " ")
	}
	s := run(t, &service{
		get: func(ctx context.Context, _ *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
			return &ingestv1.GetRepoResponse{Status: &ingestv1.RepoStatus{Reason: seen(ctx)}}, nil
		},
		watch: func(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
			return stream.Send(&ingestv1.WatchRepoResponse{Status: &ingestv1.RepoStatus{Reason: seen(stream.Context())}})
		},
	}, asIs)
	conn := server.Intercept(s.Local(),
		func(ctx context.Context, method string, req, reply any, conn *grpc.ClientConn, call grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return call(metadata.AppendToOutgoingContext(ctx, "seal", "unary"), method, req, reply, conn, opts...)
		},
		func(ctx context.Context, desc *grpc.StreamDesc, conn *grpc.ClientConn, method string, call grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
			return call(metadata.AppendToOutgoingContext(ctx, "seal", "stream"), desc, conn, method, opts...)
		})
	client := ingestv1.NewIngestServiceClient(conn)
	if resp, err := client.GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: "x"}); err != nil || resp.Status.Reason != "unary" {
		t.Errorf("%v, %v", resp, err)
	}
	if messages, err := watch(t.Context(), client, "x"); err != nil || len(messages) != 1 || messages[0].Status.Reason != "stream" {
		t.Errorf("%v, %v", messages, err)
	}
}
