package query

// Term is a text or field as written in a query.
type Term struct {
	// Field is its prefix, such as "repo:"; empty for a text.
	Field string
	// Value is the rest without prefix and quotes.
	Value string
	// Start and End are its place in the query, in bytes.
	Start, End int
	// Quoted is set if the text as written differs from the value, because of quotes or for other
	// reasons.
	Quoted bool
}

// Terms returns the texts and fields of a query as Parse reads them, in order, without the negated ones.
func Terms(input string, syntaxVersion int) (terms []Term) {
	p := newParser(input, ParseOptions{SyntaxVersion: syntaxVersion})
	for negated, depth := false, 0; ; {
		p.skipSpace()
		tok, err := scan(p.in, p.fields, p.pos)
		if err != nil || tok.kind == tokenNone {
			return terms
		}
		p.pos = tok.end
		switch tok.kind {
		case tokenMinus:
			negated = true
			continue
		case tokenOpen:
			if depth > 0 || negated { // a negated group does not count
				depth++
			}
			continue
		case tokenClose:
			if depth--; depth <= 0 {
				depth, negated = 0, false
			}
			continue
		case tokenOr:
		default:
			value := string(tok.text)
			if !negated {
				terms = append(terms, Term{tok.field, value, tok.start, tok.end, input[tok.start:tok.end] != tok.field+value})
			}
		}
		if depth == 0 {
			negated = false
		}
	}
}

// Fields returns the prefixes of all fields of the version.
func Fields(syntaxVersion int) (prefixes []string) {
	for _, f := range newParser("", ParseOptions{SyntaxVersion: syntaxVersion}).fields {
		prefixes = append(prefixes, f.prefix)
	}
	return prefixes
}
