package symbols

// declared finds the definitions of languages in which the shape of a declaration shows what it
// defines: C, C++, Objective-C, Java and C#. It collects what it knows of a declaration until a
// semicolon or brace ends it.
func declared(f *finder) {
	d := declaring{finder: f}
	for {
		kind := f.next()
		if kind != '#' || !f.broken || !f.preprocessor {
			d.head.parens = d.head.parens && contains("w;({", kind)
		}
		switch kind {
		case tokenEnd:
			return
		case tokenWord:
			d.handle()
		case '#':
			if f.broken && f.preprocessor {
				if open := d.directive(len(d.frames), 0); open < len(d.frames) {
					d.frames, d.head = d.frames[:open], head{}
				}
				continue
			}
		case '{':
			d.open()
		case '}':
			f.pop()
			if d.in() == typeFrame || d.in() == topFrame {
				d.closed()
				continue
			}
			d.head = head{}
		case ';':
			d.end()
		case '(':
			d.parens()
		case '[':
			f.balanced('[')
		case '=':
			d.assigned()
		case ',':
			d.comma()
		case ':':
			d.colon()
		case '<':
			d.angles()
		case '@':
			d.annotation()
		case '~':
			d.head.tilde = true
		case '-', '+':
			if f.broken && f.lang.flags&objectiveC != 0 && f.in() == typeFrame {
				d.objectiveMethod()
			}
		}
	}
}

// head is what is known of the current declaration.
type head struct {
	words    int
	last     Span // the last word, or the name of a pointer to a function
	function Span // the name before parentheses
	kind     Kind // of the announced type
	name     Span // of the type
	frozen   bool // the name of the function is certain
	value    bool // what follows is a value
	typedef  bool
	external bool
	ignored  bool // not a declaration
	enum     bool
	module   bool
	tilde    bool
	parens   bool // the last token closed parentheses
	operator bool
	bases    bool // a colon followed a type's name
	tagged   bool // the body of a typedef is closed
}

type declaring struct {
	*finder
	head head
	// branches has, for each open conditional of the preprocessor, the number of frames that were
	// open at its start.
	branches []int
}

func (d *declaring) handle() {
	h := &d.head
	word := d.word()
	if d.in() == enumFrame && h.words == 0 && !h.value {
		h.words++
		d.add(Constant, d.token())
		h.value = true // up to the next comma
		return
	}
	act := d.lang.words.action(word)
	after := h.parens
	h.parens = false
	switch act {
	case isIgnored:
		h.ignored = true
		if string(word) == "using" && d.lang.flags&typeFirst == 0 && isNameStart(d.peek()) && d.next() == tokenWord && d.peek() == '=' {
			d.add(Type, d.token())
		}
	case isAttribute:
		if d.brackets('(') {
			h.parens = after
		}
	case isTypedef:
		h.typedef = true
	case isExtern:
		h.external = true
	case isModule:
		if d.lang.flags&packages != 0 && !h.value { // Java's package, C#'s namespace
			d.moduleNamed()
			return
		}
		h.module, h.kind, h.name = true, Module, Span{}
	case isType, isEnum:
		if h.value || h.function.End > 0 && d.lang.flags&typeFirst == 0 || d.before == '.' || d.before == ':' && h.words > 0 && d.lang.flags&typeFirst != 0 {
			return
		}
		if h.kind != 0 && h.name.End == 0 && act == isType { // enum class
			return
		}
		if next := d.peek(); d.lang.flags&typeFirst != 0 && !isWordByte(next) && next != '@' {
			break // record is a name here
		}
		h.kind, h.enum, h.name = Type, act == isEnum, Span{}
		return
	default:
		if string(word) == "operator" && d.lang.flags&operators != 0 {
			h.operator = true
		}
		if h.kind != 0 && !h.bases && (!h.module || h.name.End == 0 || d.before == ':') && (h.name.End == 0 || d.lang.flags&typeFirst == 0 && h.function.End == 0 && !h.value) && !h.tagged {
			h.name = d.token()
		}
		if h.function.End > 0 && after && d.lang.flags&typeFirst != 0 {
			h.frozen = true // throws X
		}
		h.words++
		h.last = d.token()
	}
}

// moduleNamed handles the dotted name of a package or namespace.
func (d *declaring) moduleNamed() {
	if d.next() != tokenWord {
		return
	}
	name := d.token()
	for d.peek() == '.' {
		d.next()
		if d.next() != tokenWord {
			return
		}
		name.End = uint32(d.pos)
	}
	d.add(Module, name)
	d.head = head{kind: Module, module: true, name: name, tagged: true}
}

