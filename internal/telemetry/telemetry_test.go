package telemetry_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	tracev1 "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start starts telemetry that logs to a buffer.
func start(t *testing.T, change func(*telemetry.Config)) (*telemetry.Telemetry, *bytes.Buffer) {
	t.Helper()
	var cfg telemetry.Config
	cfg.SetDefaults()
	change(&cfg)
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	var logs bytes.Buffer
	tel, err := telemetry.Start(t.Context(), cfg, telemetry.Identity{Service: "trawl-test", Version: "v1", Instance: "one"}, telemetry.WithLogs(&logs))
	if err != nil {
		t.Fatal(err)
	}
	return tel, &logs
}

func shutdown(t *testing.T, tel *telemetry.Telemetry) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if err := tel.Shutdown(ctx); err != nil {
		t.Error(err)
	}
}

func TestLogsCarryTheTrace(t *testing.T) {
	tel, logs := start(t, func(*telemetry.Config) {})
	defer shutdown(t, tel)
	ctx, span := tel.Tracer("test").Start(t.Context(), "work")
	tel.For("searcher").Logger().With("a", 1).InfoContext(ctx, "inside")
	span.End()
	tel.Logger().Info("outside")
	tel.Logger().Debug("too little to be logged")

	var inside, outside map[string]any
	lines := strings.Split(strings.TrimSpace(logs.String()), "\n")
	if len(lines) != 2 || json.Unmarshal([]byte(lines[0]), &inside) != nil || json.Unmarshal([]byte(lines[1]), &outside) != nil {
		t.Fatalf("want two lines of JSON, have %q", lines)
	}
	if want := span.SpanContext().TraceID().String(); inside["trace_id"] != want || inside["span_id"] != span.SpanContext().SpanID().String() {
		t.Errorf("%v lacks the trace id %s or the span id", inside, want)
	}
	if inside["component"] != "searcher" || inside["a"] != 1.0 || !strings.HasSuffix(inside["time"].(string), "Z") {
		t.Errorf("%v lacks an attribute, or its time is not in UTC", inside)
	}
	if _, has := outside["trace_id"]; has {
		t.Errorf("%v has a trace id", outside)
	}
}

func TestTextLogs(t *testing.T) {
	tel, logs := start(t, func(c *telemetry.Config) { c.LogFormat, c.LogLevel = "text", "warn" })
	defer shutdown(t, tel)
	tel.Logger().Info("left out")
	tel.Logger().Warn("kept")
	if got := logs.String(); !strings.Contains(got, "level=WARN msg=kept") || strings.Contains(got, "left out") {
		t.Errorf("logged %q", got)
	}
}

func TestComponentsShareARegistry(t *testing.T) {
	tel, _ := start(t, func(*telemetry.Config) {})
	defer shutdown(t, tel)
	for _, tel := range []*telemetry.Telemetry{tel, tel.For("router"), tel.For("router").For("searcher")} {
		c := prometheus.NewCounter(prometheus.CounterOpts{Name: "trawl_things_total", Help: "Things."})
		if err := tel.Metrics().Register(c); err != nil {
			t.Fatal(err)
		}
	}
	families, err := tel.Gatherer().Gather()
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, f := range families {
		found[f.GetName()] = f.String()
	}
	things := found["trawl_things_total"]
	for _, component := range []string{"trawl-test", "router", "searcher"} {
		if !strings.Contains(things, `value:"`+component+`"`) {
			t.Errorf("the counter of %s is not among %s", component, things)
		}
	}
	if build := found["trawl_build_info"]; !strings.Contains(build, `value:"v1"`) || found["go_goroutines"] == "" {
		t.Errorf("the process says of itself: %s", build)
	}
}

func TestSpansReachTheCollector(t *testing.T) {
	kept := telemetrytest.NewCollector(t)
	tel, _ := start(t, func(c *telemetry.Config) { c.OTLPEndpoint = kept.URL })
	_, span := tel.Tracer("test").Start(t.Context(), "work")
	span.RecordError(errors.New("a secret"))
	span.SetStatus(codes.Error, "another secret")
	span.End()
	shutdown(t, tel)
	spans := kept.Spans()
	if len(spans) != 1 || spans[0].Name != "work" || spans[0].Service != "trawl-test" {
		t.Fatalf("the collector has the spans %v", spans)
	}
	if got := fmt.Sprint(spans[0].Resource); got != "map[service.instance.id:one service.name:trawl-test service.version:v1]" {
		t.Errorf("they are from %s", got)
	}
	if spans[0].Status.GetCode() != tracev1.Status_STATUS_CODE_ERROR || strings.Contains(spans[0].String(), "secret") {
		t.Errorf("the span tells %v, want an error without its text", spans[0])
	}
}

