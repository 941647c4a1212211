package server_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
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
// cannot make the server read any number of requests at once, nor for ever, and those of one
// address leave room for the probes of others.
func TestOpenRequestsAreLimited(t *testing.T) {
	s := run(t, &service{}, asIs, server.WithHeaderGate(known{}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var streams []grpc.ClientStream
	for range 300 { // at most 32 of one address are read at once
		stream, err := s.conn.NewStream(ctx, &grpc.StreamDesc{}, healthv1.Health_Check_FullMethodName)
		if err != nil {
			t.Fatal(err)
		}
		streams = append(streams, stream)
	}
	ended := make(map[codes.Code]int)
	for i, stream := range streams {
		ended[status.Code(stream.RecvMsg(&healthv1.HealthCheckResponse{}))]++
		if i == 0 { // whether the others are still being read or not
			if _, err := healthv1.NewHealthClient(s.from("127.0.0.2")).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
				t.Errorf("a probe from another address: %v", err)
			}
		}
	}
	if ended[codes.ResourceExhausted] == 0 || ended[codes.DeadlineExceeded] < 32 || len(ended) != 2 {
		t.Errorf("requests that never arrive ended with %v", ended)
	}
	if _, err := healthv1.NewHealthClient(s.conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("after that: %v", err)
	}
}

// TestNobodyHoldsOpenStreams: a caller who is not admitted cannot hold streams open, neither of the
// health service nor of others, whether it sends its request or not.
func TestNobodyHoldsOpenStreams(t *testing.T) {
	for name, options := range map[string][]server.Option{"gate": {server.WithHeaderGate(known{})}, "late gate": {server.WithGate(known{})}, "no gate": nil} {
		t.Run(name, func(t *testing.T) {
			s := run(t, &service{}, asIs, options...)
			var streams []grpc.ClientStream
			for i := range 400 {
				stream, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, healthv1.Health_Watch_FullMethodName)
				if err != nil {
					t.Fatal(err)
				}
				if i%2 == 0 {
					_ = stream.SendMsg(&healthv1.HealthCheckRequest{}) // the server may have answered already
					_ = stream.CloseSend()
				}
				streams = append(streams, stream)
			}
			for _, stream := range streams {
				if err := stream.RecvMsg(&healthv1.HealthCheckResponse{}); status.Code(err) != codes.Unimplemented {
					t.Fatalf("a watch: %v", err)
				}
			}
			if options == nil {
				return
			}
			watch, err := s.conn.NewStream(t.Context(), &grpc.StreamDesc{ServerStreams: true}, ingestv1.IngestService_WatchRepo_FullMethodName)
			if err != nil {
				t.Fatal(err)
			}
			if err := watch.RecvMsg(&ingestv1.WatchRepoResponse{}); status.Code(err) != codes.Unauthenticated {
				t.Errorf("a stream of another service: %v", err)
			}
		})
	}
}

// TestOpenPagesAreLimited: requests over HTTP that do not pass the gate and never arrive are limited too,
// and leave room for the probes of other addresses.
func TestOpenPagesAreLimited(t *testing.T) {
	s := run(t, &service{}, asIs, server.WithHeaderGate(known{}))
	var reading atomic.Int64
	s.HandleSigned("POST /form", http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		reading.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
	}))
	refused := make(chan string, 300)
	for range 300 {
		conn := s.connect("127.0.0.2", s.HTTPAddr())
		if _, err := io.WriteString(conn, "POST /form HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		go func() {
			answer := make([]byte, 32)
			n, _ := conn.Read(answer)
			refused <- string(answer[:n])
		}()
	}
	for range 300 - 256 {
		if answer := <-refused; !strings.HasPrefix(answer, "HTTP/1.1 503 ") {
			t.Errorf("a request beyond the limit: %q", answer)
		}
	}
	s.await(func() bool { return reading.Load() == 256 })
	if status, _ := s.page("/healthz"); status != http.StatusOK {
		t.Errorf("a probe: %d", status)
	}
}

// connect connects from an address, until the end of the test.
func (s *shell) connect(from string, to net.Addr) net.Conn {
	s.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(s.t.Context(), to.Network(), to.String())
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// TestConnectionLimits: addresses that hold all connections that they get, in use or not, leave as many
// to others, both to callers and to the probes of /healthz, /readyz and gRPC. Beyond that they are
// closed at once, and when others end there is room again.
func TestConnectionLimits(t *testing.T) {
	const most, greedy = 60, 4
	s := run(t, &service{get: fine}, func(c *server.Config, _ *server.ClientConfig) { c.Limits.Connections = most })
	open := make(map[net.Addr][]net.Conn)
	for _, to := range []net.Addr{s.GRPCAddr(), s.HTTPAddr()} {
		for range most {
			for i := range greedy {
				conn := s.connect(fmt.Sprint("127.0.1.", i), to)
				if to == s.HTTPAddr() { // each sends a request, and stays
					_, _ = io.WriteString(conn, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
				}
				// The server sends first, or answers; a refused connection ends without a byte.
				if n, _ := conn.Read(make([]byte, 1)); n > 0 {
					open[to] = append(open[to], conn)
				}
			}
		}
		if n := len(open[to]); n > most*greedy/(greedy+1) || n < most/2 {
			t.Errorf("%d greedy addresses hold %d of %d connections", greedy, n, most)
		}
	}
	for _, path := range []string{"/healthz", "/readyz"} {
		if status, _ := s.page(path); status != http.StatusOK {
			t.Errorf("%s: %d", path, status)
		}
	}
	if _, err := healthv1.NewHealthClient(s.conn).Check(t.Context(), &healthv1.HealthCheckRequest{}); err != nil {
		t.Errorf("a probe: %v", err)
	}
	if err := s.get(); err != nil {
		t.Errorf("a caller: %v", err)
	}
	s.wantMetric(fmt.Sprintf(`trawl_server_refused_connections_total{component="test",listener="grpc"} %d`, most*greedy-len(open[s.GRPCAddr()])))
	for _, conn := range open[s.GRPCAddr()] {
		conn.Close()
	}
	s.await(func() bool {
		n, _ := s.connect("127.0.1.0", s.GRPCAddr()).Read(make([]byte, 1))
		return n > 0
	})
}
