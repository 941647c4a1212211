package mcptools

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// schemaOf is the schema of a tool's arguments. Each has one type: not all clients know lists of types.
func schemaOf[In any]() (*jsonschema.Schema, error) {
	s, err := jsonschema.For[In](nil)
	if err != nil {
		return nil, fmt.Errorf("the schema of the arguments: %w", err)
	}
	oneType(s)
	return s, nil
}

// oneType leaves null out of the types of a schema. Arguments that are null count as left out.
func oneType(s *jsonschema.Schema) {
	if s == nil {
		return
	}
	if types := slices.DeleteFunc(slices.Clone(s.Types), func(t string) bool { return t == "null" }); len(types) == 1 {
		s.Type, s.Types = types[0], nil
	}
	for _, p := range s.Properties {
		oneType(p)
	}
	oneType(s.Items)
}

// checkArguments refuses arguments that a tool does not have, and tells which it has. It leaves out those that are null.
func (s *Server) checkArguments(next mcp.MethodHandler) mcp.MethodHandler {
	return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
		call, ok := req.(*mcp.CallToolRequest)
		if !ok || s.schemas[call.Params.Name] == nil {
			return next(ctx, method, req)
		}
		decoder := json.NewDecoder(bytes.NewReader(call.Params.Arguments))
		decoder.UseNumber()
		given := any(map[string]any{})
		if err := decoder.Decode(&given); err == nil || len(call.Params.Arguments) == 0 {
			given = withoutNulls(given)
			wrong := mistaken(s.schemas[call.Params.Name], given, "")
			if _, ok := given.(map[string]any); !ok && given != nil {
				wrong = "the arguments are to be one object of JSON, not " + cut(string(call.Params.Arguments), 100)
			}
			if wrong != "" {
				return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: wrong}}}, nil
			}
			if plain, err := json.Marshal(given); err == nil {
				call.Params.Arguments = plain
			}
		}
		result, err := next(ctx, method, req)
		if r, ok := result.(*mcp.CallToolResult); ok && r != nil && r.IsError {
			for _, content := range r.Content {
				if text, ok := content.(*mcp.TextContent); ok {
					text.Text = ofArgument.ReplaceAllString(ofValidation.ReplaceAllString(text.Text, ""), "$1: ")
				}
			}
		}
		return result, err
	}
}

// What the validation of the SDK says before it comes to the point.
var (
	ofValidation = regexp.MustCompile(`^validating "arguments": (?:validating root: )?`)
	ofArgument   = regexp.MustCompile(`validating /properties/(\w+)[^:]*: (?:validating [^:]*: )*(?:type: )?`)
)

// withoutNulls is a value of JSON without members that are null.
func withoutNulls(value any) any {
	switch v := value.(type) {
	case map[string]any:
		maps.DeleteFunc(v, func(_ string, member any) bool { return member == nil })
		for name, member := range v {
			v[name] = withoutNulls(member)
		}
	case []any:
		for i, item := range v {
			v[i] = withoutNulls(item)
		}
	}
	return value
}

// mistaken says which argument the schema does not have, or needs, or which number cannot be; it is empty if there is none. At is where the
// value is.
func mistaken(s *jsonschema.Schema, value any, at string) string {
	switch v := value.(type) {
	case map[string]any:
		if s.Type != "object" {
			break // the validation names the type
		}
		names := slices.Sorted(maps.Keys(s.Properties))
		for _, name := range slices.Sorted(maps.Keys(v)) {
			of := s.Properties[name]
			if of == nil {
				near := ""
				if like := searchapi.SpelledLike(name, names); len(like) > 0 {
					near = fmt.Sprintf("; the nearest: %q", like[0])
				}
				return fmt.Sprintf("there is no argument %q%s; these are: %s", cut(at+name, 100), near, strings.Join(names, ", "))
			}
			if wrong := mistaken(of, v[name], at+name+"."); wrong != "" {
				return wrong
			}
		}
		for _, name := range s.Required {
			if _, ok := v[name]; !ok {
				return fmt.Sprintf("the argument %q is needed: %s", at+name, s.Properties[name].Description)
			}
		}
	case []any:
		for i, item := range v {
			if s.Items == nil {
				break
			}
			if wrong := mistaken(s.Items, item, fmt.Sprintf("%s[%d].", strings.TrimSuffix(at, "."), i)); wrong != "" {
				return wrong
			}
		}
	case json.Number:
		least := -math.MaxUint32
		if s.Minimum != nil {
			least = int(*s.Minimum)
		}
		if n, err := v.Float64(); s.Type == "integer" && (err != nil || n != math.Trunc(n) || math.Signbit(n) && least >= 0 || n < float64(least) || n > math.MaxUint32) {
			return fmt.Sprintf("%s is %s: want a whole number from %d to %d", strings.TrimSuffix(at, "."), cut(v.String(), 100), least, math.MaxUint32)
		}
	}
	return ""
}
