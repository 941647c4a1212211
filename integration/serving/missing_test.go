package serving_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/net/html"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// missing is something that does not exist, and what comes nearest to it.
type missing struct{ repo, branch, path, nearest string }

// isFolder reports whether it is a folder: their paths end with a slash here.
func (m missing) isFolder() bool { return strings.HasSuffix(m.path, "/") }

// TestMissingNamesAtEveryDoor: whatever does not exist is not found at every door, with the nearest names that exist and that the caller may
// see. A hidden repo is like one that does not exist, and is nowhere near another one.
func TestMissingNamesAtEveryDoor(t *testing.T) {
	c := startGuarded(t)
	files := map[string]string{"source/fish.go": "package a\n\n// Fish swims.\ntype Fish struct{}\n", "source/deep/er/carp.go": "package er\n", "README": "a pond\n"}
	c.publish("host/open/pond", files)
	c.publish("host/secret/pond", files)
	c.publish("host/secret/pnd", files)
	text, _ := c.token(access.Spec{Scopes: []access.Scope{access.ScopeSearch}, Allow: []string{"host/open/*"}})
	restricted := c.as(text)
	agent, err := c.agent(text)
	c.must(err)
	for _, m := range []missing{
		{"host/open/pnd", "", "source/fish.go", "host/open/pond"},
		{"host/open/pnd", "", "source/", "host/open/pond"},
		{"host/secret/pond", "", "source/fish.go", "host/open/pond"},
		{"host/secret/pnd", "", "source/", "host/open/pond"},
		{"host/open/pond", "mian", "source/fish.go", "main"},
		{"host/open/pond", "mian", "source/", "main"},
		{"host/open/pond", "", "source/fihs.go", "source/fish.go"},
		{"host/open/pond", "main", "fish.go", "source/fish.go"},
		{"host/open/pond", "", "suorce/", "source/"},
		{"host/open/pond", "", "source/deeper/", "source/deep/"},
		{"host/open/pond", "", "README/", "README"},
	} {
		for door, ask := range doorsForMissing(restricted, agent, text, m) {
			answer := ask()
			for _, hidden := range []string{"host/secret/pond", "host/secret/pnd"} {
				if strings.Contains(answer, hidden) && hidden != m.repo {
					t.Errorf("%s, %+v: names a hidden repo: %s", door, m, answer)
				}
			}
			if !strings.Contains(answer, m.nearest) || !strings.Contains(answer, "nearest") && !strings.Contains(answer, "is a file") {
				t.Errorf("%s, %+v: the nearest is not in %s", door, m, answer)
			}
		}
	}
	c.must(agent.Close())
}

// doorsForMissing ask for what is missing at each door that takes it, and return what the answer says.
func doorsForMissing(c *cluster, agent *mcp.ClientSession, token access.Text, m missing) map[string]func() string {
	path := []byte(m.path)
	said := func(err error) string {
		if status.Code(err) != codes.NotFound || searchapi.NotFoundOf(err) == nil || searchapi.NotFoundOf(err).GetField() != searchapi.FieldOf(err) {
			c.t.Errorf("%+v: %v", m, err)
		}
		return fmt.Sprint(status.Convert(err).Message(), searchapi.NotFoundOf(err))
	}
	overHTTP := func(verb, target, body string, want int) string {
		code, _, answer := c.request(verb, "http://"+c.routerHTTP+target, body, token)
		if code != want {
			c.t.Errorf("%s %s %s: %d %s", verb, target, body, code, answer)
		}
		return html.UnescapeString(strings.ReplaceAll(answer, `\"`, `"`))
	}
	tool := func(name string, args any) string {
		result, err := agent.CallTool(c.t.Context(), &mcp.CallToolParams{Name: name, Arguments: args})
		c.must(err)
		if !result.IsError {
			c.t.Errorf("%s %v is no error", name, args)
		}
		return result.Content[0].(*mcp.TextContent).Text
	}
	parameters := "?" + url.Values{"repo": {m.repo}, "branch": {m.branch}, "path": {m.path}}.Encode()
	doors := map[string]func() string{
		"page": func() string {
			return overHTTP(http.MethodGet, searchapi.PageOf(m.repo, m.branch, m.path), "", http.StatusNotFound)
		},
	}
	if m.isFolder() {
		doors["ListTree"] = func() string {
			_, err := c.search.ListTree(c.t.Context(), &searchv1.ListTreeRequest{Repo: m.repo, Branch: m.branch, Path: path})
			return said(err)
		}
		doors["JSON tree"] = func() string { return overHTTP(http.MethodGet, "/api/v1/tree"+parameters, "", http.StatusNotFound) }
		doors["list_tree"] = func() string {
			return tool("list_tree", map[string]any{"repo": m.repo, "branch": m.branch, "path": m.path})
		}
		return doors
	}
	doors["GetFile"] = func() string {
		_, err := c.search.GetFile(c.t.Context(), &searchv1.GetFileRequest{Repo: m.repo, Branch: m.branch, Path: path})
		return said(err)
	}
	doors["Definitions"] = func() string {
		_, err := c.search.Definitions(c.t.Context(), &searchv1.DefinitionsRequest{Name: "Fish", From: &searchv1.Place{Repo: m.repo, Branch: m.branch, Path: path}})
		return said(err)
	}
	doors["JSON file"] = func() string { return overHTTP(http.MethodGet, "/api/v1/file"+parameters, "", http.StatusNotFound) }
	doors["JSON files"] = func() string {
		body, err := json.Marshal(map[string]any{"files": []any{map[string]any{"repo": m.repo, "branch": m.branch, "path": path}, map[string]any{"repo": "host/open/pond", "path": []byte("README")}}})
		c.must(err)
		answer := overHTTP(http.MethodPost, "/api/v1/files", string(body), http.StatusOK)
		if !strings.Contains(answer, "a pond") {
			c.t.Errorf("%+v: the other file is not in %s", m, answer)
		}
		return answer
	}
	doors["read_file"] = func() string {
		return tool("read_file", map[string]any{"files": []map[string]any{{"repo": m.repo, "branch": m.branch, "path": m.path}}})
	}
	return doors
}
