package mcptools

import "context"

type countArgs struct {
	Patterns   []string `json:"patterns" jsonschema:"1 to 8 regular expressions (RE2), each counted by itself"`
	Literal    bool     `json:"literal,omitempty" jsonschema:"the patterns are plain text"`
	IgnoreCase bool     `json:"ignore_case,omitempty" jsonschema:"count without regard to case"`
	Scope
	Limit
}

func (c *call) count(ctx context.Context, in countArgs) (*answer, error) {
	return c.grep(ctx, grepArgs{
		Patterns: in.Patterns, Literal: in.Literal, IgnoreCase: in.IgnoreCase, Scope: in.Scope, Detail: Directories, Limit: in.Limit,
	})
}
