package serving_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/mcptools"
	"github.com/trawl-search/trawl/internal/telemetry/telemetrytest"
)

// bearer adds a token to every request.
type bearer struct {
	token access.Text
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	if b.token != "" {
		r.Header.Set("Authorization", "Bearer "+string(b.token))
	}
	return b.next.RoundTrip(r)
}

// agent connects a client of the Model Context Protocol with a token.
func (c *cluster) agent(token access.Text) (*mcp.ClientSession, error) {
	transport := &http.Transport{DisableKeepAlives: true}
	return mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(c.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: "http://" + c.routerHTTP + mcptools.Path, HTTPClient: &http.Client{Transport: bearer{token, transport}}, DisableStandaloneSSE: true,
	}, nil)
}

// TestAgentsSeeTheirReposOnly: an agent with a token for some repos gets from every tool what
// it would get if only these existed. Not even a suggestion names other repos.
func TestAgentsSeeTheirReposOnly(t *testing.T) {
	tel, spans := telemetrytest.New(t)
	c := startWith(t, &cluster{replication: 1, access: guarded(), tel: tel, spans: spans}, 1)
	c.publish("host/open/pond", map[string]string{"a/fish.go": "package a\n\n// needle\n", "b.txt": "needle in b\n"})
	c.publish("host/secret/pond", map[string]string{"a/fish.go": "needle of the secret\n", "fist.go": "x\n"})
	text, _ := c.token(access.Spec{Scopes: []access.Scope{access.ScopeSearch}, Allow: []string{"host/open/*"}})
	c.as(text)
	ingest, _ := c.token(access.Spec{Scopes: []access.Scope{access.ScopeIngest}, Allow: []string{"**"}})
	for what, token := range map[string]access.Text{"no token": "", "a wrong token": text + "x", "a token for something else": ingest} {
		if session, err := c.agent(token); err == nil {
			t.Errorf("%s: connected to %v", what, session.InitializeResult())
		}
	}
	session, err := c.agent(text)
	c.must(err)
	for _, call := range []struct {
		tool string
		args map[string]any
		want string
	}{
		{"grep", map[string]any{"patterns": []string{"needle"}}, "2 matches in 2 files"},
		{"grep", map[string]any{"patterns": []string{"of the"}}, "Complete over 1 repo at these commits: host/open/pond@"},
		{"grep", map[string]any{"patterns": []string{"needle"}, "repos": []string{"host/secret/pond"}}, `no repo "host/[redacted]/pond" is published`},
		{"search", map[string]any{"query": "needle"}, "2 matches in 2 files"},
		{"glob", map[string]any{"patterns": []string{"fis?.go"}}, "1 file"},
		{"read_file", map[string]any{"files": []map[string]any{{"repo": "host/secret/pond", "path": "fist.go"}}}, `no repo "host/[redacted]/pond" is published, or you may not see it; the nearest: "host/open/pond"`},
		{"read_file", map[string]any{"files": []map[string]any{{"repo": "host/open/pond", "path": "fist.go"}}}, `the nearest: "a/fish.go"`},
		{"list_tree", map[string]any{"repo": "host/secret/pond"}, `the nearest: "host/open/pond"`},
		{"list_tree", map[string]any{"repo": "host/open/pond", "path": "fish.go"}, `no folder "fish.go" in host/open/pond on branch "main"; the nearest: "a/fish.go"`},
		{"list_tree", map[string]any{"repo": "host/open/pond", "depth": 1}, "a/ (1 file)\n  b.txt\n"},
		{"list_repos", nil, "1 repo\n"},
	} {
		result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: call.args})
		c.must(err)
		answer := strings.ReplaceAll(result.Content[0].(*mcp.TextContent).Text, "no repo host/secret", "no repo host/[redacted]")
		answer = strings.ReplaceAll(answer, `no repo "host/secret`, `no repo "host/[redacted]`)
		if !strings.Contains(answer, call.want) || strings.Contains(answer, "secret") {
			t.Errorf("%s %v: no %q, or a secret, in\n%s", call.tool, call.args, call.want, answer)
		}
	}
	c.must(session.Close())
}

// TestAgentsThroughTheGate: the agents' path checks callers as the other paths do.
func TestAgentsThroughTheGate(t *testing.T) {
	c := startCluster(t, 1, 1)
	post := func(header map[string]string, host string) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+c.routerHTTP+mcptools.Path, strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"ping"}`))
		c.must(err)
		all := map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
		maps.Copy(all, header)
		for name, value := range all {
			req.Header.Set(name, value)
		}
		if host != "" {
			req.Host = host
		}
		transport := &http.Transport{DisableKeepAlives: true}
		resp, err := transport.RoundTrip(req)
		c.must(err)
		defer resp.Body.Close()
		return resp.StatusCode
	}
	for what, r := range map[string]struct {
		header map[string]string
		host   string
		want   int
	}{
		"a program":      {nil, "", http.StatusOK},
		"a name rebound": {map[string]string{"Origin": "http://evil.example"}, "evil.example", http.StatusForbidden},
		"another site":   {map[string]string{"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"}, "", http.StatusForbidden},
		"a form":         {map[string]string{"Content-Type": "text/plain", "User-Agent": "Mozilla/4.0"}, "", http.StatusUnsupportedMediaType},
	} {
		if code := post(r.header, r.host); code != r.want {
			t.Errorf("%s: status %d, want %d", what, code, r.want)
		}
	}
}
