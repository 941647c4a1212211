package symbols

// script finds the definitions of JavaScript and TypeScript.
func script(f *finder) {
	s := scripting{finder: f}
	for {
		kind := f.next()
		switch kind {
		case tokenEnd:
			return
		case tokenWord:
			s.handle()
		case '{':
			s.brace()
			s.member, s.target = true, Span{}
			continue
		case '}':
			f.pop()
			s.member, s.target = true, Span{}
			continue
		case ';':
			s.member, s.target, s.opens = true, Span{}, frame{}
			continue
		case ',':
			s.member, s.target = f.in() != typeFrame, Span{}
			continue
		case '=':
			if f.pos < len(f.text) && f.text[f.pos] == '>' {
				f.next()
				s.opens = frame{kind: bodyFrame, name: s.opens.name}
			} else if f.before == tokenWord && s.target.End > 0 {
				s.assigned()
			}
		case '(':
			if s.opens.kind == typeFrame {
				f.balanced('(')
			}
		case '[', '*':
			continue // a member has a computed name, or is a generator
		case '@':
			if f.next() == tokenWord {
				f.brackets('(')
			}
			continue
		}
		s.member = s.modifier
		s.modifier = false
	}
}

type scripting struct {
	*finder
	opens    frame
	target   Span // the last word, which may be the target of an assignment
	member   bool
	modifier bool
}

// brace opens a frame: for what was announced, for an object, or for code.
func (s *scripting) brace() {
	switch {
	case s.opens.kind != topFrame || s.opens.name.End > 0:
		s.push(s.opens.kind, s.opens.name)
	case contains("=(,:[?|&", s.before), s.before == tokenWord && s.wordBefore():
		s.push(objectFrame, Span{})
	default:
		s.push(bodyFrame, Span{})
	}
	s.opens = frame{}
}

func (s *scripting) handle() {
	if s.broken && s.opens == (frame{kind: bodyFrame}) {
		s.opens = frame{} // the value of an arrow function was not a block
	}
	word := s.word()
	act := s.lang.words.action(word)
	dotted := s.before == '.'
	in := s.in()
	if !dotted && (s.member || s.broken) && (in == typeFrame || in == objectFrame || in == enumFrame) && s.memberNamed(act) {
		return
	}
	if dotted {
		act = noAction
	}
	name := s.token()
	switch act {
	case isFunc:
		if s.peek() == '*' {
			s.next()
		}
		if s.peek() == '(' || s.next() != tokenWord {
			s.opens = frame{kind: bodyFrame}
			return
		}
		s.functionNamed(Function, s.token())
	case isType, isEnum, isModule, isAlias:
		s.typeNamed(act)
	case isConst, isVar:
		if s.before != '(' && isNameStart(s.peek()) && s.next() == tokenWord {
			s.value(act)
		}
	default:
		s.target = name
	}
}

func isNameStart(c byte) bool { return isWordByte(c) && (c < '0' || c > '9') || c == '$' || c >= 0x80 }

// functionNamed adds a function and skips its parameters.
func (s *scripting) functionNamed(kind Kind, name Span) {
	s.add(kind, name)
	s.brackets('<')
	s.brackets('(')
	s.opens = frame{name: name, kind: bodyFrame}
	if s.peek() == ':' { // the type of the result, which may have braces
		s.next()
		s.brackets('{')
	}
}

