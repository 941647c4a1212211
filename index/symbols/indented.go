package symbols

// python finds the definitions of Python: a statement starts at the beginning of a line, and
// indentation shows what it is in.
func python(f *finder) {
	for {
		switch f.next() {
		case tokenEnd:
			return
		case '(', '[', '{':
			f.balanced(f.kind)
		case tokenWord:
			if f.broken && !f.continued() || f.before == ';' || f.before == ':' && !f.broken && f.action() != noAction {
				f.pythonStatement()
			}
		}
	}
}

// continued reports whether the line before ends with a backslash.
func (f *finder) continued() bool {
	end := f.lineAt - 1 // of the line before
	if end > 0 && f.text[end-1] == '\r' {
		end--
	}
	return end > 0 && f.text[end-1] == '\\'
}

// deepest is the deepest indentation that counts, in bytes.
const deepest = 1000

// indent returns the indentation of the token's line.
func (f *finder) indent() uint32 {
	n := uint32(0)
	for at := f.lineAt; at < min(f.start, f.lineAt+deepest) && (f.text[at] == ' ' || f.text[at] == '\t'); at++ {
		if n++; f.text[at] == '\t' {
			n += 7
		}
	}
	return n
}

// dedent closes the frames that end at a line with that indentation.
func (f *finder) dedent(indent uint32) {
	for n := len(f.frames); n > 0 && f.frames[n-1].indent >= indent; n-- {
		f.ends(f.frames[n-1].symbol, f.lineAt)
		f.frames = f.frames[:n-1]
	}
}

// within opens a frame that ends at the next line that is not indented further.
func (f *finder) within(kind frameKind, name Span, indent uint32) {
	if len(f.frames) < maxFrames {
		f.frames = append(f.frames, frame{name: name, kind: kind, symbol: f.symbolOf(name), indent: indent})
	}
}

func (f *finder) pythonStatement() {
	indent := f.indent()
	if f.broken {
		f.dedent(indent)
	}
	act := f.action()
	if act == isAttribute { // async
		if f.next() != tokenWord {
			return
		}
		act = f.action()
	}
	switch act {
	case isFunc:
		kind := Function
		if f.in() == typeFrame {
			kind = Method
		}
		if f.next() == tokenWord {
			f.add(kind, f.token())
			f.within(bodyFrame, f.token(), indent)
		}
	case isType:
		if f.next() == tokenWord {
			f.add(Type, f.token())
			f.within(typeFrame, f.token(), indent)
		}
	case noAction:
		f.pythonValue()
	}
}

// pythonValue handles names in a module or class to which something is assigned.
func (f *finder) pythonValue() {
	kind := Variable
	switch f.in() {
	case typeFrame:
		kind = Field
	case bodyFrame:
		return
	}
	name := f.token()
	for range 20 {
		next := f.peekSame()
		switch {
		case next == '=' && !f.compares():
			f.add(kind, name)
			f.next()
			if !isNameStart(f.peekSame()) || f.next() != tokenWord { // a = b = c
				return
			}
			name = f.token()
			continue
		case next == ':':
			f.add(kind, name)
		}
		return
	}
}

// compares reports whether == comes next.
func (l *lexer) compares() bool {
	for at := l.pos; at+1 < len(l.text); at++ {
		if l.text[at] == '=' {
			return l.text[at+1] == '='
		}
	}
	return false
}

// ruby finds the definitions of Ruby. Indentation shows where a definition ends.
func ruby(f *finder) {
	for {
		switch f.next() {
		case tokenEnd:
			return
		case '=':
			if f.lineStart() && hasPrefix(f.text[f.start:], "=begin") {
				f.pos = f.after(f.pos, "\n=end")
			}
		case '<':
			if hasPrefix(f.text[f.start:], "<<") && f.start+2 < len(f.text) && (f.text[f.start+2] == '-' || f.text[f.start+2] == '~' || f.text[f.start+2] >= 'A' && f.text[f.start+2] <= 'Z' && f.before != tokenWord) {
				f.heredoc(f.start + 2)
			}
		case tokenWord:
			if f.broken || f.before == ';' || f.action() == isFunc && f.before == tokenWord {
				f.rubyStatement()
			}
		}
	}
}

// lineStart reports whether the token is in the first column.
func (f *finder) lineStart() bool { return f.start == 0 || f.text[f.start-1] == '\n' }

func (f *finder) rubyStatement() {
	if string(f.word()) == "__END__" {
		f.pos = len(f.text)
		return
	}
	indent := f.indent()
	if f.broken {
		f.dedent(indent)
	}
	switch f.action() {
	case isFunc:
		f.rubyMethod(indent)
	case isType, isModule:
		kind := Type
		if f.action() == isModule {
			kind = Module
		}
		if f.peekSame() == '<' || f.next() != tokenWord {
			return
		}
		for f.pos+2 < len(f.text) && f.text[f.pos] == ':' {
			f.next()
			f.next()
			f.next()
		}
		f.add(kind, f.token())
		f.within(typeFrame, f.token(), indent)
	case isAlias:
		if f.peekSame() == ':' {
			f.next()
		}
		f.named(Method)
	case isVar:
		for f.peek() == ':' {
			if f.next(); f.next() != tokenWord {
				return
			}
			f.add(Field, f.token())
			if f.peekSame() == ',' {
				f.next()
			}
		}
	case noAction:
		if c := f.text[f.start]; c >= 'A' && c <= 'Z' && f.peekSame() == '=' && !f.compares() && !hasPrefix(f.text[f.pos:], "=") {
			f.add(Constant, f.token())
		}
	}
}

func (f *finder) rubyMethod(indent uint32) {
	if !isNameStart(f.peekSame()) || f.next() != tokenWord {
		return
	}
	for f.pos+2 < len(f.text) && (f.text[f.pos] == '.' && isNameStart(f.text[f.pos+1]) || f.text[f.pos] == ':' && isNameStart(f.text[f.pos+2])) {
		for kind := f.next(); kind != tokenWord; kind = f.next() {
			if kind == tokenEnd {
				return
			}
		}
	}
	name := f.token()
	if f.pos < len(f.text) && (f.text[f.pos] == '?' || f.text[f.pos] == '!' || f.text[f.pos] == '=' && f.pos+1 < len(f.text) && f.text[f.pos+1] == '(') {
		f.pos++
		name.End++
	}
	f.add(Method, name)
	f.within(bodyFrame, name, indent)
}
