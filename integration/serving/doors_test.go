package serving_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/telemetry"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// record collects what processes log.
type record struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.Write(p)
}

func (r *record) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.buf.String()
}

// startLogged starts a guarded cluster whose router and first searcher log everything to
// logs.
func startLogged(t *testing.T, logs io.Writer) *cluster {
	t.Helper()
	tel, spans := loggedTo(t, logs)
	return startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
}

// loggedTo returns a telemetry that logs everything to logs.
func loggedTo(t *testing.T, logs io.Writer) (*telemetry.Telemetry, *tracetest.InMemoryExporter) {
	t.Helper()
	var cfg telemetry.Config
	cfg.SetDefaults()
	cfg.LogLevel = "debug"
	spans := tracetest.NewInMemoryExporter()
	tel, err := telemetry.Start(t.Context(), cfg, telemetry.Identity{Service: "test", Version: "test"}, telemetry.WithLogs(logs), telemetry.WithExporter(spans))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tel.Shutdown(context.Background()) })
	return tel, spans
}

func admin() access.Spec {
	return access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeAdmin}}
}

// method is a gRPC method of a server.
type method struct {
	name   string // as called
	stream grpc.StreamDesc
}

// methods asks a server for all its methods.
func methods(t *testing.T, conn *grpc.ClientConn) (list []method) {
	t.Helper()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ask := func(req *reflectionv1.ServerReflectionRequest) *reflectionv1.ServerReflectionResponse {
		t.Helper()
		if err := stream.Send(req); err != nil {
			t.Fatal(err)
		}
		resp, err := stream.Recv()
		if err != nil {
			t.Fatal(err)
		}
		return resp
	}
	all := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}})
	for _, s := range all.GetListServicesResponse().Service {
		found := ask(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_FileContainingSymbol{FileContainingSymbol: s.Name}})
		list = append(list, methodsIn(t, found.GetFileDescriptorResponse().FileDescriptorProto, s.Name)...)
	}
	if err := stream.CloseSend(); err != nil {
		t.Fatal(err)
	}
	return list
}

func methodsIn(t *testing.T, files [][]byte, service string) (list []method) {
	t.Helper()
	for _, raw := range files {
		file := &descriptorpb.FileDescriptorProto{}
		if err := proto.Unmarshal(raw, file); err != nil {
			t.Fatal(err)
		}
		for _, s := range file.Service {
			if protoreflect.FullName(file.GetPackage()).Append(protoreflect.Name(s.GetName())) != protoreflect.FullName(service) {
				continue
			}
			for _, m := range s.Method {
				list = append(list, method{"/" + service + "/" + m.GetName(), grpc.StreamDesc{
					StreamName: m.GetName(), ClientStreams: m.GetClientStreaming(), ServerStreams: m.GetServerStreaming(),
				}})
			}
		}
	}
	return list
}

// call calls a method with an empty message and returns how it ended.
func (m method) call(ctx context.Context, conn *grpc.ClientConn) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	stream, err := conn.NewStream(ctx, &m.stream, m.name)
	if err != nil {
		return err
	}
	if err := stream.SendMsg(&emptypb.Empty{}); err != nil {
		return stream.RecvMsg(&emptypb.Empty{})
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	return stream.RecvMsg(&emptypb.Empty{})
}

