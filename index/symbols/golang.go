package symbols

// goType handles the fields of a struct, or the methods of an interface, after a type's name in Go.
func (a *announcing) goType(name Span) {
	a.brackets('[') // type parameters, or an array
	if a.peek() == '=' {
		a.next()
	}
	a.opens = frame{kind: otherFrame}
	if a.peek() != 's' && a.peek() != 'i' || a.next() != tokenWord {
		return
	}
	word := string(a.word())
	if word != "struct" && word != "interface" || a.peek() != '{' {
		return
	}
	a.next()
	a.push(typeFrame, name)
	a.goMembers(word == "interface")
	a.pop()
}

// goMembers handles the members up to the closing brace.
func (a *announcing) goMembers(methods bool) {
	for {
		switch a.next() {
		case tokenEnd, '}':
			return
		case '{', '(', '[':
			a.balanced(a.kind)
		case tokenWord:
			if !a.broken && a.before != '{' && a.before != ';' {
				continue
			}
			next := a.peekSame()
			switch {
			case methods && next == '(':
				a.add(Method, a.token())
			case !methods && (next == ',' || next == '*' || next == '[' || next == '(' || next == '<' || isWordByte(next)):
				a.add(Field, a.token())
				for a.peek() == ',' {
					a.next()
					a.named(Field)
				}
			}
		}
	}
}

// peekSame is peek within the line.
func (l *lexer) peekSame() byte {
	for at := l.pos; at < len(l.text) && l.text[at] != '\n'; at++ {
		if l.text[at] > ' ' {
			return l.text[at]
		}
	}
	return 0
}

// goResult skips types with braces in the result of a function.
func (a *announcing) goResult() {
	for {
		switch a.peekSame() {
		case '{', 0:
			return
		default:
			if a.next() == tokenEnd {
				return
			}
			switch word := a.word(); {
			case a.kind == '(':
				a.balanced('(')
			case a.kind == tokenWord && (string(word) == "interface" || string(word) == "struct") && a.peekSame() == '{':
				a.brackets('{')
			}
		}
	}
}

// group handles the names in a parenthesized declaration of Go.
func (a *announcing) group(act action) {
	kind := kindOfValue(act)
	for {
		switch a.next() {
		case tokenEnd, ')':
			return
		case '{', '(', '[':
			a.balanced(a.kind)
		case tokenWord:
			if !a.broken && a.before != '(' && a.before != ';' || continues(a.before) {
				continue
			}
			if act == isAlias {
				name := a.token()
				a.add(Type, name)
				a.goType(name)
				continue
			}
			a.add(kind, a.token())
			for a.peekSame() == ',' {
				a.next()
				a.named(kind)
			}
		}
	}
}

// continues reports whether an expression continues after a token at the end of a line.
func continues(token byte) bool {
	return contains("+-*/|&.=,<>^%!:", token)
}

// zigType handles a constant of Zig whose value is a type.
func (a *announcing) zigType(name Span) bool {
	if a.peek() != '=' {
		return false
	}
	a.next()
	for range 2 { // extern struct, packed union
		if a.peek() < 'a' || a.next() != tokenWord {
			return false
		}
		switch string(a.word()) {
		case "struct", "union", "opaque":
			a.add(Type, name)
			a.opens = frame{name: name, kind: typeFrame}
		case "enum", "error":
			a.add(Type, name)
			a.opens = frame{name: name, kind: enumFrame}
		default:
			continue
		}
		a.brackets('(')
		return true
	}
	return false
}
