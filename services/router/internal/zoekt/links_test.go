package zoekt

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// evaluated is a template as neogrok fills it in (src/lib/url-templates.ts): by replacing.
func evaluated(template, version, path string) string {
	return strings.ReplaceAll(strings.ReplaceAll(template, "{{.Version}}", version), "{{.Path}}", path)
}

// TestLinks: programs find the pages of files, lines and commits at the address that they use themselves.
func TestLinks(t *testing.T) {
	f := found(file("host/pond", "a/fish.go", "needle\n"), file("host/pond", "b.go", "needle\n"), file("at@sea", "c.go", "needle\n"))
	for _, c := range []struct{ host, proto, want string }{
		{"127.0.0.1:7431", "", "http://127.0.0.1:7431"}, {"code.example.com", "https", "https://code.example.com"},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/api/search", strings.NewReader(`{"Q":"needle","Opts":{"ChunkMatches":true}}`))
		r.Host = c.host
		r.Header.Set("X-Forwarded-Proto", c.proto)
		w := httptest.NewRecorder()
		f.handler().Search().ServeHTTP(w, r)
		var answer struct{ Result map[string]any }
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
			t.Fatalf("status %d: %v", w.Code, err)
		}
		result := answer.Result
		urls, fragments := result["RepoURLs"].(map[string]any), result["LineFragments"].(map[string]any)
		if len(urls) != 2 || len(fragments) != 2 {
			t.Fatalf("links of the repos %v, lines of %v", urls, fragments)
		}
		if got := evaluated(urls["host/pond"].(string), "0123abc", "a/fish.go"); got != c.want+"/r/host/pond@0123abc/-/a/fish.go" {
			t.Errorf("a file is at %s", got)
		}
		if got := evaluated(urls["at@sea"].(string), "0123abc", "c.go"); got != c.want+"/r/at%40sea@0123abc/-/c.go" {
			t.Errorf("a file is at %s", got)
		}
		if fragments["host/pond"] != "#L{{.LineNumber}}" {
			t.Errorf("a line is at %v", fragments["host/pond"])
		}
	}
}

// TestLinksHaveRoom: the links of many repos count in the size of an answer.
func TestLinksHaveRoom(t *testing.T) {
	var files []*searchv1.FileMatch
	for i := range 500 {
		files = append(files, file(fmt.Sprintf("host/%s%d", strings.Repeat("\"", 100), i), "a", "x\n"))
	}
	raw, answer := answerOf(t, found(files...).handler().Search(), `{"Q":"x"}`)
	result := answer["Result"].(map[string]any)
	shown := len(result["Files"].([]any))
	if uint64(len(raw)) > testLimits.Bytes || shown == 0 || shown == 500 || len(result["RepoURLs"].(map[string]any)) != shown {
		t.Errorf("%d bytes of at most %d, %d files", len(raw), testLimits.Bytes, shown)
	}
}