func (s *scripting) typeNamed(act action) {
	if !isNameStart(s.peek()) || s.before == '=' && act != isType {
		if act == isType && (s.before == '=' || s.peek() == '{') {
			s.opens = frame{kind: typeFrame}
			if s.peek() == '{' {
				s.opens.name = s.target
			}
		}
		return
	}
	if s.next() != tokenWord {
		return
	}
	name := s.token()
	switch word := string(s.word()); {
	case act == isType && (word == "extends" || word == "implements"):
		s.opens = frame{kind: typeFrame, name: s.target}
	case act == isType:
		s.add(Type, name)
		s.opens = frame{name: name, kind: typeFrame}
	case act == isEnum && s.peek() == '{':
		s.add(Type, name)
		s.opens = frame{name: name, kind: enumFrame}
	case act == isModule && s.peek() == '{' || act == isModule && s.peek() == '.':
		s.add(Module, name)
		s.opens = frame{name: name, kind: topFrame}
	case act == isAlias && (s.peek() == '=' || s.peek() == '<'):
		s.add(Type, name)
	}
}

// value handles a variable or constant of the file.
func (s *scripting) value(act action) {
	name := s.token()
	s.target = name
	kind := kindOfValue(act)
	if s.isFunction(s.pos) {
		kind = Function
	} else if s.in() != topFrame {
		return
	}
	s.add(kind, name)
}

// assigned handles an assignment to a dotted name.
func (s *scripting) assigned() {
	at := int(s.target.Start)
	if at == 0 || s.text[at-1] != '.' || !s.isFunction(s.pos-1) {
		return
	}
	kind := Function
	if before := s.text[max(at-10, 0):at]; string(before) == "prototype." {
		kind = Method
	}
	s.add(kind, s.target)
}

// isFunction reports whether a function follows = or : at at.
func (s *scripting) isFunction(at int) bool {
	l := s.finder.lexer
	l.pos = at
	if kind := l.next(); kind != '=' && kind != ':' {
		return false
	}
	kind := l.next()
	if kind == tokenWord && string(l.word()) == "async" {
		kind = l.next()
	}
	switch {
	case kind == tokenWord && string(l.word()) == "function":
		return true
	case kind == tokenWord:
		return l.next() == '=' && l.pos < len(l.text) && l.text[l.pos] == '>'
	case kind != '(':
		return false
	}
	for depth, tokens := 1, 0; depth > 0; tokens++ {
		switch l.next() {
		case tokenEnd:
			return false
		case '(':
			depth++
		case ')':
			depth--
		}
		if tokens > 200 {
			return false
		}
	}
	if l.next() == ':' { // the type of the result
		for range 20 {
			switch l.next() {
			case '=':
				return l.pos < len(l.text) && l.text[l.pos] == '>'
			case tokenEnd, ';', '{':
				return false
			}
		}
		return false
	}
	return l.kind == '=' && l.pos < len(l.text) && l.text[l.pos] == '>'
}

// memberNamed handles a member of a class, object, interface or enum.
func (s *scripting) memberNamed(act action) bool {
	name := s.token()
	next := s.peek()
	in := s.in()
	if in == enumFrame {
		if next == ',' || next == '=' || next == '}' {
			s.add(Constant, name)
			return true
		}
		return false
	}
	if act == isAttribute && (isNameStart(next) || next == '[' || next == '#' || next == '*') {
		s.modifier = true
		return true
	}
	switch {
	case next == '(' || next == '<' && in == typeFrame:
		if in == objectFrame && !s.member || s.opens.kind != topFrame || act == isIgnored || in == objectFrame && s.before != ',' && s.before != '{' && !s.modifierBefore() {
			return false
		}
		s.functionNamed(Method, name)
		return true
	case in == objectFrame && next == ':':
		s.target = name
		if s.isFunction(s.pos) {
			s.add(Method, name)
		}
		return true
	case in == typeFrame && (next == '=' || next == ';' || next == ':' || next == '?' || next == '!' || next == '}') && (s.broken || s.before != ':'):
		s.target = name
		kind := Field
		if next == '=' && s.isFunction(s.pos) {
			kind = Method
		}
		if next == '?' && s.pos+1 < len(s.text) && s.text[s.pos+1] == '(' {
			kind = Method
		}
		s.add(kind, name)
		return true
	}
	return false
}

func (s *scripting) modifierBefore() bool { return s.before == tokenWord || s.before == '*' }
