package serving_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/docs/api"
	"github.com/trawl-search/trawl/internal/access"
)

// pond is the content that the examples of docs/api.md search.
var pond = map[string]string{
	"a/fish.go": "package a\n\n// needle of the pond\nfunc Fish() {}\n",
	"b.txt":     "a needle in b\n",
}

// request sends a request to the router's HTTP address.
func (c *cluster) request(verb, target, body string, token access.Text) (code int, header http.Header, answer string) {
	c.t.Helper()
	req, err := http.NewRequestWithContext(c.t.Context(), verb, target, strings.NewReader(body))
	c.must(err)
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+string(token))
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	c.must(err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	c.must(err)
	return resp.StatusCode, resp.Header, string(text)
}

// TestAPIPage runs the examples of docs/api.md, and compares the answers with the page.
func TestAPIPage(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/pond", pond)
	if run := c.runPage("../../docs/api.md"); run < 9 {
		t.Errorf("%d examples were run", run)
	}
}

// runPage runs the curl commands on a page, compares each answer with the block that follows, and
// returns the number of commands.
func (c *cluster) runPage(name string) (run int) {
	t := c.t
	t.Helper()
	page, err := os.ReadFile(name)
	c.must(err)
	var code int
	var answer string
	for _, block := range regexp.MustCompile("(?s)```(\\w+)\n(.*?)\n```").FindAllStringSubmatch(string(page), -1) {
		kind, text := block[1], block[2]
		switch kind {
		case "sh":
			if verb, target, body, ok := curl(t, text, "http://"+c.routerHTTP); ok {
				code, _, answer = c.request(verb, target, body, "")
				run++
			}
		case "json":
			wantJSON(t, text, answer)
		case "events":
			wantEvents(t, text, answer)
		case "status":
			if fmt.Sprint(code) != text {
				t.Errorf("status %d, want %s", code, text)
			}
		default:
			t.Errorf("a block of %s", kind)
		}
	}
	return run
}

// wantEvents fails the test unless answer has the same events as text, with at least their data.
func wantEvents(t *testing.T, text, answer string) {
	t.Helper()
	got := strings.Split(strings.TrimSpace(answer), "\n\n")
	want := strings.Split(text, "\n\n")
	if len(got) != len(want) {
		t.Fatalf("got %d events, want %d:\n%s", len(got), len(want), answer)
	}
	for i := range want {
		gotName, gotData, _ := strings.Cut(got[i], "\ndata: ")
		wantName, wantData, _ := strings.Cut(want[i], "\ndata: ")
		if gotName != wantName {
			t.Errorf("%s, want %s", got[i], wantName)
		}
		wantJSON(t, wantData, gotData)
	}
}

// curl parses a curl command line, with the flags that the pages use.
func curl(t *testing.T, line, address string) (verb, target, body string, ok bool) {
	t.Helper()
	words := regexp.MustCompile(`"[^"]*"|'[^']*'|\S+`).FindAllString(line, -1)
	if words[0] != "curl" {
		return "", "", "", false
	}
	verb = http.MethodGet
	for i := 1; i < len(words); i++ {
		word := strings.Trim(words[i], `"'`)
		switch {
		case word == "-s", word == "-sN":
		case word == "-w":
			i++
		case word == "-d":
			i++
			verb, body = http.MethodPost, strings.Trim(words[i], "'")
		case strings.HasPrefix(word, "$TRAWL/"):
			target = address + strings.TrimPrefix(word, "$TRAWL")
		default:
			t.Fatalf("%s: %s is not understood", line, word)
		}
	}
	return verb, target, body, true
}

// wantJSON fails the test unless got has everything in want; … stands for any text.
func wantJSON(t *testing.T, want, got string) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("%v in %s", err, want)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("%v in %s", err, got)
	}
	if at := lacking("", w, g); at != "" {
		t.Errorf("%s is missing in\n%s", at, got)
	}
}

// lacking returns the first place in want that got lacks; empty if there is none.
func lacking(at string, want, got any) string {
	switch want := want.(type) {
	case map[string]any:
		have, _ := got.(map[string]any)
		for key, value := range want {
			if missing := lacking(at+"."+key, value, have[key]); missing != "" {
				return missing
			}
		}
		return ""
	case []any:
		have, _ := got.([]any)
		for i, value := range want {
			if i >= len(have) {
				return fmt.Sprint(at, "[", i, "]")
			}
			if missing := lacking(fmt.Sprint(at, "[", i, "]"), value, have[i]); missing != "" {
				return missing
			}
		}
		return ""
	}
	if text, ok := got.(string); ok && text != "" && want == "…" || want == got {
		return ""
	}
	return fmt.Sprintf("%s: %v (got %v)", at, want, got)
}