func TestACollectorThatIsAwayStopsNothing(t *testing.T) {
	tel, _ := start(t, func(c *telemetry.Config) { c.OTLPEndpoint = "http://127.0.0.1:1" })
	_, span := tel.Tracer("test").Start(t.Context(), "work")
	span.End()
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := tel.Shutdown(ctx); err == nil {
		t.Error("the spans went where nobody listens")
	}
}

// TestLateErrorsAreNotLogged: an exporter that reports an error after the shutdown writes into no log, which may be closed.
func TestLateErrorsAreNotLogged(t *testing.T) {
	tel, logs := start(t, func(*telemetry.Config) {})
	otel.Handle(errors.New("early"))
	shutdown(t, tel)
	otel.Handle(errors.New("late"))
	if log := logs.String(); !strings.Contains(log, "early") || strings.Contains(log, "late") {
		t.Errorf("the log is %q", log)
	}
}

func TestSampling(t *testing.T) {
	tel, _ := start(t, func(c *telemetry.Config) { c.TraceSampling = 0 })
	defer shutdown(t, tel)
	_, span := tel.Tracer("test").Start(t.Context(), "work")
	if c := span.SpanContext(); !c.IsValid() || c.IsSampled() {
		t.Errorf("span context %+v, want a trace id that is not sampled", c)
	}
	// The caller's decision counts.
	carrier := propagation.MapCarrier{"traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01"}
	_, span = tel.Tracer("test").Start(tel.Propagator().Extract(t.Context(), carrier), "work")
	if c := span.SpanContext(); !c.IsSampled() || c.TraceID().String() != "0123456789abcdef0123456789abcdef" {
		t.Errorf("span context %+v, want the caller's trace, sampled", c)
	}
}

// TestIDsWithoutCollector: if spans go nowhere nothing is recorded. There is still a
// trace, the caller's if it has one.
func TestIDsWithoutCollector(t *testing.T) {
	tel, _ := start(t, func(*telemetry.Config) {})
	defer shutdown(t, tel)
	ctx, outer := tel.Tracer("test").Start(t.Context(), "outer")
	_, inner := trace.SpanFromContext(ctx).TracerProvider().Tracer("other").Start(ctx, "inner")
	_, other := tel.Tracer("test").Start(t.Context(), "other")
	ids := outer.SpanContext()
	if !ids.IsValid() || !ids.IsSampled() || ids.IsRemote() || inner.SpanContext().TraceID() != ids.TraceID() || other.SpanContext().TraceID() == ids.TraceID() {
		t.Errorf("spans %v, %v, %v", ids, inner.SpanContext(), other.SpanContext())
	}
	if outer.IsRecording() || inner.IsRecording() {
		t.Error("a span is recorded")
	}
	carrier := propagation.MapCarrier{"traceparent": "00-0123456789abcdef0123456789abcdef-0123456789abcdef-00"}
	ctx, span := tel.Tracer("test").Start(tel.Propagator().Extract(t.Context(), carrier), "work")
	if c := span.SpanContext(); c.IsSampled() || c.IsRemote() || c.TraceID().String() != "0123456789abcdef0123456789abcdef" {
		t.Errorf("span context %+v, want the caller's trace, not sampled", c)
	}
	onward := propagation.MapCarrier{}
	tel.Propagator().Inject(ctx, onward)
	if !strings.Contains(onward["traceparent"], "0123456789abcdef0123456789abcdef") {
		t.Errorf("other processes are told %q", onward["traceparent"])
	}
	again, within := tel.Tracer("test").Start(ctx, "again")
	defer within.End()
	if again != ctx {
		t.Error("a span within another one takes memory of its own")
	}
}

func TestConfigMistakes(t *testing.T) {
	for key, change := range map[string]func(*telemetry.Config){
		"log-level":      func(c *telemetry.Config) { c.LogLevel = "loud" },
		"log-format":     func(c *telemetry.Config) { c.LogFormat = "xml" },
		"trace-sampling": func(c *telemetry.Config) { c.TraceSampling = 1.5 },
		"otlp-endpoint":  func(c *telemetry.Config) { c.OTLPEndpoint = "collector:4317" },
	} {
		var cfg telemetry.Config
		cfg.SetDefaults()
		change(&cfg)
		if err := cfg.Validate(); err == nil || !strings.HasPrefix(err.Error(), key+" = ") {
			t.Errorf("%s: error %v", key, err)
		}
	}
	for _, endpoint := range []string{"http://user:hunter2@host:1", "https://host:1?key=hunter2", "http://hunter2:%zz"} {
		cfg := telemetry.Config{LogLevel: "info", LogFormat: "json", OTLPEndpoint: endpoint}
		if err := cfg.Validate(); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: error %v", endpoint, err)
		}
	}
}

func TestForTests(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	_, span := tel.Tracer("test").Start(t.Context(), "work")
	span.End()
	if got := spans.GetSpans(); len(got) != 1 || got[0].Name != "work" {
		t.Errorf("spans %v", got)
	}
}
