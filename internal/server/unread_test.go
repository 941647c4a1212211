package server_test

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/internal/delivery"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/tlsfiles/tlstest"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// patient makes a server wait for callers longer than any test takes, with room for that
// many bytes of unread answers.
func patient(unread int64) func(*server.Config, *server.ClientConfig) {
	return func(c *server.Config, _ *server.ClientConfig) {
		c.Limits.UnreadBytes, c.Limits.Patience = unread, time.Hour
	}
}

// impatient makes a server wait a second for callers.
func impatient(c *server.Config, _ *server.ClientConfig) { c.Limits.Patience = time.Second }

// large is an answer that exceeds what a client takes before it is read.
func large() *ingestv1.RepoStatus {
	return &ingestv1.RepoStatus{Name: strings.Repeat("x", 200<<10)}
}

func getLarge(context.Context, *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
	return &ingestv1.GetRepoResponse{Status: large()}, nil
}

// charged is what a message is charged.
func charged(m proto.Message) int64 { return int64(proto.Size(m)) + 4<<10 }

// metric is the value of a metric without labels but component.
func (s *shell) metric(name string) (value int64) {
	s.t.Helper()
	_, body := s.page("/metrics")
	for line := range strings.Lines(body) {
		if text, ok := strings.CutPrefix(line, name+`{component="test"} `); ok {
			var f float64
			if _, err := fmt.Sscan(text, &f); err != nil {
				s.t.Fatal(err)
			}
			return int64(f)
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

// from is a connection from an address. Its windows do not grow.
func (s *shell) from(address string) *grpc.ClientConn {
	s.t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}
	conn, err := grpc.NewClient(s.GRPCAddr().String(), insecureCreds(), grpc.WithInitialWindowSize(64<<10), grpc.WithContextDialer(func(ctx context.Context, to string) (net.Conn, error) {
		return dialer.DialContext(ctx, "tcp", to)
	}))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { conn.Close() })
	return conn
}

// ask calls a method and reads nothing of the answer.
func (s *shell) ask(ctx context.Context, conn *grpc.ClientConn, method string, req proto.Message, options ...grpc.CallOption) grpc.ClientStream {
	s.t.Helper()
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ServerStreams: method == ingestv1.IngestService_WatchRepo_FullMethodName}, method, options...)
	if err != nil {
		s.t.Fatal(err)
	}
	if err := stream.SendMsg(req); err != nil {
		s.t.Fatal(err)
	}
	if err := stream.CloseSend(); err != nil {
		s.t.Fatal(err)
	}
	return stream
}

func (s *shell) askUnary(ctx context.Context, conn *grpc.ClientConn, options ...grpc.CallOption) grpc.ClientStream {
	s.t.Helper()
	return s.ask(ctx, conn, ingestv1.IngestService_GetRepo_FullMethodName, &ingestv1.GetRepoRequest{Name: "x"}, options...)
}

// TestUnreadAnswersAreBounded: a caller that never reads its answers gets half of the bytes that
// may be unread, over any number of connections. Others are answered meanwhile, and when the
// calls are canceled nothing of them is left.
func TestUnreadAnswersAreBounded(t *testing.T) {
	const most, calls = 4 << 20, 60
	s := run(t, &service{get: getLarge}, patient(most))
	each := charged(&ingestv1.GetRepoResponse{Status: large()})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var streams []grpc.ClientStream
	for range 3 {
		conn := s.from("127.0.0.2")
		for range calls / 6 {
			streams = append(streams, s.askUnary(ctx, conn))
			// A server would compress the answer to this one.
			streams = append(streams, s.askUnary(ctx, conn, grpc.UseCompressor("counted")))
		}
	}
	for _, stream := range streams {
		_, _ = stream.Header() // it comes with the answer, or with the refusal
	}
	held := most / 2 / each
	if refused, unread := s.metric("trawl_server_refused_answers_total"), s.metric("trawl_server_unread_bytes"); refused != calls-held || unread != held*each {
		t.Errorf("%d answers of %d bytes were refused and %d bytes are unread, want %d and %d", refused, each, unread, calls-held, held*each)
	}
	if err := s.get(); err != nil {
		t.Errorf("another caller: %v", err)
	}
	if _, err := ingestv1.NewIngestServiceClient(s.from("127.0.0.2")).GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: "x"}); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("the caller who reads nothing: %v", err)
	}
	cancel()
	s.await(func() bool { return s.metric("trawl_server_unread_bytes") == 0 })
}

// holder is a gate that counts the calls in progress.
type holder struct {
	known
	calls *atomic.Int64
}

func (h holder) Unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, next grpc.UnaryHandler) (any, error) {
	h.calls.Add(1)
	if !delivery.Hold(ctx, "token", func() { h.calls.Add(-1) }) {
		return nil, status.Error(codes.Internal, "the call is not held")
	}
	return next(ctx, req)
}

