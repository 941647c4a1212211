package access_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/catalog/etcdtest"
	"github.com/trawl-search/trawl/internal/limits"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func guard(t *testing.T, who access.Authenticator, limits access.Limits) (*access.Guard, *prometheus.Registry) {
	t.Helper()
	metrics := prometheus.NewRegistry()
	return access.NewGuard(who, limits, metrics, quiet()), metrics
}

// TestWebPagesAreRefused: if callers need not identify themselves, a page of another
// site gets nothing from its reader's server, and programs are answered.
func TestWebPagesAreRefused(t *testing.T) {
	g, metrics := guard(t, nil, access.Limits{Hosts: []string{"search.corp", "[::2]"}})
	answered := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	const json = "application/json"
	headers := func(pairs ...string) map[string]string {
		h := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			h[pairs[i]] = pairs[i+1]
		}
		return h
	}
	refused := 0
	for _, c := range []struct {
		what, method, host string
		headers            map[string]string
		want               int
	}{
		{"curl", "POST", "127.0.0.1:7431", headers("Content-Type", json), 200},
		{"a charset", "POST", "localhost:7431", headers("Content-Type", "application/json; charset=utf-8"), 200},
		{"IPv6", "POST", "[::1]:7431", headers("Content-Type", json), 200},
		{"an address of a network", "POST", "10.0.0.7:7431", headers("Content-Type", json), 200},
		{"a name below localhost", "POST", "trawl.localhost:7431", headers("Content-Type", json), 200},
		{"a name that is allowed", "POST", "Search.Corp.:80", headers("Content-Type", json), 200},
		{"a page of this server", "POST", "127.0.0.1:7431", headers("Content-Type", json, "Origin", "http://127.0.0.1:7431", "Sec-Fetch-Site", "same-origin"), 200},
		{"a name that was rebound", "POST", "evil.example:7431", headers("Content-Type", json, "Origin", "http://evil.example:7431", "Sec-Fetch-Site", "same-origin"), 403},
		{"a name that was rebound, by GET", "GET", "evil.example:7431", nil, 403},
		{"an address that was typed", "GET", "127.0.0.1:7431", headers("Sec-Fetch-Site", "none", "User-Agent", "Mozilla/5.0"), 200},
		{"curl", "GET", "127.0.0.1:7431", nil, 200},
		{"an image of another site", "GET", "127.0.0.1:7431", headers("Sec-Fetch-Site", "cross-site"), 403},
		{"an image of another port", "GET", "127.0.0.1:7431", headers("Sec-Fetch-Site", "same-site"), 403},
		{"a name that looks like an address", "POST", "127.0.0.1.evil.example", headers("Content-Type", json), 403},
		{"a name that ends as an allowed one", "POST", "evilsearch.corp", headers("Content-Type", json), 403},
		{"a name that ends as localhost", "POST", "evillocalhost", headers("Content-Type", json), 403},
		{"another site", "POST", "127.0.0.1:7431", headers("Content-Type", json, "Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site"), 403},
		{"another site of an old browser", "POST", "127.0.0.1:7431", headers("Content-Type", json, "Origin", "https://evil.example"), 403},
		{"no site", "POST", "127.0.0.1:7431", headers("Content-Type", json, "Origin", "null"), 403},
		{"another port", "POST", "127.0.0.1:7431", headers("Content-Type", json, "Origin", "http://127.0.0.1:8000", "Sec-Fetch-Site", "same-site"), 403},
		{"a program without a content type", "POST", "127.0.0.1:7431", nil, 200},
		{"curl -d", "POST", "127.0.0.1:7431", headers("Content-Type", "application/x-www-form-urlencoded", "User-Agent", "curl/8"), 200},
		{"a form", "POST", "127.0.0.1:7431", headers("Content-Type", "text/plain", "Origin", "http://127.0.0.1:7431"), 415},
		{"a form of an old browser", "POST", "127.0.0.1:7431", headers("Content-Type", "text/plain", "User-Agent", "Mozilla/4.0"), 415},
		{"a form that names its page", "POST", "127.0.0.1:7431", headers("Referer", "http://evil.example/"), 415},
		{"JSON and more", "POST", "127.0.0.1:7431", headers("Content-Type", "text/plain;application/json", "Sec-Fetch-Site", "same-origin"), 415},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/api/search", strings.NewReader("{}"))
		r.Host = c.host
		for name, value := range c.headers {
			r.Header.Set(name, value)
		}
		w := httptest.NewRecorder()
		g.HTTP(answered).ServeHTTP(w, r)
		if w.Code != c.want {
			t.Errorf("%s: status %d, want %d: %s", c.what, w.Code, c.want, w.Body)
		}
		if w.Code != http.StatusOK {
			if body := w.Body.String(); !strings.Contains(body, `"details":[]`) {
				t.Errorf("%s: no details: %s", c.what, body)
			}
			refused++
		}
		for name := range w.Header() {
			if strings.HasPrefix(name, "Access-Control-") {
				t.Errorf("%s: other sites are let in by %s", c.what, name)
			}
		}
	}
	if n := refusals(t, metrics, "browser"); n != refused {
		t.Errorf("%d refusals were counted, of %d", n, refused)
	}
}

