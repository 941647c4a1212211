package regex

import (
	"fmt"
	"strconv"
	"strings"
)

func (All) String() string   { return "all" }
func (n And) String() string { return joined(n.Children, " & ") }

// String quotes the text, with a suffix i if case does not count.
func (n Literal) String() string {
	if n.CaseSensitive {
		return strconv.Quote(n.Text)
	}
	return strconv.Quote(n.Text) + "i"
}

func (n Or) String() string {
	if len(n.Children) == 0 {
		return "none"
	}
	return joined(n.Children, " | ")
}

func joined(children []Needs, separator string) string {
	parts := make([]string, len(children))
	for i, c := range children {
		parts[i] = fmt.Sprint(c)
	}
	return "(" + strings.Join(parts, separator) + ")"
}
