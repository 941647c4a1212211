package jsonapi

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"google.golang.org/protobuf/proto"

	"github.com/trawl-search/trawl/docs/api"
)

// bodies are requests of the paths that need more than an empty object.
var bodies = map[string]string{
	"/api/v1/file":                     `{"repo":"r","path":"eA=="}`,
	"/api/v1/files":                    `{"files":[{"repo":"r","path":"eA=="}]}`,
	"/api/v1/tree":                     `{"repo":"r"}`,
	"/api/v1/definitions":              `{"name":"r"}`,
	"/api/v1/references":               `{"name":"r"}`,
	"/api/v1/repos/put":                `{"url":"https://host/r"}`,
	"/api/v1/repos/delete":             `{"name":"r"}`,
	"/api/v1/repos/deletion":           `{"name":"r"}`,
	"/api/v1/repos/get":                `{"name":"r"}`,
	"/api/v1/repos/watch":              `{"name":"r"}`,
	"/api/v1/repos/dead-letters/get":   `{"name":"r"}`,
	"/api/v1/repos/dead-letters/retry": `{"name":"r"}`,
	"/api/v1/sources/get":              `{"name":"r"}`,
}

// TestOpenAPI: the description is valid, has every path and no other, and every answer conforms to
// it, with all fields set and with none.
func TestOpenAPI(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(api.OpenAPI)
	if err != nil {
		t.Fatal(err)
	}
	if err := doc.Validate(t.Context()); err != nil {
		t.Error(err)
	}
	routes := (&calls{}).handler(t).routes
	if doc.Paths.Len() != len(routes) || len(routes) < 18 {
		t.Errorf("%d paths are described, %d are served", doc.Paths.Len(), len(routes))
	}
	for path, item := range doc.Paths.Map() {
		for verb, operation := range item.Operations() {
			body := bodies[path]
			target := path
			switch {
			case verb == http.MethodGet && body != "":
				target += "?" + strings.NewReplacer(`{"`, "", `":"`, "=", `","`, "&", `"}`, "").Replace(body)
			case body == "":
				body = "{}"
			}
			for _, f := range []*calls{{}, empty()} {
				w := f.do(t, verb, target, body)
				content := operation.Responses.Value("200").Value.Content
				kind := w.Header().Get("Content-Type")
				if w.Code != http.StatusOK || content[kind] == nil {
					t.Errorf("%s %s: %d, %s, and the description has %v: %s", verb, path, w.Code, kind, content, w.Body)
					continue
				}
				for _, text := range documents(kind, w.Body.String()) {
					if err := content[kind].Schema.Value.VisitJSON(object(t, []byte(text))); err != nil {
						t.Errorf("%s %s: %v", verb, path, err)
					}
				}
			}
			if parameter := operation.Parameters.GetByInAndName("query", "timeout"); parameter == nil {
				t.Errorf("%s %s has no timeout", verb, path)
			}
			for _, p := range operation.Parameters {
				if strings.Contains(p.Value.Name, "plan") || strings.HasPrefix(p.Value.Name, "search.") {
					t.Errorf("%s %s has the parameter %s", verb, path, p.Value.Name)
				}
			}
			wrong := (&calls{}).do(t, verb, target+map[bool]string{true: "&", false: "?"}[strings.Contains(target, "?")]+"timeout=x", body)
			if err := operation.Responses.Default().Value.Content["application/json"].Schema.Value.VisitJSON(object(t, wrong.Body.Bytes())); err != nil || wrong.Code != 400 {
				t.Errorf("%s %s: %v for the error %s", verb, path, err, wrong.Body)
			}
		}
	}
}

// empty answers with messages without any field.
func empty() *calls {
	return &calls{
		answer: func(context.Context, proto.Message) error { return nil },
		each: func(_ context.Context, n int, _ proto.Message) error {
			if n > 1 {
				return io.EOF
			}
			return nil
		},
	}
}

// documents are the JSON documents of an answer: one, or the data of its events.
func documents(kind, answer string) (list []string) {
	if kind != "text/event-stream" {
		return []string{answer}
	}
	for line := range strings.Lines(answer) {
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			list = append(list, data)
		}
	}
	return list
}
