package symbols

import "slices"

// announced finds the definitions of languages in which a keyword precedes each name: Go, Rust,
// Swift, Kotlin, Scala, Zig and PHP.
func announced(f *finder) {
	a := announcing{finder: f}
	if f.lang.flags&inHTML != 0 {
		f.pos = f.after(0, "<?")
	}
	for {
		switch kind := f.next(); kind {
		case tokenEnd:
			return
		case tokenWord:
			a.handle()
		case '{':
			f.push(a.opens.kind, a.opens.name)
			a.opens = frame{kind: otherFrame}
			a.member = true
			continue
		case '}':
			f.pop()
			a.member = true
			continue
		case ';', ',':
			if kind == ';' {
				a.opens = frame{kind: otherFrame}
			}
			a.member = true
			continue
		case '(', '[':
			if f.in() == enumFrame || f.in() == typeFrame {
				a.balanced(kind)
			}
		case '#': // an attribute
			if f.brackets('[') {
				continue
			}
		case '?':
			if f.lang.flags&inHTML != 0 && f.pos < len(f.text) && f.text[f.pos] == '>' {
				f.pos = f.after(f.pos, "<?")
			}
			continue
		case '<':
			if f.lang.flags&heredocs != 0 && hasPrefix(f.text[f.start:], "<<<") {
				f.heredoc(f.start + 3)
			}
		}
		a.member = a.member && (f.kind == tokenWord && a.modifier)
	}
}

// announcing is the state of announced between two tokens.
type announcing struct {
	*finder
	opens    frame // the frame that the next brace opens
	member   bool  // a field or constant may come next
	modifier bool  // the last word was a modifier, so a member may still follow
}

// handle handles a word: it announces a name, or is part of a member.
func (a *announcing) handle() {
	word := a.word()
	a.modifier = false
	act := a.lang.words.action(word)
	if a.before == '.' || a.start > 0 && a.text[a.start-1] == '$' {
		act = noAction
	}
	flags := a.lang.flags
	inBody := a.in() == bodyFrame || a.in() == otherFrame
	switch act {
	case noAction:
		a.memberNamed()
	case isIgnored:
		a.modifier = true
	case isAttribute:
		if a.brackets('(') {
			a.kind = tokenWord
		}
		a.modifier = true
	case isType, isEnum, isModule, isAlias:
		if flags&goTypes == 0 || !inBody {
			a.typeNamed(act)
		}
	case isFunc:
		if flags&goTypes != 0 && !a.lineStart() {
			a.opens = frame{kind: bodyFrame}
			return
		}
		a.function()
	case isImpl:
		a.implementation()
	case isCase:
		if a.in() == enumFrame || a.in() == typeFrame {
			a.cases()
		}
	case isConst, isVar:
		if contains("*<,&(~", a.before) {
			return // it belongs to a type or a parameter
		}
		if inBody || flags&groups != 0 && a.peek() == '(' {
			if !inBody {
				a.next()
				a.group(act)
			}
			return
		}
		a.value(act)
	case isMacro:
		if a.peek() == '!' {
			a.next()
		}
		a.named(Macro)
	}
}

// memberNamed handles a word that may be the name of a field, or of a constant of an enum.
func (a *announcing) memberNamed() {
	if !a.member {
		return
	}
	flags := a.lang.flags
	switch {
	case flags&heredocs != 0 && a.in() == topFrame && string(a.word()) == "define":
		a.defined()
	case a.in() == enumFrame && flags&variants != 0:
		a.add(Constant, a.token())
	case a.in() == typeFrame && flags&colonFields != 0 && a.peek() == ':' && !hasPrefix(a.text[a.pos:], "::"):
		a.add(Field, a.token())
	case a.in() == typeFrame && flags&dollarFields != 0 && a.text[a.start] == '$':
		a.add(Field, Span{uint32(a.start + 1), uint32(a.pos)})
	case a.in() == typeFrame && flags&dollarFields != 0:
		a.modifier = true // the word was its type
	}
}

// defined handles the constant of PHP's define('NAME', …).
func (a *announcing) defined() {
	if a.peek() != '(' {
		return
	}
	a.next()
	if a.next() == tokenLiteral && a.pos-a.start > 2 {
		a.add(Constant, Span{uint32(a.start + 1), uint32(a.pos - 1)})
	}
}

// typeNamed handles the name of a type or module.
func (a *announcing) typeNamed(act action) {
	flags := a.lang.flags
	if flags&groups != 0 && a.peek() == '(' {
		a.next()
		a.group(act)
		return
	}
	if a.next() != tokenWord {
		return
	}
	for a.action() != noAction || string(a.word()) == "class" { // enum class X
		if next := a.action(); next == isEnum || next == isType && act != isEnum {
			act = next
		}
		if a.next() != tokenWord {
			return
		}
	}
	name, kind := a.token(), Type
	opens := frame{name: name, kind: typeFrame}
	switch act {
	case isModule:
		for flags&dottedModules != 0 && (a.peek() == '.' || a.peek() == '\\') {
			a.next()
			if a.next() != tokenWord {
				return
			}
			name.End = uint32(a.pos)
		}
		kind, opens = Module, frame{name: name, kind: topFrame}
	case isAlias:
		opens = frame{kind: otherFrame}
	case isEnum:
		opens.kind = enumFrame
	}
	a.add(kind, name)
	a.opens = opens
	if flags&goTypes != 0 {
		a.goType(name)
	}
	if flags&constructors != 0 {
		a.constructor(name)
	}
}

