package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/server"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	"github.com/trawl-search/trawl/internal/testrun"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

func TestReadiness(t *testing.T) {
	s := run(t, &service{}, asIs)
	check := func(serving healthv1.HealthCheckResponse_ServingStatus, httpStatus int, body ...string) {
		t.Helper()
		for _, name := range []string{"", "trawl.ingest.v1.IngestService"} {
			answer, err := healthv1.NewHealthClient(s.conn).Check(t.Context(), &healthv1.HealthCheckRequest{Service: name})
			if err != nil || answer.GetStatus() != serving {
				t.Errorf("health of %q: %v, error %v; want %v", name, answer.GetStatus(), err, serving)
			}
		}
		status, page := s.page("/readyz")
		if status != httpStatus {
			t.Errorf("/readyz has status %d, want %d", status, httpStatus)
		}
		for _, part := range body {
			if !strings.Contains(page, part) {
				t.Errorf("/readyz lacks %q:\n%s", part, page)
			}
		}
	}
	check(healthv1.HealthCheckResponse_SERVING, 200, "ready\n")
	etcd, shards := s.Readiness().Condition("etcd"), s.Readiness().Condition("shards")
	check(healthv1.HealthCheckResponse_NOT_SERVING, 503, "etcd: not checked yet (for 0s)\n", "shards: not checked yet")
	etcd.Met()
	check(healthv1.HealthCheckResponse_NOT_SERVING, 503, "shards: not checked yet")
	shards.Unmet("3 of 7 are\nhere " + strings.Repeat("x", 5000))
	check(healthv1.HealthCheckResponse_NOT_SERVING, 503, "shards: 3 of 7 are here xxx")
	if unmet := s.Readiness().Unmet(); len(unmet) != 1 || unmet[0].Name != "shards" || len(unmet[0].Reason) > 1100 {
		t.Errorf("unmet: %+v", unmet)
	}
	s.Readiness().Condition("shards").Met() // the same one, by name
	check(healthv1.HealthCheckResponse_SERVING, 200, "ready\n")
	etcd.Unmet("")
	check(healthv1.HealthCheckResponse_NOT_SERVING, 503, "etcd: no reason given")
	if status, body := s.page("/healthz"); status != 200 || body != "alive\n" {
		t.Errorf("/healthz: status %d, %q", status, body)
	}
}

func TestSinceIsOfTheChange(t *testing.T) {
	tel, _ := telemetrytest.New(t)
	var cfg server.Config
	cfg.SetDefaults()
	s, err := server.New(cfg, tel)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	synctest.Test(t, func(t *testing.T) {
		etcd := s.Readiness().Condition("etcd")
		etcd.Met()
		time.Sleep(time.Minute)
		lost := time.Now()
		etcd.Unmet("away")
		time.Sleep(time.Minute)
		etcd.Unmet("still away")
		for _, u := range s.Readiness().Unmet() {
			if u.Name == "etcd" && (u.Reason != "still away" || !u.Since.Equal(lost)) {
				t.Errorf("%+v, want since %v", u, lost)
			}
		}
	})
}