// TestAPIAccess: a token allows the same calls over HTTP as over gRPC, and shows the same
// repos.
func TestAPIAccess(t *testing.T) {
	c := startLogged(t, t.Output())
	c.publish("host/open", pond)
	c.publish("host/secret", map[string]string{"s.go": "needle of the secret"})
	searching, _ := c.token(access.Spec{Scopes: []access.Scope{access.ScopeSearch}, Allow: []string{"host/open"}})
	ingesting, _ := c.token(access.Spec{Scopes: []access.Scope{access.ScopeIngest}, Allow: []string{"**"}})
	all, _ := c.token(admin())
	c.as(searching)
	c.as(ingesting)
	c.as(all)
	for _, r := range []struct {
		path, body string
		codes      [4]int // without a token, and with the scopes search, ingest and admin
	}{
		{"/api/v1/search", `{"query":"needle"}`, [4]int{401, 200, 403, 200}},
		{"/api/v1/search/stream", `{"query":"needle"}`, [4]int{401, 200, 403, 200}},
		{"/api/v1/list", `{}`, [4]int{401, 200, 403, 200}},
		{"/api/v1/file", `{"repo":"host/secret","path":"cy5nbw=="}`, [4]int{401, 404, 403, 200}},
		{"/api/v1/repos/list", `{}`, [4]int{401, 403, 200, 200}},
		{"/api/v1/repos/dead-letters/list", `{}`, [4]int{401, 403, 200, 200}},
		{"/api/v1/sources/list", `{}`, [4]int{401, 403, 403, 200}},
		{"/api/v1/nothing", `{}`, [4]int{401, 404, 403, 404}},
	} {
		for i, token := range []access.Text{"", searching, ingesting, all} {
			code, header, answer := c.request(http.MethodPost, "http://"+c.routerHTTP+r.path, r.body, token)
			if code != r.codes[i] {
				t.Errorf("%s with token %d: %d %s, want %d", r.path, i, code, answer, r.codes[i])
			}
			if i == 1 && strings.Contains(answer, "secret") && !strings.Contains(r.body, "secret") {
				t.Errorf("%s: %s", r.path, answer)
			}
			if code >= 400 {
				wantJSON(t, `{"message":"…"}`, answer)
			}
			if (code == 401) != (header.Get("WWW-Authenticate") != "") {
				t.Errorf("%s: %d with WWW-Authenticate %q", r.path, code, header.Get("WWW-Authenticate"))
			}
		}
	}
	code, _, answer := c.request(http.MethodGet, "http://"+c.routerHTTP+api.Path, "", searching)
	if code != http.StatusOK || answer != string(api.OpenAPI) {
		t.Errorf("the description: %d", code)
	}
	if code, _, _ := c.request(http.MethodGet, "http://"+c.routerHTTP+api.Path, "", ""); code != http.StatusUnauthorized {
		t.Errorf("the description without a token: %d", code)
	}
}

// TestPythonCallers runs the callers in examples/python.
func TestPythonCallers(t *testing.T) {
	c := startCluster(t, 1, 1)
	c.publish("host/pond", pond)
	python := "/usr/bin/python3" // Debian's, which has Debian's modules
	if _, err := os.Stat(python); err != nil {
		t.Skip("python3 is not installed: apt-get install python3")
	}
	run := func(dir string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), python, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "PYTHONPATH="+dir, "PYTHONDONTWRITEBYTECODE=1", "no_proxy=*")
		var out, problem bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &problem
		if err := cmd.Run(); err != nil {
			return err.Error() + ": " + problem.String()
		}
		return out.String()
	}
	examples, err := filepath.Abs("../../examples/python")
	c.must(err)
	want := "host/pond/a/fish.go:3:// needle of the pond\nhost/pond/b.txt:1:a needle in b\n"
	if got := run(examples, "search.py", "http://"+c.routerHTTP, "needle"); got != want {
		t.Errorf("search.py prints %q, want %q", got, want)
	}
	if got := run(examples, "search.py", "http://"+c.routerHTTP, "a (b"); !strings.HasPrefix(got, "exit status 1: query: ") {
		t.Errorf("search.py prints of a wrong query: %q", got)
	}
	t.Run("gRPC", func(t *testing.T) {
		if err := exec.CommandContext(t.Context(), python, "-c", "import grpc, grpc_tools").Run(); err != nil {
			t.Skip("python3 has no gRPC: apt-get install python3-grpcio python3-grpc-tools")
		}
		page, err := os.ReadFile("../../docs/api.md")
		c.must(err)
		generate := regexp.MustCompile("python3 (-m grpc_tools.protoc[^\n]+)").FindStringSubmatch(string(page))[1]
		root, err := filepath.Abs("../..")
		c.must(err)
		dir := t.TempDir()
		generate = strings.NewReplacer("-I proto", "-I "+root+"/proto", "_out=.", "_out="+dir).Replace(generate)
		if got := run(dir, strings.Fields(generate)...); got != "" {
			t.Fatalf("generate: %s", got)
		}
		want := "host/pond/a/fish.go: 1 matches\nhost/pond/b.txt: 1 matches\n1 of 1 shards searched\n"
		if got := run(dir, filepath.Join(examples, "search_grpc.py"), c.routerGRPC, "needle"); got != want {
			t.Errorf("search_grpc.py prints %q, want %q", got, want)
		}
		if got := run(dir, filepath.Join(examples, "search_grpc.py"), c.routerGRPC, "a (b"); !strings.HasPrefix(got, "exit status 1: query: ") {
			t.Errorf("search_grpc.py prints of a wrong query: %q", got)
		}
	})
}
