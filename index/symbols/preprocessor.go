package symbols

// directive handles a line of the preprocessor where level braces are open, and returns how many are
// open after it: each branch of a conditional starts with those that were open at the start of the
// first branch. There were first conditionals around the text with these braces.
func (d *declaring) directive(level, first int) int {
	n := len(d.branches)
	switch d.directiveName() {
	case "if", "ifdef", "ifndef":
		d.branches = append(d.branches[:min(n, maxFrames)], level)
	case "else", "elif":
		if n > first {
			return d.branches[n-1]
		} else if n > 0 {
			return 0 // each branch has its own head of the function
		}
	case "endif":
		if n > 0 {
			d.branches = d.branches[:n-1]
		}
	}
	return level
}

// directiveName skips the line and returns the name of its directive. It adds the macro of a
// #define.
func (d *declaring) directiveName() string {
	end := d.directiveEnd()
	at := afterBlanks(d.text, d.pos)
	start := at
	at = afterWord(d.text, at)
	name := string(d.text[start:at])
	if name == "define" {
		at = afterBlanks(d.text, at)
		d.add(Macro, Span{uint32(at), uint32(afterWord(d.text, at))})
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
