package zoekt

import (
	"os"
	"reflect"
	"strings"
	"testing"

	webserverv1 "github.com/trawl-search/trawl/proto/zoekt/webserver/v1"
)

// TestThePageTellsOfEveryOption: each option, and each field of an answer that
// can be other than zero, stands on the page about this interface.
func TestThePageTellsOfEveryOption(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/zoekt-compat.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []any{searchRequest{}, searchOptions{}, listRequest{}, fileMatch{}, lineMatch{}, chunkMatch{}, account{}} {
		for field := range reflect.TypeOf(part).Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Name != name {
				t.Errorf("the field %s has the key %q", field.Name, name)
			}
			if name != "Score" && name != "DebugScore" && !strings.Contains(string(page), name) {
				t.Errorf("nothing is said of %s", name)
			}
		}
	}
}

// TestThePageTellsOfEveryNode: each node that a query in messages can have stands on the page.
func TestThePageTellsOfEveryNode(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/zoekt-compat.md")
	if err != nil {
		t.Fatal(err)
	}
	nodes := (&webserverv1.Q{}).ProtoReflect().Descriptor().Fields()
	for i := range nodes.Len() {
		if name := string(nodes.Get(i).Name()); !strings.Contains(string(page), "`"+name+"`") {
			t.Errorf("nothing is said of %s", name)
		}
	}
}