// TestNoDoorIsOpen calls every method of a router and a searcher without a token and with
// invalid ones. Only the health service answers. It also checks for each method which scopes
// allow it.
func TestNoDoorIsOpen(t *testing.T) {
	c := startLogged(t, t.Output())
	text, _ := c.token(admin())
	all := methods(t, c.as(text).conn)
	searching, _ := c.token(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeSearch}})
	ingesting, _ := c.token(access.Spec{Allow: []string{"**"}, Scopes: []access.Scope{access.ScopeIngest}})
	c.as(searching)
	c.as(ingesting)
	if len(all) < 14 {
		t.Errorf("the router has only %d methods: %v", len(all), all)
	}
	for _, m := range all {
		service := strings.Split(m.name, "/")[1]
		open := service == healthv1.Health_ServiceDesc.ServiceName
		for what, shown := range map[string][]string{
			"nothing": nil, "an empty one": {""}, "no bearer": {"Basic " + string(text)}, "the token alone": {string(text)},
			"none of ours": {"Bearer hunter2"}, "a wrong one": {"Bearer " + string(text[:len(text)-1]) + "!"}, "two": {"Bearer " + string(text), "Bearer " + string(text)},
		} {
			err := m.call(showing(t.Context(), shown...), c.conn)
			if refused := status.Code(err) == codes.Unauthenticated; refused == open {
				t.Errorf("%s with %s: %v", m.name, what, err)
			}
		}
		for scope, own := range map[access.Text][]string{
			searching: {searchv1.SearchService_ServiceDesc.ServiceName, webserverv1.WebserverService_ServiceDesc.ServiceName},
			ingesting: {ingestv1.IngestService_ServiceDesc.ServiceName},
		} {
			err := m.call(showing(t.Context(), "Bearer "+string(scope)), c.conn)
			if denied := status.Code(err) == codes.PermissionDenied; denied == (open || slices.Contains(own, service)) {
				t.Errorf("%s with the scope of %s: %v", m.name, own, err)
			}
		}
		// A searcher has fewer services, and tokens mean nothing to it.
		err := m.call(showing(t.Context(), "Bearer "+string(text)), c.dial(c.searchers[0]))
		if refused := status.Code(err) == codes.Unauthenticated; refused == open && status.Code(err) != codes.Unimplemented {
			t.Errorf("%s of a searcher: %v", m.name, err)
		}
	}
}

func showing(ctx context.Context, shown ...string) context.Context {
	var pairs []string
	for _, s := range shown {
		pairs = append(pairs, "authorization", s)
	}
	return metadata.AppendToOutgoingContext(ctx, pairs...)
}

// TestNoPathIsOpen requests the router's HTTP paths, paths that it does not have, and other
// spellings of both.
func TestNoPathIsOpen(t *testing.T) {
	c := startLogged(t, t.Output())
	text, _ := c.token(admin())
	c.as(text)
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	get := func(httpMethod, path string, shown ...string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), httpMethod, "http://"+c.routerHTTP, strings.NewReader(`{"Q":"x"}`))
		c.must(err)
		req.URL.Opaque = "//" + c.routerHTTP + path // sent without normalization
		for _, s := range shown {
			req.Header.Add("Authorization", s)
		}
		resp, err := client.Do(req)
		c.must(err)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		c.must(err)
		return resp.StatusCode, string(body)
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if code, _ := get(http.MethodGet, path); code != http.StatusOK {
			t.Errorf("%s: %d", path, code)
		}
	}
	for _, path := range []string{"/api/search", "/api/list", "/api/v1/search", "/api/v1/repos/list", "/api/v1/sources/list", "/api/v1/", "/api/openapi.json", "/mcp", "/mcp/", "/", "/api/", "/nothing", "/api/../api/search", "/healthz/", "/healthz/../api/search", "//api/search", "/%61pi/search", "/debug/pprof/", "/hooks/none", "/hooks/", "/hooks/../api/search", "/hooks/x/y"} {
		for _, httpMethod := range []string{http.MethodGet, http.MethodPost, http.MethodHead} {
			for what, shown := range map[string][]string{"nothing": nil, "a wrong one": {"Bearer hunter2"}, "two": {"Bearer " + string(text), "Bearer " + string(text)}} {
				if code, body := get(httpMethod, path, shown...); code != http.StatusUnauthorized && (code < 300 || code > 399) {
					t.Errorf("%s %s with %s: %d %s", httpMethod, path, what, code, body)
				}
			}
		}
	}
	for _, path := range []string{"/healthz", "/readyz", "/metrics"} {
		if code, _ := get(http.MethodPost, path); code == http.StatusOK {
			t.Errorf("POST %s: %d", path, code)
		}
	}
	for _, path := range []string{"/api/search", "/api/list"} {
		if code, body := get(http.MethodPost, path, "bearer "+string(text)); code != http.StatusOK {
			t.Errorf("%s with a token: %d %s", path, code, body)
		}
	}
}

