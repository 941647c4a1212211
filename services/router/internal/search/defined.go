package search

import (
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// wholeName is the value of a term that asks for one name.
var wholeName = lazyregexp.New(`^\^?(?:\\b)?(\w+)(?:\\b)?\$?$`)

// nearestNames bounds the definitions of one file that are compared with a name that is not defined.
const nearestNames = 50

// name adds a hint about the first term of the query that asks for one name: the nearest that are defined, if it is not.
// Asked is the query that was searched. It can have another name than the query of the caller, and then there is nothing to try instead.
func (h *hinter) name(ctx context.Context, asked string) {
	for _, t := range query.Terms(asked, h.version) {
		group := wholeName().FindStringSubmatch(t.Value)
		if group == nil || t.Field != "sym:" && t.Field != "ref:" {
			continue
		}
		name := group[1]
		names := h.definedLike(ctx, asked[:t.Start], name, asked[t.End:])
		text, best := nearestTo(name, names)
		switch {
		case len(best) == 0:
		case slices.Contains(names, name) && t.Field == "ref:":
			h.hints = append(h.hints, &searchv1.Hint{Text: quoted(name) + " is defined, and used nowhere that the query looks"})
		case slices.Contains(names, name):
		default:
			hint := &searchv1.Hint{Text: fmt.Sprintf("%s is not defined where the query looks%s", quoted(name), text)}
			if asked == h.text {
				instead := "^" + regexp.QuoteMeta(best[0]) + "$"
				if t.Field == "ref:" { // which looks for a word within lines
					instead = `\b` + regexp.QuoteMeta(best[0]) + `\b`
				}
				hint.Query = asked[:t.Start] + t.Field + query.Quote(instead) + asked[t.End:]
			}
			h.hints = append(h.hints, hint)
		}
		return
	}
}

// definedLike finds definitions that are named almost like name, in files that the rest of a query, before and after it, matches.
// There are none if they cannot be found in time.
func (e *execution) definedLike(ctx context.Context, before, name, after string) (names []string) {
	l := e.aside()
	defer l.end()
	// One wrong, missing or added letter leaves two of three parts of a name as they should be, in their order.
	part := searchapi.Thirds(name)
	for i := range part {
		part[i] = regexp.QuoteMeta(part[i])
	}
	like := part[0]
	if len(part) == 3 {
		like = fmt.Sprintf(`%[1]s\w*%[2]s|%[1]s\w*%[3]s|%[2]s\w*%[3]s`, part[0], part[1], part[2])
	}
	files, _, err := l.search(ctx, &searchv1.SearchRequest{Query: before + "sym:" + query.Quote("(?i:"+like+")") + after}, &searchv1.SearchOptions{
		SyntaxVersion: ownFields, MaxFiles: nearestFiles, MaxMatchesPerFile: nearestNames, MaxBytes: nearestBytes,
		Mode: searchv1.Mode_MODE_TOP_K, Symbols: true,
	})
	if err != nil {
		return nil
	}
	for _, f := range files {
		for _, s := range f.Symbols {
			names = append(names, s.Name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