// blocked is a service whose calls begin and then wait.
func blocked() (impl *service, began chan struct{}, release chan struct{}) {
	began, release = make(chan struct{}, 10), make(chan struct{})
	return &service{get: func(ctx context.Context, _ *ingestv1.GetRepoRequest) (*ingestv1.GetRepoResponse, error) {
		began <- struct{}{}
		select {
		case <-release:
			return &ingestv1.GetRepoResponse{}, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}}, began, release
}

func TestDrainLetsRunningCallsEnd(t *testing.T) {
	impl, began, release := blocked()
	s := run(t, impl, func(c *server.Config, _ *server.ClientConfig) { c.DrainTimeout = time.Hour })
	running := make(chan error)
	go func() { running <- s.get() }()
	<-began
	s.stop()
	<-s.Draining()
	if status, page := s.page("/readyz"); status != http.StatusServiceUnavailable || !strings.HasPrefix(page, "server: shutting down") {
		t.Errorf("/readyz while draining: status %d, %q", status, page)
	}
	// A new connection is refused: the port is closed.
	s.await(func() bool {
		late, err := grpc.NewClient(s.GRPCAddr().String(), insecureCreds())
		if err != nil {
			t.Fatal(err)
		}
		defer late.Close()
		_, err = healthv1.NewHealthClient(late).Check(t.Context(), &healthv1.HealthCheckRequest{})
		return status.Code(err) == codes.Unavailable
	})
	select {
	case err := <-s.done:
		t.Fatalf("run returned with a call running: %v", err)
	default:
	}
	close(release)
	if err := <-running; err != nil {
		t.Errorf("the call that was running: %v", err)
	}
	if err := <-s.done; err != nil {
		t.Errorf("run: %v", err)
	}
}

func TestDrainServesDuringTheDelay(t *testing.T) {
	for delay := 50 * time.Millisecond; !servesDuring(t, delay); delay *= 2 {
		if delay > testrun.Patience { // more than a slow machine needs
			t.Fatal("the delay was always over")
		}
	}
}

// servesDuring reports whether the delay was not over when a call had been answered.
func servesDuring(t *testing.T, delay time.Duration) bool {
	t.Helper()
	s := run(t, &service{get: fine}, func(c *server.Config, _ *server.ClientConfig) { c.DrainDelay = delay })
	s.stop()
	s.await(func() bool { return !s.Ready() })
	called := s.get()
	over := false
	select {
	case <-s.Draining():
		over = true
	default:
		if called != nil {
			t.Errorf("a call during the delay: %v", called)
		}
	}
	if err := <-s.done; err != nil {
		t.Errorf("run: %v", err)
	}
	return !over
}

func TestDrainCutsOffWhatDoesNotEnd(t *testing.T) {
	impl, began, _ := blocked()
	s := run(t, impl, func(c *server.Config, _ *server.ClientConfig) { c.DrainTimeout = 20 * time.Millisecond })
	running := make(chan error)
	go func() { running <- s.get() }()
	<-began
	s.stop()
	if err := <-running; status.Code(err) != codes.Unavailable && status.Code(err) != codes.Canceled {
		t.Errorf("the call that did not end: %v", err)
	}
	if err := <-s.done; err != nil {
		t.Errorf("run: %v", err)
	}
	if !strings.Contains(s.logs.String(), "gRPC calls cut off") {
		t.Errorf("the log does not say so:\n%s", s.logs)
	}
}

// TestDrainEndsStreams: handlers of streams that never end by themselves watch Draining.
func TestDrainEndsStreams(t *testing.T) {
	var s *shell
	impl := &service{watch: func(_ *ingestv1.WatchRepoRequest, stream grpc.ServerStreamingServer[ingestv1.WatchRepoResponse]) error {
		if err := stream.Send(&ingestv1.WatchRepoResponse{}); err != nil {
			return err
		}
		<-s.Draining()
		return nil
	}}
	s = run(t, impl, func(c *server.Config, _ *server.ClientConfig) { c.DrainTimeout = time.Hour })
	repo, err := s.client.WatchRepo(t.Context(), &ingestv1.WatchRepoRequest{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := repo.Recv(); err != nil {
		t.Fatal(err)
	}
	s.stop()
	if err := <-s.done; err != nil { // long before the hour is over
		t.Errorf("run: %v", err)
	}
	if _, err := repo.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("the watch of a repo ended by %v", err)
	}
}

func TestListenSaysWhichAddress(t *testing.T) {
	taken := run(t, &service{}, asIs)
	tel, _ := telemetrytest.New(t)
	for name, change := range map[string]func(*server.Config){
		"gRPC": func(c *server.Config) { c.GRPC = taken.GRPCAddr().String() },
		"HTTP": func(c *server.Config) { c.HTTP = taken.HTTPAddr().String() },
	} {
		var cfg server.Config
		cfg.SetDefaults()
		cfg.GRPC, cfg.HTTP = "127.0.0.1:0", "127.0.0.1:0"
		change(&cfg)
		s, err := server.New(cfg, tel.For(name))
		if err != nil {
			t.Fatal(err)
		}
		if s.GRPCAddr() != nil || s.HTTPAddr() != nil {
			t.Error("there is an address before Listen")
		}
		if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "listen for "+name+" on 127.0.0.1:") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestCloseWithoutRun(t *testing.T) {
	tel, _ := telemetrytest.New(t)
	var cfg server.Config
	cfg.SetDefaults()
	cfg.GRPC, cfg.HTTP = testrun.Address(t), "127.0.0.1:0"
	s, err := server.New(cfg, tel)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
	if err := s.Run(t.Context()); err == nil {
		t.Error("a closed server runs")
	}
	again, err := server.New(cfg, tel.For("again"))
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Listen(t.Context()); err != nil { // its address is free again
		t.Error(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

func TestMetricsAreRegisteredOncePerComponent(t *testing.T) {
	tel, _ := telemetrytest.New(t)
	var cfg server.Config
	cfg.SetDefaults()
	for i, want := range []bool{true, false} {
		s, err := server.New(cfg, tel.For("one"))
		if (err == nil) != want {
			t.Errorf("server %d of one component: %v", i, err)
		}
		if err == nil {
			defer s.Close()
		}
	}
}

func TestConfigMistakes(t *testing.T) {
	for key, change := range map[string]func(*server.Config){
		"grpc":          func(c *server.Config) { c.GRPC = "nowhere" },
		"http":          func(c *server.Config) { c.HTTP = ":http" },
		"drain-delay":   func(c *server.Config) { c.DrainDelay = -1 },
		"drain-timeout": func(c *server.Config) { c.DrainTimeout = 2 * time.Hour },
	} {
		var cfg server.Config
		refuses(t, &cfg, key, func() { change(&cfg) })
	}
}

// refuses checks that a change of the defaults is an error about one key.
func refuses(t *testing.T, cfg config.Settings, key string, change func()) {
	t.Helper()
	cfg.SetDefaults()
	if err := cfg.Validate(); err != nil {
		t.Fatalf("the defaults: %v", err)
	}
	change()
	if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), key+" = ") {
		t.Errorf("%s: error %v", key, err)
	}
}

func TestHTTPHandlers(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	var cfg server.Config
	cfg.SetDefaults()
	cfg.GRPC, cfg.HTTP, cfg.DrainDelay, cfg.Limits.BodyBytes = "127.0.0.1:0", "127.0.0.1:0", 0, 1024
	s, err := server.New(cfg, tel)
	if err != nil {
		t.Fatal(err)
	}
	s.Handle("POST /echo", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			http.Error(w, err.Error(), http.StatusRequestEntityTooLarge)
			return
		}
		w.Write(body)
	}))
	s.Handle("POST /panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("hunter2") }))
	s.Handle("POST /abort", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	if err := s.Listen(ctx); err != nil {
		t.Fatal(err)
	}
	go func() { done <- s.Run(ctx) }()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	const parent = "0123456789abcdef0123456789abcdef"
	post := func(path, body, header string) (int, string) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, fmt.Sprintf("http://%s%s", s.HTTPAddr(), path), strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Traceparent", "00-"+parent+"-0123456789abcdef-01")
		req.Header.Set("X-Long", header)
		resp, err := client.Do(req)
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Error(err)
		}
		return resp.StatusCode, string(answer)
	}
	for _, c := range []struct {
		path, body, header string
		status             int
		answer             string
	}{
		{"/echo", "hello", "", 200, "hello"},
		{"/echo", strings.Repeat("x", 1025), "", 413, "too large"},
		{"/echo", "hello", strings.Repeat("x", 100<<10), 431, ""},
		{"/panic", "", "", 500, "internal error, logged with trace id " + parent},
		{"/abort", "", "", 0, "EOF"},
		{"/nothing", "", "", 404, ""},
		{"/readyz", "", "", 405, ""},
	} {
		if status, answer := post(c.path, c.body, c.header); status != c.status || !strings.Contains(answer, c.answer) || strings.Contains(answer, "hunter2") {
			t.Errorf("%s: status %d, %q; want %d with %q", c.path, status, answer, c.status, c.answer)
		}
	}
	stop()
	if err := <-done; err != nil {
		t.Error(err)
	}
	for _, span := range spans.GetSpans() {
		if span.SpanContext.TraceID().String() != parent {
			t.Errorf("span %s is not in the caller's trace", span.Name)
		}
	}
	if len(spans.GetSpans()) < 3 {
		t.Errorf("%d spans, want one for each request handled", len(spans.GetSpans()))
	}
}