// anybody treats each token as a caller of its own.
type anybody struct{}

func (anybody) Authenticate(_ context.Context, shown access.Text) (access.Principal, error) {
	return named{access.Anyone, string(shown)}, nil
}

type named struct {
	access.Principal
	id string
}

func (n named) ID() string { return n.id }

// TestCallsOfOneCaller: a caller whose calls in progress reach the limit is refused
// another one, over each interface, and other callers are not.
func TestCallsOfOneCaller(t *testing.T) {
	const most = 3
	g, _ := guard(t, anybody{}, access.Limits{Calls: most})
	as := func(token string) context.Context {
		return metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+token))
	}
	unary := func(ctx context.Context, do func()) error {
		info := &grpc.UnaryServerInfo{FullMethod: searchv1.SearchService_Search_FullMethodName}
		_, err := g.Unary(ctx, nil, info, func(context.Context, any) (any, error) { do(); return nil, nil })
		return err
	}
	stream := func(ctx context.Context, do func()) error {
		info := &grpc.StreamServerInfo{FullMethod: searchv1.SearchService_StreamSearch_FullMethodName}
		return g.Stream(nil, contextStream{ctx: ctx}, info, func(any, grpc.ServerStream) error { do(); return nil })
	}
	overHTTP := func(token string, do func()) int {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/search", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		g.HTTP(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { do() })).ServeHTTP(w, r)
		var body struct{ Details []map[string]any }
		if w.Code == http.StatusTooManyRequests {
			if err := json.Unmarshal(w.Body.Bytes(), &body); err != nil || len(body.Details) == 0 || !strings.HasSuffix(fmt.Sprint(body.Details[0]["@type"]), "/google.rpc.RetryInfo") {
				t.Errorf("the details of %s: %v", w.Body, err)
			}
		}
		return w.Code
	}
	never := func() { t.Error("a call beyond the limit was made") }
	full := func() {
		if err := unary(as("greedy"), never); !searchapi.IsOverloaded(err) || !strings.Contains(err.Error(), "caller-calls") {
			t.Errorf("a fourth call: %v", err)
		}
		if err := stream(as("greedy"), never); !searchapi.IsOverloaded(err) {
			t.Errorf("a fourth stream: %v", err)
		}
		if code := overHTTP("greedy", never); code != http.StatusTooManyRequests {
			t.Errorf("a fourth request: %d", code)
		}
		served := false
		if err := unary(as("other"), func() { served = true }); err != nil || !served {
			t.Errorf("a call of another caller: %v", err)
		}
	}
	for range 2 { // calls that end make room again
		filled := false
		err := unary(as("greedy"), func() {
			if err := stream(as("greedy"), func() {
				if code := overHTTP("greedy", func() { filled = true; full() }); code != http.StatusOK {
					t.Errorf("the third call: %d", code)
				}
			}); err != nil {
				t.Errorf("the second call: %v", err)
			}
		})
		if err != nil || !filled {
			t.Errorf("three calls: %v", err)
		}
	}
}

// contextStream is a stream that has a context only.
type contextStream struct {
	grpc.ServerStream
	ctx context.Context
}

func (s contextStream) Context() context.Context { return s.ctx }

// refusals are how many calls a guard has refused for a reason.
func refusals(t *testing.T, metrics *prometheus.Registry, reason string) int {
	t.Helper()
	families, err := metrics.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		for _, m := range family.GetMetric() {
			if family.GetName() == "trawl_access_refused_total" && m.GetLabel()[0].GetValue() == reason {
				return int(m.GetCounter().GetValue())
			}
		}
	}
	t.Errorf("refusals with the reason %s are not counted", reason)
	return 0
}

// mayOnlySearch treats every token as one with the scope search.
type mayOnlySearch struct{ named }

func (m mayOnlySearch) Authenticate(_ context.Context, shown access.Text) (access.Principal, error) {
	return mayOnlySearch{named{access.Anyone, string(shown)}}, nil
}

