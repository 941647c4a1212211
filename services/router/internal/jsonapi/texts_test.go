package jsonapi

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// textOf names, for each field with bytes of a repository, the one with its text.
var textOf = map[string]string{"path": "pathText", "content": "text", "directory": "directoryText"}

// checkTexts fails unless each such field has its text beside it. It counts them.
func checkTexts(t *testing.T, at string, value any) (n int) {
	t.Helper()
	switch value := value.(type) {
	case []any:
		for _, v := range value {
			n += checkTexts(t, at, v)
		}
	case map[string]any:
		for key, v := range value {
			if name, ok := textOf[key]; ok {
				encoded, _ := v.(string)
				raw, err := base64.StdEncoding.DecodeString(encoded)
				if want := strings.ToValidUTF8(string(raw), "\ufffd"); err != nil || value[name] != want {
					t.Errorf("%s: %s is %q, and %s %q: %v", at, key, raw, name, value[name], err)
				}
				n++
			}
			n += checkTexts(t, at+"."+key, v)
		}
	}
	return n
}

// TestBytesHaveTexts: answers of all calls have paths, folders and contents as text, too.
func TestBytesHaveTexts(t *testing.T) {
	routes, err := routesOf(services())
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, r := range routes {
		for _, raw := range []string{"a/b", "\xffa\xe4", "", "\u202e\x00"} {
			m := r.out.New()
			fill(m, 6)
			setBytes(m, []byte(raw))
			addTexts(m.Interface())
			body, err := encode(m.Interface())
			if err != nil {
				t.Fatal(err)
			}
			var document any
			if err := json.Unmarshal(body, &document); err != nil {
				t.Fatal(err)
			}
			found += checkTexts(t, r.call, document)
		}
	}
	if found < 20 {
		t.Errorf("only %d fields were found", found)
	}
}

// setBytes sets all fields of bytes of a message.
func setBytes(m protoreflect.Message, raw []byte) {
	m.Range(func(f protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case f.IsMap():
		case f.IsList() && f.Message() != nil:
			for i := range v.List().Len() {
				setBytes(v.List().Get(i).Message(), raw)
			}
		case f.Message() != nil:
			setBytes(v.Message(), raw)
		case f.Kind() == protoreflect.BytesKind && !f.IsList():
			m.Set(f, protoreflect.ValueOfBytes(raw))
		}
		return true
	})
}

// TestTextsAreSent: an answer and a stream have them.
func TestTextsAreSent(t *testing.T) {
	for _, target := range []string{"/api/v1/search?q=x", "/api/v1/search/stream?q=x", "/api/v1/file?repo=r&path=p"} {
		w := new(calls).do(t, http.MethodGet, target, "")
		if !strings.Contains(w.Body.String(), `"text":"`) {
			t.Errorf("%s: %s", target, w.Body)
		}
	}
}
