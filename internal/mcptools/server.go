// Package mcptools serves search to coding agents over the Model Context Protocol, with
// tools that answer within a number of tokens. Both transports, standard input and
// output (trawl mcp) and streamable HTTP (routers, at /mcp), have the same tools.
// docs/mcp.md describes the tools.
//
// Every answer has two forms, text and structured content, with the same facts. Clients
// show a model one of them, so each alone keeps the budget. See budget.
package mcptools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/trawl-search/trawl/internal/config"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Path is where routers serve the protocol over HTTP.
const Path = "/mcp"

// API is the search service that the tools call: a router's, or a client of one. It is
// safe for concurrent use. All requests of one tool call use one API.
type API interface {
	Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error)
	List(ctx context.Context, req *searchv1.ListRequest) (*searchv1.ListResponse, error)
	Definitions(ctx context.Context, req *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error)
	GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error)
	ListTree(ctx context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error)
}

// Config selects the tools. The description of each costs every conversation tokens,
// so the default has only some of them.
type Config struct {
	Tools []string `config:"tools" doc:"tools for coding agents at /mcp: grep, search, glob, read_file, list_tree, list_repos, definitions, references, list_refs, count, compare; empty: none, and no such path"`
}

// SetDefaults implements config.Settings.
func (c *Config) SetDefaults() {
	c.Tools = []string{"grep", "search", "glob", "read_file", "list_tree", "list_repos", "definitions", "references"}
}

// Validate implements config.Settings.
func (c *Config) Validate() error {
	var check config.Check
	for _, name := range c.Tools {
		check.OneOf("tools", name, toolNames()...)
	}
	return check.Err()
}

// Server serves the tools. It keeps no state between calls: there are no sessions, so each
// call may reach another router, and a client that has gone leaves nothing behind. It is
// safe for concurrent use.
type Server struct {
	sdk     *mcp.Server
	open    func() API
	log     *slog.Logger
	schemas map[string]*jsonschema.Schema // of the arguments of each tool
}

// instructions describe the server as a whole; clients pass them to the model.
const instructions = `Code search over all indexed Git repositories. Answers keep a budget (max_tokens): what does not fit as lines is given in
less detail, with exact totals, and a cursor for the rest. "Complete" with 0 matches means that there are none. Cite repo@commit, path and lines.
Names of repos and paths are given back as they were shown, quotes included. Independent calls can be made in parallel.`

// New returns a server of the tools of cfg, which must be valid. Each tool call opens an
// API of its own.
func New(open func() API, cfg Config, version string, log *slog.Logger) *Server {
	s := &Server{open: open, log: log, schemas: map[string]*jsonschema.Schema{}}
	s.sdk = mcp.NewServer(&mcp.Implementation{Name: "trawl", Title: "Trawl code search", Version: version}, &mcp.ServerOptions{
		Instructions: instructions, Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	for _, name := range cfg.Tools {
		for _, t := range tools() {
			if t.name == name {
				t.register(s)
			}
		}
	}
	s.sdk.AddReceivingMiddleware(endWithRequest, shortenErrors, s.checkArguments)
	return s
}

// Run serves one client over a transport until it leaves, and what it has asked is answered, or ctx ends.
func (s *Server) Run(ctx context.Context, t mcp.Transport) error {
	// A client that has gone closes the pipe, perhaps before the last reply.
	if err := s.sdk.Run(ctx, answering{t}); err != nil && !errors.Is(err, io.ErrClosedPipe) && ctx.Err() == nil {
		return fmt.Errorf("serve MCP: %w", err)
	}
	return nil
}

// maxBody bounds a message over HTTP in bytes.
const maxBody = 1 << 20

// Handler serves streamable HTTP. A request carries one call, so limits on requests are
// limits on calls. The router's gate checks the callers; Handler does not.
func (s *Server) Handler(wallTime time.Duration) http.Handler {
	streamable := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s.sdk }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, MaxRequestBodyBytes: maxBody, DisableLocalhostProtection: true,
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
			if err != nil {
				code := http.StatusBadRequest
				if _, large := errors.AsType[*http.MaxBytesError](err); large {
					code = http.StatusRequestEntityTooLarge
				}
				http.Error(w, fmt.Sprintf("read the message: %v", err), code)
				return
			}
			if first := bytes.TrimLeft(body, " \t\r\n"); len(first) > 0 && first[0] == '[' {
				http.Error(w, "batches are not supported: send each message in a request of its own", http.StatusBadRequest)
				return
			}
			r.Body = io.NopCloser(bytes.NewReader(body))
		}
		ctx, cancel := context.WithTimeout(r.Context(), wallTime)
		defer cancel()
		streamable.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), requestKey{}, ctx)))
	})
}

// requestKey is the key of the HTTP request's context, with which the call must end. The
// SDK passes the values of a request's context to its call, but not its end.
type requestKey struct{}

// endWithRequest ends a call when its HTTP request ends, because the client has gone, or
// when its time is over.
func endWithRequest(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		if request, ok := ctx.Value(requestKey{}).(context.Context); ok {
			var cancel context.CancelCauseFunc
			ctx, cancel = context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(request, func() { cancel(context.Cause(request)) })()
		}
		return next(ctx, method, req)
	}
}

// maxError bounds the text of an error in bytes. It fits every budget.
const maxError = 2000

// shortenErrors bounds errors of calls: errors about arguments repeat the arguments.
func shortenErrors(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		result, err := next(ctx, method, req)
		if call, ok := result.(*mcp.CallToolResult); ok && call != nil && call.IsError {
			for _, content := range call.Content {
				if text, ok := content.(*mcp.TextContent); ok {
					text.Text = cut(text.Text, maxError)
				}
			}
		}
		return result, err
	}
}
