package symbols

// directive handles a line of the preprocessor. Each branch of a conditional starts with the braces
// that were open at the start of the first branch.
func (d *declaring) directive() {
	switch d.directiveName() {
	case "if", "ifdef", "ifndef":
		d.branches = append(d.branches[:min(len(d.branches), maxFrames)], len(d.frames))
	case "else", "elif":
		if n := len(d.branches); n > 0 && d.branches[n-1] < len(d.frames) {
			d.frames = d.frames[:d.branches[n-1]]
			d.head = head{}
		}
	case "endif":
		if n := len(d.branches); n > 0 {
			d.branches = d.branches[:n-1]
		}
	}
}

// bodyDirective is directive in a body nested depth braces deep, and returns the depth after it.
func (d *declaring) bodyDirective(depth, first int) int {
	switch d.directiveName() {
	case "if", "ifdef", "ifndef":
		d.branches = append(d.branches[:min(len(d.branches), maxFrames)], depth)
	case "else", "elif":
		if n := len(d.branches); n > first {
			return d.branches[n-1]
		} else if n > 0 {
			return 0 // each branch has its own head of the function
		}
	case "endif":
		if n := len(d.branches); n > 0 {
			d.branches = d.branches[:n-1]
		}
	}
	return depth
}

// directiveName skips the line and returns the name of its directive. It adds the macro of a
// #define.
func (d *declaring) directiveName() string {
	end := d.directiveEnd()
	at := d.pos
	for at < end && (d.text[at] == ' ' || d.text[at] == '\t') {
		at++
	}
	start := at
	for at < end && isWordByte(d.text[at]) {
		at++
	}
	name := string(d.text[start:at])
	if name == "define" {
		for at < end && (d.text[at] == ' ' || d.text[at] == '\t') {
			at++
		}
		from := at
		for at < end && isWordByte(d.text[at]) {
			at++
		}
		d.add(Macro, Span{uint32(from), uint32(at)})
	}
	d.pos, d.kind = end, ';'
	return name
}

// directiveEnd returns the end of the line, including lines that a backslash joins to it and
// comments that begin in it.
func (d *declaring) directiveEnd() int {
	for at := d.pos; at < len(d.text); at++ {
		switch d.text[at] {
		case '\n':
			if last := at - 1; d.text[last] != '\\' && (d.text[last] != '\r' || last == 0 || d.text[last-1] != '\\') {
				return at
			}
		case '/':
			if hasPrefix(d.text[at:], "/*") {
				at = d.after(at+2, "*/") - 1
			} else if hasPrefix(d.text[at:], "//") {
				return lineEnd(d.text, at)
			}
		}
	}
	return len(d.text)
}
