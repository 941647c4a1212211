package web

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
)

// TestDefinition goes to the definition of a name if one is likely, and else lists them.
func TestDefinition(t *testing.T) {
	f := &fake{files: map[string]map[string]string{
		"one": {"a.go": "use\nNew\n"},
		"two": {"a.go": "use\nNew\n", "b.go": "use\nNew\n"},
	}}
	h := f.serve(t, false)
	get := func(values url.Values) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/def?"+values.Encode(), http.NoBody))
		return w
	}
	if w := get(url.Values{"name": {"New"}, "at": {"/r/one/-/a.go"}, "line": {"1"}, "column": {"1"}}); w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/r/one/-/a.go#L2" {
		t.Errorf("one: %d to %s", w.Code, w.Header().Get("Location"))
	}
	if w := get(url.Values{"name": {"New"}, "at": {"/r/two@main/-/a.go"}}); w.Code != http.StatusOK || strings.Count(w.Body.String(), "#L2") < 2 {
		t.Errorf("two: %d: %s", w.Code, w.Body)
	}
	for _, values := range []url.Values{{}, {"name": {"New"}}, {"name": {"New"}, "at": {"nowhere"}}, {"at": {"/r/one/-/a.go"}}} {
		if w := get(values); w.Code != http.StatusBadRequest {
			t.Errorf("%v: %d", values, w.Code)
		}
	}
	if w := get(url.Values{"name": {"New"}, "at": {"/r/none/-/a.go"}}); w.Code != http.StatusNotFound {
		t.Errorf("of an unknown repo: %d", w.Code)
	}
}