// parens skips parentheses: the word before may be a function's name.
func (d *declaring) parens() {
	h := &d.head
	named := d.before == tokenWord && h.words > 0
	start := d.pos
	d.balanced('(')
	d.kind = ')'
	defer func() { h.parens = true }()
	if h.frozen || h.value || h.ignored || h.kind != 0 && d.lang.flags&typeFirst != 0 && h.name.End > 0 {
		return
	}
	switch {
	case h.kind != 0 && h.words == 1 && named && h.name.End > 0 && h.last == h.name:
		h.words, h.name = 0, Span{} // a macro for attributes
	case h.operator:
		h.function, h.frozen = Span{}, true
	case contains("*^", d.firstIn(start)): // (*name)(…)
		h.last = d.pointer(start)
		h.words++
		d.brackets('(')
	case named && h.last.End > 0:
		if h.function.End > 0 && d.lang.flags&typeFirst != 0 {
			h.frozen = true
			return
		}
		h.function = h.last
	}
}

// firstIn returns the first byte after at that is not blank.
func (d *declaring) firstIn(at int) byte {
	for ; at < d.pos; at++ {
		if d.text[at] > ' ' {
			return d.text[at]
		}
	}
	return 0
}

// pointer returns the last word of what looks like (*name).
func (d *declaring) pointer(start int) (name Span) {
	for at := start; at < d.pos-1 && at < start+200; {
		c := d.text[at]
		switch {
		case isWordByte(c):
			end := d.wordEnd(at)
			name = Span{uint32(at), uint32(end)}
			at = end
		case c == '*' || c == '^' || c <= ' ' || c == '&' || c == ':':
			at++
		case c == '(' || c == '[':
			return name
		default:
			return Span{}
		}
	}
	return name
}

// open handles an opening brace.
func (d *declaring) open() {
	h := &d.head
	switch {
	case d.in() == enumFrame && h.value:
		d.balanced('{') // the body of a constant
		return
	case h.ignored || d.in() == bodyFrame:
		d.body()
	case h.module || h.external && h.words == 0 && !h.typedef:
		if h.module && h.name.End > 0 && !h.tagged {
			d.add(Module, h.name)
		}
		d.push(topFrame, h.name)
	case h.kind != 0 && (h.function.End == 0 || d.lang.flags&typeFirst != 0 || h.bases) && !h.value:
		kind := typeFrame
		if h.enum {
			kind = enumFrame
		}
		if h.name.End > 0 {
			d.add(h.kind, h.name)
		}
		d.push(kind, h.name)
		d.frames[len(d.frames)-1].typedef = d.frames[len(d.frames)-1].typedef || h.typedef
	case h.function.End > 0 && !h.value:
		d.functionNamed()
		d.bodyOf(h.function)
	case h.operator || h.tilde && h.parens:
		d.body()
	case h.value:
		d.balanced('{')
		return
	case d.lang.flags&properties != 0 && h.words > 1 && (d.in() == typeFrame):
		d.add(Field, h.last)
		d.body()
		return
	default:
		d.body()
	}
	d.head = head{}
}

// closed continues after a type's body: variables, or the name of a typedef, may follow.
func (d *declaring) closed() {
	d.head = head{}
	code := d.popped.kind == topFrame || d.popped.kind == bodyFrame
	if d.lang.flags&typeFirst == 0 && !code && (d.popped.typedef || d.peek() == '*' || isWordByte(d.peek())) {
		d.head = head{tagged: true, typedef: d.popped.typedef, words: 1}
	}
}

// functionNamed adds the function of the declaration.
func (d *declaring) functionNamed() {
	kind := Function
	if d.in() == typeFrame || d.in() == enumFrame || d.head.function.Start > 1 && d.text[d.head.function.Start-1] == ':' {
		kind = Method
	}
	d.add(kind, d.head.function)
}

// bodyOf is body for the function with that name.
func (d *declaring) bodyOf(name Span) {
	symbol, frames := d.symbolOf(name), len(d.frames)
	d.body()
	if len(d.frames) > frames {
		d.frames[frames].symbol = symbol
	} else {
		d.ends(symbol, d.pos)
	}
}