func (h holder) Stream(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, next grpc.StreamHandler) error {
	h.calls.Add(1)
	if !delivery.Hold(stream.Context(), "token", func() { h.calls.Add(-1) }) {
		return status.Error(codes.Internal, "the call is not held")
	}
	return next(srv, stream)
}

// TestCallsLastUntilTheirAnswersAreRead: a call counts as one in progress until its answer is read,
// dropped by the caller, or cut off with its connection; calls that fail or read at once leave nothing.
func TestCallsLastUntilTheirAnswersAreRead(t *testing.T) {
	var calls atomic.Int64
	s := run(t, &service{
		get: func(ctx context.Context, req *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
			switch req.Name {
			case "none":
				return nil, status.Error(codes.NotFound, "nothing")
			case "small":
				return &ingestv1.GetRepoResponse{}, nil
			}
			return getLarge(ctx, req)
		},
		watch: func(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
			return stream.Send(&ingestv1.WatchRepoResponse{Status: large()})
		},
	}, patient(1<<30), server.WithHeaderGate(holder{calls: &calls}))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	conn := s.from("127.0.0.1")
	read := s.askUnary(ctx, conn)
	s.askUnary(ctx, conn) // is dropped
	streamed := s.ask(ctx, conn, ingestv1.IngestService_WatchRepo_FullMethodName, &ingestv1.WatchRepoRequest{Name: "x"})
	each := charged(&ingestv1.GetRepoResponse{Status: large()})
	s.await(func() bool { return s.metric("trawl_server_unread_bytes") == 3*each })
	if n := calls.Load(); n != 3 {
		t.Fatalf("%d calls are in progress, and 3 answers are unread", n)
	}
	for i, stream := range []grpc.ClientStream{read, streamed} {
		resp := []proto.Message{&ingestv1.GetRepoResponse{}, &ingestv1.WatchRepoResponse{}}[i]
		if err := stream.RecvMsg(resp); err != nil || proto.Size(resp) < 200<<10 {
			t.Errorf("the answer that was read late: %d bytes, %v", proto.Size(resp), err)
		}
	}
	s.await(func() bool { return calls.Load() == 1 && s.metric("trawl_server_unread_bytes") == each })
	cancel()
	s.await(func() bool { return calls.Load() == 0 && s.metric("trawl_server_unread_bytes") == 0 })

	again := s.from("127.0.0.1")
	s.askUnary(t.Context(), again)
	s.await(func() bool { return calls.Load() == 1 && s.metric("trawl_server_unread_bytes") == each })
	again.Close()
	s.await(func() bool { return calls.Load() == 0 && s.metric("trawl_server_unread_bytes") == 0 })

	for i := range 200 {
		name := []string{"none", "small"}[i%2]
		if _, err := s.client.GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: name}); (err == nil) != (name == "small") {
			t.Fatalf("%s: %v", name, err)
		}
	}
	s.await(func() bool { return calls.Load() == 0 && s.metric("trawl_server_unread_bytes") == 0 })
}

// TestPeersThatTakeNothingAreCutOff: a stream ends whose caller does not take it, and a connection is
// closed of which nothing is taken, so nothing is left of calls whose caller does nothing at all.
func TestPeersThatTakeNothingAreCutOff(t *testing.T) {
	ended := make(chan error, 1)
	s := run(t, &service{get: func(ctx context.Context, req *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		if req.Name == "small" {
			return fine(ctx, req)
		}
		return getLarge(ctx, req)
	}, watch: func(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
		for {
			if err := stream.Send(&ingestv1.WatchRepoResponse{Status: large()}); err != nil {
				ended <- err
				return err
			}
		}
	}}, impatient)
	conn := s.from("127.0.0.1")
	stream := s.ask(t.Context(), conn, ingestv1.IngestService_WatchRepo_FullMethodName, &ingestv1.WatchRepoRequest{Name: "x"})
	for late := time.Now().Add(time.Minute); ; {
		if time.Now().After(late) {
			t.Fatal("a stream that is not read goes on")
		}
		select {
		case err := <-ended:
			// On a machine that stands still for long, the connection ends first.
			if status.Code(err) != codes.DeadlineExceeded && status.Code(err) != codes.Canceled {
				t.Errorf("a stream that is not read ended with %v", err)
			}
		default: // the connection takes other answers
			_, _ = ingestv1.NewIngestServiceClient(conn).GetRepo(t.Context(), &ingestv1.GetRepoRequest{Name: "small"})
			continue
		}
		break
	}
	unary := s.askUnary(t.Context(), s.from("127.0.0.1"))
	s.await(func() bool {
		return s.metric("trawl_server_cut_off_total") >= 2 && s.metric("trawl_server_unread_bytes") == 0
	})
	for _, cut := range []grpc.ClientStream{stream, unary} {
		for {
			if err := cut.RecvMsg(&ingestv1.GetRepoResponse{}); err != nil {
				if err == io.EOF || status.Code(err) == codes.OK { //nolint:errorlint // as gRPC documents it
					t.Error("an answer that was cut off looks whole")
				}
				break
			}
		}
	}
}

