package searchapi

import (
	"strings"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// SymbolOf returns the symbol that a match of a file is in, nil if it is unknown.
func SymbolOf(f *searchv1.FileMatch, r *searchv1.Range) *searchv1.Symbol {
	if n := int(r.GetSymbol()); n > 0 && n <= len(f.GetSymbols()) {
		return f.GetSymbols()[n-1]
	}
	return nil
}

// SymbolKind is the name of a kind as the query language has it, such as "function".
func SymbolKind(k searchv1.SymbolKind) string {
	return strings.ToLower(strings.TrimPrefix(k.String(), "SYMBOL_KIND_"))
}

// SymbolNote says in words which symbol a match is, or is in: "method in Reader", "in function
// main"; empty if it is unknown. Names are as written in the file.
func SymbolNote(f *searchv1.FileMatch, r *searchv1.Range) string {
	s := SymbolOf(f, r)
	if s == nil {
		return ""
	}
	switch kind := SymbolKind(s.GetKind()); {
	case r.GetDefinition() && s.GetScope() != "":
		return kind + " in " + s.GetScope()
	case r.GetDefinition():
		return kind
	case s.GetScope() != "":
		return "in " + kind + " " + s.GetScope() + "." + s.GetName()
	default:
		return "in " + kind + " " + s.GetName()
	}
}