// body skips the body of a function.
func (d *declaring) body() {
	if d.lang.flags&localTypes != 0 {
		d.push(bodyFrame, Span{})
		return
	}
	depth := 1
	first := len(d.branches)
	for depth > 0 {
		switch d.next() {
		case tokenEnd:
			return
		case '{':
			depth++
		case '}':
			depth--
			if d.broken && d.start > 0 && d.text[d.start-1] == '\n' && d.preprocessor && len(d.frames) == 0 {
				depth = 0 // a brace in the first column ends the function, whatever macros hide
			}
		case '#':
			if d.broken && d.preprocessor {
				depth = d.directive(depth, first)
			}
		}
	}
}

// end handles a semicolon.
func (d *declaring) end() {
	h := &d.head
	in := d.in()
	switch {
	case in == enumFrame && d.lang.flags&typeFirst != 0: // members follow the constants
		d.frames[len(d.frames)-1].kind = typeFrame
	case h.ignored || in == bodyFrame || h.operator || h.external && !h.typedef && in == topFrame:
	case h.module:
		if h.tagged && h.name.End > 0 { // C#'s namespace for a whole file
			break
		}
	case h.typedef:
		if h.words > 0 && (h.words > 1 || h.kind != 0 || h.tagged) {
			name := h.last
			if h.function.End > 0 && h.last == h.function {
				name = h.function
			}
			d.add(Type, name)
		}
	case h.function.End > 0 && !h.value:
		if d.lang.flags&typeFirst != 0 && in == typeFrame {
			d.add(Method, h.function)
		}
	case h.kind != 0 && h.words < 2 && !h.tagged: // struct x;
		if d.lang.flags&typeFirst != 0 && h.name.End > 0 {
			d.add(h.kind, h.name)
		}
	case h.words > 1 && !h.value:
		d.variable()
	}
	d.head = head{}
}

// variable adds the variable or field whose name is the last word.
func (d *declaring) variable() {
	switch d.in() {
	case typeFrame:
		d.add(Field, d.head.last)
	case topFrame:
		if d.lang.flags&typeFirst == 0 {
			d.add(Variable, d.head.last)
		}
	}
}

// assigned handles an equals sign: a value follows.
func (d *declaring) assigned() {
	h := &d.head
	if h.operator || h.ignored {
		return
	}
	if h.words > 1 && !h.value && !h.typedef && h.function.End == 0 && d.in() != enumFrame {
		d.variable()
	}
	if d.lang.flags&properties != 0 && d.peek() == '>' && h.function.End > 0 && !h.value { // C#'s => body
		d.functionNamed()
	}
	h.value = true
}

func (d *declaring) comma() {
	h := &d.head
	switch {
	case d.in() == enumFrame:
		d.head = head{}
	case h.typedef && h.words > 1:
		d.add(Type, h.last)
	case h.words > 1 && !h.value && !h.ignored && h.function.End == 0 && !h.bases && h.kind == 0 && !h.external:
		d.variable()
	case h.value:
		h.value = false
		h.function = Span{}
		h.words = max(h.words, 1)
	}
}

func (d *declaring) colon() {
	h := &d.head
	switch {
	case d.pos < len(d.text) && d.text[d.pos] == ':':
		d.next()
	case h.kind != 0 && !h.tagged:
		h.bases = true
	case h.function.End > 0:
		h.frozen = true // initializers of members follow
	case d.lang.flags&typeFirst == 0 && h.words == 1 && d.in() == typeFrame:
		d.head = head{} // public:
	case h.words > 1 && d.in() == typeFrame && d.lang.flags&typeFirst == 0:
		d.variable() // a bit field
		h.value = true
	}
}

// angles skips the parameters of a template, if they look like that.
func (d *declaring) angles() {
	h := &d.head
	if h.value || h.operator || h.ignored {
		return
	}
	depth := 0
	for at := d.start; at < len(d.text) && at < d.start+256; at++ {
		switch d.text[at] {
		case '<':
			depth++
		case '>':
			if at > 0 && d.text[at-1] == '-' {
				continue
			}
			if depth--; depth == 0 {
				d.pos = at + 1
				d.kind = d.before // as if the parameters were not there
				return
			}
		case ';', '{', '}':
			return
		}
	}
}

// annotation skips an annotation in Java, or handles an @ in Objective-C.
func (d *declaring) annotation() {
	if d.lang.flags&objectiveC != 0 {
		d.objective()
		return
	}
	if string(d.text[d.pos:min(d.pos+9, len(d.text))]) == "interface" {
		return
	}
	if d.next() != tokenWord {
		return
	}
	for d.peek() == '.' {
		d.next()
		d.next()
	}
	d.brackets('(')
}