func (mayOnlySearch) May(scope access.Scope) bool { return scope == access.ScopeSearch }

// TestOneCallForEachRequest: a request over HTTP that becomes a gRPC call counts once, and
// both require their scopes.
func TestOneCallForEachRequest(t *testing.T) {
	g, _ := guard(t, mayOnlySearch{}, access.Limits{Calls: 1})
	method := "/" + searchv1.SearchService_ServiceDesc.ServiceName + "/Search"
	for target, want := range map[string]int{"/api/v1/search": 200, "/api/v1/repos/list": 403, "/api/v1/sources/list": 403} {
		calls := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			ctx := metadata.NewIncomingContext(r.Context(), metadata.Pairs("authorization", "Bearer x"))
			call := func(context.Context, any) (any, error) { return nil, nil }
			if _, err := g.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: method}, call); err != nil {
				t.Errorf("the call of %s: %v", target, err)
			}
			if _, err := g.Unary(ctx, nil, &grpc.UnaryServerInfo{FullMethod: "/trawl.ingest.v1.IngestService/PutRepo"}, call); err == nil {
				t.Errorf("%s became a call for another scope", target)
			}
			outside := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer x"))
			if _, err := g.Unary(outside, nil, &grpc.UnaryServerInfo{FullMethod: method}, call); !searchapi.IsOverloaded(err) {
				t.Errorf("a second call beside %s: %v", target, err)
			}
		})
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, http.NoBody)
		r.Header.Set("Authorization", "Bearer x")
		w := httptest.NewRecorder()
		g.HTTP(calls).ServeHTTP(w, r)
		if w.Code != want {
			t.Errorf("%s: %d, want %d", target, w.Code, want)
		}
	}
}

// TestNothingIsSentToTheRevoked: a stream sends nothing more to a caller whose token was revoked since it began.
func TestNothingIsSentToTheRevoked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		who := &revocable{}
		g, _ := guard(t, who, access.Limits{Calls: 3})
		ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer x"))
		info := &grpc.StreamServerInfo{FullMethod: searchv1.SearchService_StreamSearch_FullMethodName}
		sent := 0
		_ = g.Stream(nil, counting{contextStream{ctx: ctx}, &sent}, info, func(_ any, s grpc.ServerStream) error {
			if err := s.SendMsg(nil); err != nil {
				t.Error(err)
			}
			who.revoked.Store(true)
			time.Sleep(2 * time.Second)
			if err := s.SendMsg(nil); status.Code(err) != codes.Unauthenticated || sent != 1 {
				t.Errorf("%d messages were sent, %v", sent, err)
			}
			return nil
		})
	})
}

// revocable knows every token until it is revoked.
type revocable struct{ revoked atomic.Bool }

func (r *revocable) Authenticate(context.Context, access.Text) (access.Principal, error) {
	if r.revoked.Load() {
		return nil, access.ErrUnknown
	}
	return access.Anyone, nil
}

// counting is a stream that counts what is sent.
type counting struct {
	contextStream

	sent *int
}

func (c counting) SendMsg(any) error { *c.sent++; return nil }

// TestCallsOfOneToken: a limit for one token holds for its calls, and for no other's.
func TestCallsOfOneToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := limits.NewStore(etcdtest.New().Client(nil), "")
		live := limits.NewLive(store, quiet())
		ctx, cancel := context.WithCancel(t.Context())
		var following sync.WaitGroup
		following.Go(func() { live.Run(ctx) })
		if _, err := store.Set(t.Context(), limits.Key{Token: "greedy", Name: limits.CallerCalls}, "1", "ops"); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		g, _ := guard(t, anybody{}, access.Limits{Calls: 3, Live: live})
		call := func(token string, do func()) error {
			ctx := metadata.NewIncomingContext(t.Context(), metadata.Pairs("authorization", "Bearer "+token))
			info := &grpc.UnaryServerInfo{FullMethod: searchv1.SearchService_Search_FullMethodName}
			_, err := g.Unary(ctx, nil, info, func(context.Context, any) (any, error) { do(); return nil, nil })
			return err
		}
		for token, most := range map[string]int{"greedy": 1, "other": 3} {
			inside := 0
			var nested func()
			nested = func() {
				inside++
				if err := call(token, nested); !searchapi.IsOverloaded(err) && err != nil {
					t.Errorf("%s: %v", token, err)
				}
			}
			if err := call(token, nested); err != nil || inside != most {
				t.Errorf("%s has %d calls at once, %v, want %d", token, inside, err, most)
			}
		}
		cancel()
		following.Wait()
	})
}
