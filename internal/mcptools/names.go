package mcptools

import (
	"context"
	"fmt"

	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type namesArgs struct {
	Names []string `json:"names" jsonschema:"1 to 8 names, whole and with case"`
	Scope
	Context uint32 `json:"context,omitempty" jsonschema:"lines shown around each place, 0 to 20"`
	Detail  Detail `json:"detail,omitempty" jsonschema:"as for grep"`
	Cursor  string `json:"cursor,omitempty" jsonschema:"cursor of an earlier answer to the same arguments"`
	Limit
}

// definitionsArgs are namesArgs with a place.
type definitionsArgs struct {
	namesArgs

	From *placeArgs `json:"from,omitempty" jsonschema:"a place of use: what it means comes first"`
}

type placeArgs struct {
	Repo string `json:"repo"`
	Path string `json:"path"`
	Line uint32 `json:"line"`
}

func (c *call) definitions(ctx context.Context, in definitionsArgs) (*answer, error) {
	var from *searchv1.Place
	if in.From != nil {
		from = &searchv1.Place{Repo: in.From.Repo, Path: []byte(meant(in.From.Path)), Branch: in.Branch, Line: in.From.Line}
	}
	return c.places(ctx, "definitions", in.namesArgs, searchapi.DefinitionsOf, from)
}

func (c *call) references(ctx context.Context, in namesArgs) (*answer, error) {
	return c.places(ctx, "references", in, searchapi.ReferencesOf, nil)
}

// maxName bounds a name in bytes, as the calls of the API do.
const maxName = 256

// places finds places of names, from a place or from anywhere.
func (c *call) places(ctx context.Context, tool string, in namesArgs, query func(name, within string) string, from *searchv1.Place) (*answer, error) {
	if len(in.Names) == 0 || len(in.Names) > maxPatterns {
		return nil, plainError(fmt.Sprintf("names: %d given, want 1 to %d", len(in.Names), maxPatterns))
	}
	rungs, err := rungsOf(in.Detail, ladder)
	if err != nil {
		return nil, err
	}
	own := in
	own.MaxTokens, own.Cursor = 0, ""
	next, err := decodeCursor(in.Cursor, markOf(tool, own))
	if err != nil {
		return nil, err
	}
	finds := make([]find, len(in.Names))
	for i, name := range in.Names {
		if name == "" || len(name) > maxName {
			return nil, plainError(fmt.Sprintf("names: one of %d bytes, want 1 to %d", len(name), maxName))
		}
		finds[i] = find{
			query: query(name, in.query()), text: name, locate: func(int) int { return 0 }, name: name,
			ladder: rungs, fixed: len(rungs) == 1, context: min(in.Context, 20), symbols: true,
			place: from, scope: in.query(),
		}
		if len(in.Names) > 1 {
			finds[i].label = cut(clean([]byte(name)), 60)
		}
	}
	return c.search(ctx, in.Scope, finds, next, in.Cursor != "")
}
