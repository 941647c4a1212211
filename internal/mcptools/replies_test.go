package mcptools

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestCallsBeforeTheEndAreAnswered: a program may write all its calls at once, and end its output. What follows the calls does not cost them their
// replies.
func TestCallsBeforeTheEndAreAnswered(t *testing.T) {
	for _, end := range []string{"", "no JSON\n", `{"jsonrpc":"2.0"`} {
		input := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_repos","arguments":{}}}
{"jsonrpc":"2.0","id":4,"method":"no/such/method"}
` + end
		var out bytes.Buffer
		server := New(func() API { return noRepos{} }, everyTool(), "test", slog.New(slog.DiscardHandler))
		err := server.Run(t.Context(), &mcp.IOTransport{Reader: io.NopCloser(strings.NewReader(input)), Writer: keptOpen{&out}})
		if (err != nil) != (end != "") {
			t.Errorf("%q: %v", end, err)
		}
		for _, id := range []string{`"id":1,`, `"id":2,`, `"id":3,`, `"id":4,`} {
			if !strings.Contains(out.String(), id) {
				t.Errorf("%q: no reply with %s among %s", end, id, out.String())
			}
		}
	}
}

type keptOpen struct{ io.Writer }

func (keptOpen) Close() error { return nil }

// noRepos is the API of an empty index, as far as this test needs it.
type noRepos struct{ API }

func (noRepos) List(context.Context, *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	return nil, errors.New("no router")
}