// TestScopesOfPaths: which scopes open which path, in the header and in the cookie of a browser. The
// scope admin opens all.
func TestScopesOfPaths(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
	tokens := make(map[access.Scope]access.Text)
	for _, scope := range []access.Scope{access.ScopeSearch, access.ScopeIngest, access.ScopeAdmin} {
		tokens[scope], _ = c.token(access.Spec{Scopes: []access.Scope{scope}, Allow: []string{"**"}})
		c.as(tokens[scope])
	}
	const all, none = "search ingest admin", ""
	for _, tt := range []struct{ method, path, header, cookie string }{
		{"GET", "/", "search admin", "search admin"},
		{"GET", "/?q=x", "search admin", "search admin"},
		{"GET", "/complete?q=x", "search admin", "search admin"},
		{"GET", "/repos", "search admin", "search admin"},
		{"GET", "/help", "search admin", "search admin"},
		{"GET", "/r/none", "search admin", "search admin"},
		{"GET", "/assets/none", all, all},
		{"GET", "/login", all, all},
		{"POST", "/api/search", "search admin", none},
		{"POST", "/api/list", "search admin", none},
		{"POST", "/api/v1/search", "search admin", none},
		{"POST", "/api/v1/repos/list", "ingest admin", none},
		{"POST", "/api/v1/sources/list", "admin", none},
		{"POST", "/mcp", "search admin", none},
		{"GET", "/api/openapi.json", "search admin", none},
	} {
		for scope, token := range tokens {
			for _, cookie := range []bool{false, true} {
				req, err := http.NewRequestWithContext(t.Context(), tt.method, "http://"+c.routerHTTP+tt.path, strings.NewReader("{}"))
				c.must(err)
				req.Header.Set("Content-Type", "application/json")
				opens := tt.header
				if cookie {
					req.AddCookie(access.PageCookie(req, token))
					opens = tt.cookie
				} else {
					req.Header.Set("Authorization", "Bearer "+string(token))
				}
				resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(req)
				c.must(err)
				resp.Body.Close()
				refused := resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden || resp.StatusCode == http.StatusSeeOther
				if refused == strings.Contains(opens, string(scope)) {
					t.Errorf("%s %s with scope %s, cookie %v: %s", tt.method, tt.path, scope, cookie, resp.Status)
				}
			}
		}
	}
}

// TestTokensAreNowhere uses valid and invalid tokens in every way, and looks for them in
// logs, traces, metrics and answers.
func TestTokensAreNowhere(t *testing.T) {
	var logs record
	c := startLogged(t, &logs)
	good, id := c.token(admin())
	var told strings.Builder
	tell := func(err error) { told.WriteString(status.Convert(err).Proto().String() + "\n") }
	wrong := good[:len(good)-20] + "aaaaaaaaaaaaaaaaaaaa"
	c.as(good)
	shown := []string{"Bearer " + string(good), "Bearer " + string(wrong), string(good), "Basic " + string(good), "Bearer  " + string(good) + "x"}
	for round := range 2 {
		for _, s := range shown {
			ctx := showing(t.Context(), s)
			_, err := c.search.Search(ctx, &searchv1.SearchRequest{Query: "("})
			tell(err)
			_, err = c.ingest.GetRepo(ctx, &ingestv1.GetRepoRequest{Name: "x"})
			tell(err)
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.routerHTTP+"/api/search", strings.NewReader(`{"Q":"("}`))
			c.must(err)
			req.Header.Set("Authorization", s)
			resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
			c.must(err)
			_, err = io.Copy(&told, resp.Body)
			c.must(err)
			resp.Body.Close()
		}
		if round == 0 {
			c.must(access.NewStore(c.servers.Client(), "").Revoke(t.Context(), id))
			c.eventually("the token is revoked", func() bool {
				_, err := c.search.List(showing(t.Context(), "Bearer "+string(good)), &searchv1.ListRequest{})
				return status.Code(err) == codes.Unauthenticated
			})
		}
	}
	resp, err := http.Get("http://" + c.routerHTTP + "/metrics")
	c.must(err)
	_, err = io.Copy(&told, resp.Body)
	c.must(err)
	resp.Body.Close()
	http.DefaultClient.CloseIdleConnections()
	for _, span := range c.spans.GetSpans() {
		for _, a := range span.Attributes {
			told.WriteString(string(a.Key) + "=" + a.Value.String() + "\n")
		}
		for _, e := range span.Events {
			for _, a := range e.Attributes {
				told.WriteString(string(a.Key) + "=" + a.Value.String() + "\n")
			}
		}
	}
	if !strings.Contains(logs.String(), "caller refused") {
		t.Error("the logs do not mention the refused callers")
	}
	for where, text := range map[string]string{"logs": logs.String(), "answers, metrics or traces": told.String()} {
		if secret := string(good[len(good)-52 : len(good)-20]); strings.Contains(text, secret) {
			t.Errorf("a token is in the %s", where)
		}
	}
}
