package mcptools

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// tool is a tool that a Server can have.
type tool struct {
	name     string
	register func(s *Server)
}

// tools are all tools, in the order in which the documentation names them.
func tools() []tool {
	return []tool{
		{"grep", grepTool}, {"search", searchTool}, {"glob", globTool}, {"read_file", readTool}, {"list_tree", treeTool},
		{"list_repos", reposTool},
		{"definitions", definitionsTool}, {"references", referencesTool}, {"list_refs", refsTool}, {"count", countTool}, {"compare", compareTool},
	}
}

func toolNames() (names []string) {
	for _, t := range tools() {
		names = append(names, t.name)
	}
	return names
}

// answer is the result of a tool, in both forms.
type answer struct {
	text string
	data any
}

// call is one call of a tool.
type call struct {
	api    API
	budget budget
}

// budgeted are arguments that set a budget.
type budgeted interface{ limit() int }

// add adds a tool to the server. An error of run becomes an answer that the model reads.
func add[In budgeted](s *Server, name, title, description string, run func(c *call, ctx context.Context, in In) (*answer, error)) {
	closed := false
	schema, err := schemaOf[In]()
	if err != nil {
		panic(err) //nolint:forbidigo // the arguments of a tool are a type of this package
	}
	s.schemas[name] = schema
	t := &mcp.Tool{Name: name, Description: description, InputSchema: schema, Annotations: &mcp.ToolAnnotations{
		Title: title, ReadOnlyHint: true, IdempotentHint: true, OpenWorldHint: &closed,
	}}
	mcp.AddTool(s.sdk, t, func(ctx context.Context, _ *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		c := &call{api: s.open(), budget: newBudget(in.limit())}
		found, err := run(c, ctx, in)
		if ctx.Err() != nil {
			return nil, nil, problem(context.Cause(ctx))
		}
		if err == nil && !c.budget.holds(found) {
			err = fmt.Errorf("not even the totals fit max_tokens = %d: ask for less at once, or raise it", c.budget.tokens)
		}
		if err != nil {
			s.log.DebugContext(ctx, "MCP call failed", "tool", name, "error", err)
			return nil, nil, problem(err)
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: found.text}}}, found.data, nil
	})
}