// constructor handles the fields of a primary constructor, as in Kotlin and Scala.
func (a *announcing) constructor(name Span) {
	a.brackets('<')
	if a.peek() != '(' {
		return
	}
	a.next()
	outer := a.frames
	a.frames = append(slices.Clip(a.frames), frame{name: name, kind: typeFrame})
	for depth := 1; depth > 0; {
		switch a.next() {
		case tokenEnd:
			depth = 0
		case '(':
			depth++
		case ')':
			depth--
		case tokenWord:
			if depth == 1 {
				if act := a.action(); act == isConst || act == isVar {
					a.named(Field)
				}
			}
		}
	}
	a.frames = outer
}

// function handles the name of a function, and skips its parameters.
func (a *announcing) function() {
	kind := Function
	if in := a.in(); in == typeFrame || in == enumFrame {
		kind = Method
	}
	scope := Span{}
	switch {
	case a.lang.flags&receivers != 0 && a.peek() == '(':
		if a.broken = false; a.in() != topFrame {
			return // a function without a name
		}
		a.next()
		scope = a.receiver()
		kind = Method
	case a.brackets('<'):
	case a.peek() == '&':
		a.next()
	}
	if a.peek() == '(' || a.next() != tokenWord {
		if a.kind == '`' && a.next() == tokenWord { // Kotlin's quoted names
			name := a.token()
			end := a.after(a.pos, "`")
			a.pos = end
			name.End = uint32(end - 1)
			a.add(kind, name)
		}
		a.opens = frame{kind: bodyFrame}
		return
	}
	name := a.token()
	for a.lang.flags&constructors != 0 && a.pos < len(a.text) && a.text[a.pos] == '.' { // after the type of a receiver
		a.next()
		if scope = name; a.next() != tokenWord {
			return
		}
		name = a.token()
	}
	a.add(kind, name)
	if scope.End > 0 && len(a.found) > a.begin {
		a.found[len(a.found)-1].Scope = scope
	}
	a.opens = frame{name: name, kind: bodyFrame}
	a.brackets('<')
	a.brackets('[')
	a.brackets('(')
	if a.lang.flags&goTypes != 0 {
		a.goResult()
	}
}

// receiver skips a receiver and returns the name of its type.
func (a *announcing) receiver() (name Span) {
	for depth := 1; depth > 0; {
		switch a.next() {
		case tokenEnd:
			depth = 0
		case '(':
			depth++
		case ')':
			depth--
		case '[':
			a.balanced('[')
		case tokenWord:
			name = a.token()
		}
	}
	return name
}

// implementation handles the type that an impl or extension belongs to.
func (a *announcing) implementation() {
	a.brackets('<')
	name := Span{}
	for at := a.pos; at < len(a.text) && at < a.pos+512; at++ {
		c := a.text[at]
		if c == '{' || c == ';' {
			break
		}
		if !isWordByte(c) || at > 0 && isWordByte(a.text[at-1]) {
			continue
		}
		word := Span{uint32(at), uint32(a.wordEnd(at))}
		switch string(a.text[word.Start:word.End]) {
		case "for":
			name = Span{}
		case "where":
			at = len(a.text)
		default:
			if name.End == 0 {
				name = word
			}
		}
	}
	a.opens = frame{name: name, kind: typeFrame}
}

// cases handles the constants of Swift's or PHP's case.
func (a *announcing) cases() {
	for a.next() == tokenWord {
		a.add(Constant, a.token())
		a.brackets('(')
		if a.peek() != ',' {
			return
		}
		a.next()
	}
}

// value handles the name of a constant or variable.
func (a *announcing) value(act action) {
	kind := kindOfValue(act)
	if a.in() == typeFrame || a.in() == enumFrame {
		if act == isVar || a.lang.flags&constFields != 0 {
			kind = Field
		}
	}
	for a.next() == tokenWord && a.action() != noAction {
		if a.action() == isFunc { // Rust's const fn
			a.function()
			return
		}
	}
	if a.kind != tokenWord {
		return
	}
	name := a.token()
	if a.lang.flags&dollarFields != 0 && a.text[name.Start] == '$' {
		name.Start++
	}
	if a.lang.flags&typedConsts != 0 && a.peek() != '=' && a.next() == tokenWord { // PHP's const int X
		name = a.token()
	}
	if a.lang.flags&valueTypes != 0 && a.zigType(name) {
		return
	}
	a.add(kind, name)
	for a.lang.flags&groups != 0 && a.peek() == ',' {
		a.next()
		a.named(kind)
	}
}

// mostOpenEnded is the number of heredocs without an end after which no more are looked for.
const mostOpenEnded = 8

// heredoc skips a heredoc. Its mark starts at at: 'EOT', "EOT", -EOT or ~EOT.
func (l *lexer) heredoc(at int) {
	for at < len(l.text) && (l.text[at] == '-' || l.text[at] == '~' || l.text[at] == '"' || l.text[at] == '\'' || l.text[at] == '\\') {
		at++
	}
	end := afterWord(l.text, at)
	if end == at || l.openEnded >= mostOpenEnded || l.text[at] >= '0' && l.text[at] <= '9' {
		return
	}
	mark := string(l.text[at:end])
	for line := lineEnd(l.text, end); line < len(l.text); {
		start := afterBlanks(l.text, line+1)
		if hasPrefix(l.text[min(start, len(l.text)):], mark) {
			l.pos = start + len(mark)
			return
		}
		line = lineEnd(l.text, min(start, len(l.text)))
	}
	l.openEnded++
}
