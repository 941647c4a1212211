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
		newTool("grep", "Search by regular expressions",
			"Find every line that matches regular expressions, over all repos or some. Several patterns are searched at once. "+
				"Totals are exact. Zero matches with \"Complete\" is proof that there are none.", (*call).grep),
		newTool("search", "Ranked search",
			"Find the files that fit some words best, best first, with their best lines. "+
				"If no file has all words, files with any of them are shown, and the answer says so.", (*call).ranked),
		newTool("glob", "Find files by path", "Find files by globs of their paths, over all repos or some. The count is exact.", (*call).glob),
		newTool("read_file", "Read files",
			"Read ranges of lines of one or many files in one call. A range that does not fit says from which line to go on.", (*call).read),
		newTool("list_tree", "List a directory",
			"List files and directories of a repo, to some depth. A directory that is not opened has its number of files.", (*call).tree),
		newTool("list_repos", "List repos",
			"List the indexed repos that you may see, with default branch, commit, number of files and languages.", (*call).repos),
		newTool("definitions", "Find definitions",
			"Find where names are defined: functions, types, constants, fields and so on, each with its kind and what it is in.", (*call).definitions),
		newTool("references", "Find references",
			"Find all places of whole names but their definitions, each with the definition around it.", (*call).references),
		newTool("list_refs", "List branches", "List the indexed branches of a repo, with their commits.", (*call).refs),
		newTool("count", "Count matches", "Count the matches of regular expressions exactly, by repo and directory.", (*call).count),
		newTool("compare", "Compare branches", "List the files that differ between two indexed branches of a repo. read_file shows each side.", (*call).compare),
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

// newTool makes a tool. An error of run becomes an answer that the model reads.
func newTool[In budgeted](name, title, description string, run func(c *call, ctx context.Context, in In) (*answer, error)) tool {
	return tool{name, func(s *Server) {
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
	}}
}
