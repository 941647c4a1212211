package server_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/server"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// inflated counts how often a server inflated a message with the compression
// "counted".
var inflated atomic.Int64

type counted struct{}

func (counted) Name() string                                 { return "counted" }
func (counted) Compress(w io.Writer) (io.WriteCloser, error) { return nopCloser{w}, nil }
func (counted) Decompress(r io.Reader) (io.Reader, error)    { inflated.Add(1); return r, nil }

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// known is a gate that admits calls with the metadata known.
type known struct{}

func (known) enter(ctx context.Context) error {
	if len(metadata.ValueFromIncomingContext(ctx, "known")) == 0 {
		return status.Error(codes.Unauthenticated, "unknown")
	}
	return nil
}

func (k known) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	if err := k.enter(ctx); err != nil {
		return nil, err
	}
	return next(ctx, req)
}

func (k known) Stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	if err := k.enter(stream.Context()); err != nil {
		return err
	}
	return next(srv, stream)
}

func (known) HTTP(http.Handler) http.Handler { return http.NotFoundHandler() }

// TestGateBeforeRequests: a server neither inflates nor decodes messages of callers
// that it does not admit, and treats admitted callers as usual.
func TestGateBeforeRequests(t *testing.T) {
	s := run(t, &service{
		get: fine,
		watch: func(*ingestv1.WatchRepoRequest, grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
			return nil
		},
	}, asIs, server.WithHeaderGate(known{}))
	calls := map[string]func(ctx context.Context, name string) error{
		"unary": func(ctx context.Context, name string) error {
			_, err := s.client.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: name}, grpc.UseCompressor("counted"))
			return err
		},
		"stream": func(ctx context.Context, name string) error {
			stream, err := s.client.WatchRepo(ctx, &ingestv1.WatchRepoRequest{Name: name}, grpc.UseCompressor("counted"))
			if err != nil {
				return err
			}
			if _, err = stream.Recv(); err == io.EOF { //nolint:errorlint // as gRPC documents it
				return nil
			}
			return err
		},
	}
	for kind, call := range calls {
		before := inflated.Load()
		if err := call(t.Context(), "x"); status.Code(err) != codes.Unauthenticated {
			t.Errorf("%s of an unknown caller: %v", kind, err)
		}
		if n := inflated.Load() - before; n != 0 {
			t.Errorf("%s of an unknown caller: %d messages inflated", kind, n)
		}
		ctx := metadata.AppendToOutgoingContext(t.Context(), "known", "yes")
		if err := call(ctx, "x"); err != nil {
			t.Errorf("%s of a known caller: %v", kind, err)
		}
		if n := inflated.Load() - before; n != 1 {
			t.Errorf("%s of a known caller: %d messages inflated", kind, n)
		}
		if err := call(ctx, ""); status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s of a known caller that breaks a rule: %v", kind, err)
		}
	}
	s.wantMetric(`grpc_server_handled_total{component="test",grpc_code="Unauthenticated",grpc_method="GetRepo",grpc_service="trawl.ingest.v1.IngestService",grpc_type="unary"} 1`)
}

// TestOpenRequestsAreLimited: callers of the health service, which do not pass the gate,
// cannot make the server read any number of requests at once, nor for ever.
func TestOpenRequestsAreLimited(t *testing.T) {
	s := run(t, &service{}, asIs, server.WithHeaderGate(known{}))
	health := healthv1.NewHealthClient(s.conn)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var streams []grpc.ClientStream
	for i := range 300 { // at most 64 are read at once
		method, desc := healthv1.Health_Check_FullMethodName, &grpc.StreamDesc{}
		if i%2 == 1 {
			method, desc = healthv1.Health_Watch_FullMethodName, &grpc.StreamDesc{ServerStreams: true}
		}
		stream, err := s.conn.NewStream(ctx, desc, method)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	ended := make(map[codes.Code]int)
	for _, stream := range streams {
		ended[status.Code(stream.RecvMsg(&healthv1.HealthCheckResponse{}))]++
	}
	if ended[codes.ResourceExhausted] == 0 || ended[codes.DeadlineExceeded] < 64 || len(ended) != 2 {
		t.Errorf("requests that never arrive ended with %v", ended)
	}
	if _, err := health.Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// TestConnectionLimits: connections beyond a limit are closed at once, and when others
// end there is room again.
func TestConnectionLimits(t *testing.T) {
	s := run(t, &service{get: fine}, func(c *server.Config, _ *server.ClientConfig) {
		c.Limits.Connections, c.Limits.ConnectionsPerAddress = 5, 3
	})
	if err := s.get(); err != nil { // the first connection
		t.Fatal(err)
	}
	dial := func(from string) net.Conn {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.DialContext(t.Context(), "tcp", s.GRPCAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	// A gRPC server sends first; a refused connection ends without a byte.
	taken := func(conn net.Conn) bool {
		_, err := conn.Read(make([]byte, 1))
		return err == nil
	}
	var open []net.Conn
	for range 2 {
		open = append(open, dial("127.0.0.1"))
	}
	for _, conn := range open {
		if !taken(conn) {
			t.Error("a connection within the limits was closed")
		}
	}
	if taken(dial("127.0.0.1")) {
		t.Error("a fourth connection of one address is open")
	}
	for range 2 {
		if !taken(dial("127.0.0.2")) {
			t.Error("a connection of another address was closed")
		}
	}
	if taken(dial("127.0.0.3")) {
		t.Error("a sixth connection is open")
	}
	s.wantMetric(`trawl_server_refused_connections_total{component="test",limit="address",listener="grpc"} 1`)
	s.wantMetric(`trawl_server_refused_connections_total{component="test",limit="all",listener="grpc"} 1`)
	s.wantMetric(`trawl_server_connections{component="test",listener="grpc"} 5`)
	open[0].Close()
	s.await(func() bool { return taken(dial("127.0.0.1")) })
	if err := s.get(); err != nil {
		t.Errorf("the first connection: %v", err)
	}
}
