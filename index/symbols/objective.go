package symbols

// objective handles what starts with @ in Objective-C.
func (d *declaring) objective() {
	if d.next() != tokenWord {
		return
	}
	switch string(d.word()) {
	case "interface", "implementation", "protocol":
		if d.next() != tokenWord || d.peek() == ';' || d.peek() == ',' {
			return // a forward declaration
		}
		d.frames = d.frames[:0]
		d.add(Type, d.token())
		d.push(typeFrame, d.token())
		for d.peek() == ':' || d.peek() == '<' || d.peek() == '(' {
			switch d.next() {
			case ':':
				d.next()
			case '<', '(':
				d.balanced(d.kind)
			}
		}
		d.brackets('{')
	case "end":
		for len(d.frames) > 0 {
			d.pop()
		}
	case "property":
		d.brackets('(')
		d.head = head{words: 1}
		return
	}
	d.head = head{}
}

// objectiveMethod handles the first part of a selector.
func (d *declaring) objectiveMethod() {
	d.brackets('(')
	name := Span{}
	if d.next() == tokenWord {
		name = d.token()
		d.add(Method, name)
	}
	for {
		switch d.next() {
		case tokenEnd, ';':
			d.head = head{}
			return
		case '(':
			d.balanced('(')
		case '{':
			d.bodyOf(name)
			d.head = head{}
			return
		}
	}
}
