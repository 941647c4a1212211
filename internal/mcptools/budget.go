package mcptools

import (
	"bytes"
	"encoding/json"
	"sort"
)

// bytesPerToken estimates tokens from bytes. Source code has three to four bytes a token in
// the tokenizers of current models, so the estimate is on the safe side.
const bytesPerToken = 3

// Bounds of max_tokens. Clients refuse answers of more than mostTokens.
const (
	leastTokens    = 1000
	standardTokens = 8000
	mostTokens     = 25_000
)

// Limit is the part of arguments that every tool has.
type Limit struct {
	MaxTokens int `json:"max_tokens,omitempty" jsonschema:"most tokens of the answer, 1000 to 25000; default 8000"`
}

func (l Limit) limit() int { return l.MaxTokens }

// budget bounds an answer. Each of its two forms is at most tokens*bytesPerToken bytes long.
type budget struct {
	tokens int
	// notes say that the caller asked for a number out of bounds.
	notes []string
}

func newBudget(asked int) budget {
	if asked == 0 {
		return budget{tokens: standardTokens}
	}
	b := budget{tokens: min(max(asked, leastTokens), mostTokens)}
	if b.tokens != asked {
		b.notes = []string{"max_tokens can be 1000 to 25000"}
	}
	return b
}

// bytes is the size that each form may have.
func (b budget) bytes() int { return b.tokens * bytesPerToken }

// names is the most bytes shown of a path or of the name of a repo.
func (b budget) names() int { return b.bytes() / 8 }

// tail is the part of the budget that is reserved for coverage and notes.
func (b budget) tail() int { return min(b.bytes()/5, 3000) }

func (b budget) holds(a *answer) bool { return size(a.text, a.data) <= b.bytes() }

// size is the size of the larger form.
func size(text string, data any) int { return max(len(text), len(encode(data))) }

// encode returns the JSON that clients show: unlike on the wire, < is not escaped.
func encode(data any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(data) //nolint:errchkjson // answers are structs of strings and numbers
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// most is the largest number up to n for which fits holds, or 0. If fits holds for a
// number, it must hold for all smaller ones.
func most(n int, fits func(int) bool) int {
	if fits(n) {
		return n
	}
	return sort.Search(n, func(i int) bool { return !fits(i + 1) })
}
