package indextest

import (
	"regexp"
	"strings"
)

// Quote writes a text as one term of the query language that searches for
// exactly this text. The text is UTF-8 and not empty.
func Quote(text string) string { return quoteExpression(regexp.QuoteMeta(text)) }

// quoteExpression writes a regular expression as one term, in quotes, so that
// spaces, parentheses, a leading dash or a field do not end or change it.
func quoteExpression(source string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(source) + `"`
}
