package web

import (
	"context"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/alecthomas/chroma/v2"
)

// colourist finds the colours of code by chroma. Its expressions backtrack: each may take a quarter
// of a second on a hostile text. So it works in the background, on few texts at once. A page waits
// for it for a bounded time, and is plain after that.
type colourist struct {
	slots   chan struct{}
	working sync.WaitGroup
}

const (
	// maxColouring is how many texts are coloured at once.
	maxColouring = 4
	// maxColoured bounds a text that is coloured, in bytes.
	maxColoured = 128 << 10
)

func newColourist() *colourist { return &colourist{slots: make(chan struct{}, maxColouring)} }

// close waits until no text is being coloured.
func (c *colourist) close() { c.working.Wait() }

// spans are the colours of a text, as many as are found with patience. A text without
// known language, or beyond bounds, has none.
func (c *colourist) spans(ctx context.Context, language string, text []byte, patience time.Duration) []span {
	if language == "" || len(text) > maxColoured {
		return nil
	}
	lexer := lexers().Get(language)
	if lexer == nil {
		return nil
	}
	select {
	case c.slots <- struct{}{}:
	default:
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	found := make(chan []span, 1)
	c.working.Go(func() {
		defer func() { <-c.slots; cancel() }()
		found <- tokenise(ctx, lexer, text)
	})
	select {
	case spans := <-found:
		return spans
	case <-ctx.Done():
	}
	select {
	case spans := <-found: // what it had when its time was over
		return spans
	case <-time.After(patience / 4):
		return nil
	}
}

// tokenise finds colours until ctx ends. A lexer that fails has found none from there on.
func tokenise(ctx context.Context, lexer chroma.Lexer, text []byte) (spans []span) {
	defer func() { _ = recover() }()
	next, err := lexer.Tokenise(&chroma.TokeniseOptions{State: "root"}, string(text))
	if err != nil {
		return nil
	}
	at := 0
	for token := next(); token != chroma.EOF && ctx.Err() == nil && at < len(text); token = next() {
		start := at
		at += lengthOf(text[at:], token.Value)
		class := classOf(token.Type)
		if class == "" || strings.TrimSpace(token.Value) == "" {
			continue
		}
		if n := len(spans); n > 0 && spans[n-1].end == start && spans[n-1].class == class {
			spans[n-1].end = at
			continue
		}
		spans = append(spans, span{start, at, class})
	}
	return spans
}

// lengthOf is how many bytes of text a token has. Where text is not UTF-8 the token has a
// replacement character for each byte.
func lengthOf(text []byte, token string) (n int) {
	for range token {
		_, width := utf8.DecodeRune(text[n:])
		n += width
	}
	return n
}

// classOf is the class of a token in style.css.
func classOf(t chroma.TokenType) string {
	switch {
	case t.InSubCategory(chroma.LiteralString):
		return "s"
	case t.InSubCategory(chroma.LiteralNumber), t == chroma.KeywordConstant:
		return "m"
	case t == chroma.CommentPreproc, t == chroma.CommentPreprocFile, t == chroma.NameDecorator, t == chroma.NameAttribute:
		return "p"
	case t.InCategory(chroma.Comment):
		return "c"
	case t == chroma.KeywordType, t == chroma.NameClass, t == chroma.NameBuiltin, t == chroma.NameNamespace:
		return "t"
	case t.InCategory(chroma.Keyword), t == chroma.NameTag, t == chroma.OperatorWord:
		return "k"
	case t == chroma.NameFunction, t == chroma.NameFunctionMagic:
		return "f"
	}
	return ""
}
