package mcptools

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestCallsBeforeTheEndAreAnswered: a program may write all its calls at once, and end its output. Lines among them that are no messages are answered
// with errors, and cost no call its reply.
func TestCallsBeforeTheEndAreAnswered(t *testing.T) {
	const parse, invalid = `"id":null,"error":{"code":-32700,`, `"id":null,"error":{"code":-32600,`
	for line, refusal := range map[string]string{
		"": "", " \r": "", "no JSON": parse, `{"jsonrpc":"2.0"`: parse, "{}": invalid, `[{"jsonrpc":"2.0","id":9,"method":"ping"}]`: invalid, "3": invalid,
		`{"jsonrpc":"2.0","id":9,"method":"ping"}{"jsonrpc":"2.0","id":10,"method":"ping"}`: parse, `{"jsonrpc":"2.0","id":9,"method":"ping"} x`: parse,
		strings.Repeat("x", mcp.DefaultMaxLineLength+1): parse, strings.Repeat("x", 2*mcp.DefaultMaxLineLength): parse,
	} {
		input := line + `
{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
` + line + `
{"jsonrpc":"2.0","id":2,"method":"tools/list"}
{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"list_repos","arguments":{}}}
{"jsonrpc":"2.0","id":4,"method":"no/such/method"}
` + line
		var out bytes.Buffer
		server := New(func() API { return noRepos{} }, everyTool(), "test", slog.New(slog.DiscardHandler))
		if err := server.Run(t.Context(), LineTransport(strings.NewReader(input), &out)); err != nil {
			t.Errorf("%.100q: %v", line, err)
		}
		for _, id := range []string{`"id":1,`, `"id":2,`, `"id":3,`, `"id":4,`} {
			if !strings.Contains(out.String(), id) {
				t.Errorf("%.100q: no reply with %s among %s", line, id, out.String())
			}
		}
		if refused := strings.Count(out.String(), `"id":null`); refusal == "" && refused > 0 || refusal != "" && strings.Count(out.String(), refusal) != 3 {
			t.Errorf("%.100q: no refusals among %s", line, out.String())
		}
	}
}

// noRepos is the API of an empty index, as far as this test needs it.
type noRepos struct{ API }

func (noRepos) List(context.Context, *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	return nil, errors.New("no router")
}
