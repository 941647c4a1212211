package cli

import (
	"context"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/internal/mcptools"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

func newMCP(p Process) *cobra.Command {
	var cfg mcptools.Config
	cfg.SetDefaults()
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Serve search to a coding agent, over standard input and output",
		Long: `Serve search to a coding agent over the Model Context Protocol, on standard input and output. It asks a router, as
trawl search does. docs/mcp.md has the tools, and how to configure clients:

  claude mcp add trawl -- trawl mcp --addr search.example.org:443 --tls --token-file ~/.trawl-token`,
		Args: usageArgs(knownCommand),
	}
	cmd.Flags().StringSliceVar(&cfg.Tools, "tools", cfg.Tools, "tools to offer; there are also list_refs, count and compare")
	return calling(p, cmd, func(ctx context.Context, c client, _ []string) error {
		if err := cfg.Validate(); err != nil {
			return usageError{err}
		}
		open := func() mcptools.API { return remote{c.search} }
		tools := mcptools.New(open, cfg, Version(), slog.New(slog.NewTextHandler(p.Err, &slog.HandlerOptions{Level: slog.LevelWarn})))
		return tools.Run(ctx, mcptools.LineTransport(p.In, p.Out))
	})
}

// remote adapts a router to the interface of the tools.
type remote struct{ router searchv1.SearchServiceClient }

// Search implements mcptools.API.
func (r remote) Search(ctx context.Context, req *searchv1.SearchRequest) (*searchv1.SearchResponse, error) {
	return r.router.Search(ctx, req)
}

// List implements mcptools.API.
func (r remote) List(ctx context.Context, req *searchv1.ListRequest) (*searchv1.ListResponse, error) {
	return r.router.List(ctx, req)
}

// Definitions implements mcptools.API.
func (r remote) Definitions(ctx context.Context, req *searchv1.DefinitionsRequest) (*searchv1.DefinitionsResponse, error) {
	return r.router.Definitions(ctx, req)
}

// GetFile implements mcptools.API.
func (r remote) GetFile(ctx context.Context, req *searchv1.GetFileRequest) (*searchv1.GetFileResponse, error) {
	return r.router.GetFile(ctx, req)
}

// ListTree implements mcptools.API.
func (r remote) ListTree(ctx context.Context, req *searchv1.ListTreeRequest) (*searchv1.ListTreeResponse, error) {
	return r.router.ListTree(ctx, req)
}