// TestSlowReadersAreServed: a stream whose caller takes message after message goes on.
func TestSlowReadersAreServed(t *testing.T) {
	const messages = 50
	s := run(t, &service{watch: func(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
		for range messages {
			if err := stream.Send(&ingestv1.WatchRepoResponse{Status: large()}); err != nil {
				return err
			}
		}
		return nil
	}}, patient(charged(&ingestv1.WatchRepoResponse{Status: large()})*4))
	stream := s.ask(t.Context(), s.from("127.0.0.1"), ingestv1.IngestService_WatchRepo_FullMethodName, &ingestv1.WatchRepoRequest{Name: "x"})
	for range messages {
		if err := stream.RecvMsg(&ingestv1.WatchRepoResponse{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := stream.RecvMsg(&ingestv1.WatchRepoResponse{}); err != io.EOF { //nolint:errorlint // as gRPC documents it
		t.Errorf("after all messages: %v", err)
	}
	s.await(func() bool { return s.metric("trawl_server_unread_bytes") == 0 })
}

// pageBytes is an answer over HTTP that exceeds what the buffers of a connection hold.
const pageBytes = 16 << 20

func sendPage(ended chan<- error) http.HandlerFunc {
	body := make([]byte, pageBytes)
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.WriteHeader(http.StatusOK)
		_, err := w.Write(body)
		ended <- err
	}
}

// TestUnreadAnswersOverHTTP: what callers over HTTP/1.1 do not read is bounded, refused with a
// reason, and cut off.
func TestUnreadAnswersOverHTTP(t *testing.T) {
	get := func(s *shell, from string) net.Conn {
		t.Helper()
		conn := s.connect(from, s.HTTPAddr())
		if _, err := io.WriteString(conn, "GET /page HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return conn
	}
	ended := make(chan error, 4)
	s := run(t, &service{}, func(c *server.Config, client *server.ClientConfig) {
		patient(4*pageBytes)(c, client)
	})
	s.Handle("GET /page", sendPage(ended))
	conns := []net.Conn{get(s, "127.0.0.2"), get(s, "127.0.0.2")}
	s.await(func() bool { return s.metric("trawl_server_unread_bytes") == 2*pageBytes })
	answer, err := io.ReadAll(get(s, "127.0.0.2"))
	if err != nil || !strings.HasPrefix(string(answer), "HTTP/1.1 429 ") || !strings.Contains(string(answer), "have not been read") {
		t.Errorf("a third page of a caller who reads nothing: %.200q, %v", answer, err)
	}
	if err := next(t, ended); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("its handler got %v", err)
	}
	answer, err = io.ReadAll(get(s, "127.0.0.3"))
	if err != nil || len(answer) < pageBytes {
		t.Errorf("another caller got %d bytes, %v", len(answer), err)
	}
	if answer, err := io.ReadAll(conns[0]); err != nil || len(answer) < pageBytes {
		t.Errorf("who reads at last got %d bytes, %v", len(answer), err)
	}
	conns[1].Close()
	s.await(func() bool { return s.metric("trawl_server_unread_bytes") == 0 })

	cut := run(t, &service{}, impatient)
	ended = make(chan error, 1)
	cut.Handle("GET /page", sendPage(ended))
	get(cut, "127.0.0.1")
	if err := next(t, ended); err == nil {
		t.Error("a page that nobody read was sent")
	}
	cut.await(func() bool { return cut.metric("trawl_server_unread_bytes") == 0 })
}

// TestUnreadAnswersOverHTTP2: a caller that never opens the window of its stream is cut off,
// and others on the connection are not.
func TestUnreadAnswersOverHTTP2(t *testing.T) {
	ca := tlstest.NewCA(t)
	own := ca.Issue("127.0.0.1")
	s := run(t, &service{}, func(c *server.Config, client *server.ClientConfig) {
		impatient(c, client)
		c.TLS.CertFile, c.TLS.KeyFile = own.Cert, own.Key
	})
	s.http.Transport = &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{RootCAs: ca.Pool}}
	defer s.http.CloseIdleConnections()
	ended := make(chan error, 1)
	s.Handle("GET /page", sendPage(ended))
	resp, err := s.http.Get("https://" + s.HTTPAddr().String() + "/page")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := next(t, ended); err == nil {
		t.Error("a page that nobody read was sent")
	}
	if n, err := io.Copy(io.Discard, resp.Body); err == nil || n == pageBytes {
		t.Errorf("what was cut off looks whole: %d bytes", n)
	}
	other, err := s.http.Get("https://" + s.HTTPAddr().String() + "/healthz")
	if err != nil || other.StatusCode != http.StatusOK {
		t.Fatalf("another request: %v", err)
	}
	other.Body.Close()
}
