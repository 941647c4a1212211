package server_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/encoding"

	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestMain(m *testing.M) {
	encoding.RegisterCompressor(counted{}) // before any server starts
	goleak.VerifyTestMain(m)
}

// service is a service whose methods a test defines.
type service struct {
	ingestv1.UnimplementedIngestServiceServer
	get   func(context.Context, *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error)
	watch func(*ingestv1.WatchRepoRequest, grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error
}

func (s *service) PutRepo(context.Context, *ingestv1.PutRepoRequest) (*ingestv1.PutRepoResponse, error) {
	return &ingestv1.PutRepoResponse{}, nil
}

func (s *service) GetRepo(ctx context.Context, req *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
	return s.get(ctx, req)
}

func (s *service) WatchRepo(req *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
	return s.watch(req, stream)
}

// fine is a GetRepo with an empty answer.
func fine(context.Context, *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
	return &ingestv1.GetRepoResponse{}, nil
}

// shell is a server that runs, and a client of it.
type shell struct {
	*server.Server
	t      *testing.T
	conn   *grpc.ClientConn
	client ingestv1.IngestServiceClient
	http   *http.Client
	spans  *tracetest.InMemoryExporter
	logs   *logBuffer
	stop   func()     // ends Run's context
	done   chan error // what Run returned
}

// logBuffer holds a server's log, and can be read while the server runs.
type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// run starts a server on free ports. At the end of the test it must have
// stopped without an error.
func run(t *testing.T, impl *service, change func(*server.Config, *server.ClientConfig), options ...server.Option) *shell {
	t.Helper()
	var cfg server.Config
	var client server.ClientConfig
	cfg.SetDefaults()
	client.SetDefaults()
	cfg.GRPC, cfg.HTTP, cfg.DrainDelay = "127.0.0.1:0", "127.0.0.1:0", 0
	change(&cfg, &client)

	s := &shell{t: t, spans: tracetest.NewInMemoryExporter(), logs: &logBuffer{}, done: make(chan error, 1)}
	tel := s.telemetry()
	var err error
	if s.Server, err = server.New(cfg, tel.For("test"), options...); err != nil {
		t.Fatal(err)
	}
	ingestv1.RegisterIngestServiceServer(s.Server, impl)
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.conn, err = server.Dial(s.GRPCAddr().String(), client, insecure.NewCredentials(), tel); err != nil {
		t.Fatal(err)
	}
	s.client = ingestv1.NewIngestServiceClient(s.conn)
	s.http = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: time.Minute}
	s.start()
	return s
}

func asIs(*server.Config, *server.ClientConfig) {}

func (s *shell) telemetry() *telemetry.Telemetry {
	var cfg telemetry.Config
	cfg.SetDefaults()
	cfg.LogLevel = "debug"
	tel, err := telemetry.Start(context.Background(), cfg, telemetry.Identity{Service: "test"}, telemetry.WithLogs(s.logs), telemetry.WithExporter(s.spans))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() {
		if err := tel.Shutdown(context.Background()); err != nil {
			s.t.Error(err)
		}
	})
	return tel
}

// start runs the server, and stops it at the end of the test.
func (s *shell) start() {
	ctx, stop := context.WithCancel(context.Background())
	s.stop = stop
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		s.done <- s.Run(ctx)
	}()
	s.t.Cleanup(func() {
		s.conn.Close()
		stop()
		<-returned
		select {
		case err := <-s.done:
			if err != nil {
				s.t.Errorf("run: %v", err)
			}
		default: // the test has checked it
		}
	})
	s.await(func() bool { return s.GRPCAddr() != nil && s.Ready() })
}

// Ready reports whether the server is ready.
func (s *shell) Ready() bool { return s.Readiness().Ready() }

// await waits until is holds.
func (s *shell) await(is func() bool) {
	s.t.Helper()
	testrun.Until(s.t, "what must happen", is)
}

// next is the next value of a channel, which must come within a minute.
func next[T any](t *testing.T, from <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-from:
	case <-time.After(time.Minute):
		t.Fatal("nothing came within a minute")
	}
	return value
}

// page gets an HTTP path.
func (s *shell) page(path string) (status int, body string) {
	s.t.Helper()
	resp, err := s.http.Get("http://" + s.HTTPAddr().String() + path)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	if resp.Header.Get("X-Content-Type-Options") != "nosniff" {
		s.t.Errorf("%s may be sniffed", path)
	}
	return resp.StatusCode, string(content)
}

// get calls the service.
func (s *shell) get() error {
	_, err := s.client.GetRepo(s.t.Context(), &ingestv1.GetRepoRequest{Name: "x"})
	return err
}

// wantMetric fails the test unless /metrics has the line.
func (s *shell) wantMetric(line string) {
	s.t.Helper()
	status, body := s.page("/metrics")
	if status != http.StatusOK || !strings.Contains(body, "\n"+line+"\n") {
		s.t.Errorf("/metrics, status %d, lacks %s:\n%s", status, line, body)
	}
}

// insecureCreds is how a client speaks to the loopback interface.
func insecureCreds() grpc.DialOption {
	return grpc.WithTransportCredentials(insecure.NewCredentials())
}
