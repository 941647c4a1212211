package symbols

// directive takes a line of the preprocessor. Of the branches of a conditional each starts with
// the braces that were open where the first one did.
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

// bodyDirective is directive in a body that many braces deep, and returns how deep it is then.
func (d *declaring) bodyDirective(depth, first int) int {
	switch d.directiveName() {
	case "if", "ifdef", "ifndef":
		d.branches = append(d.branches[:min(len(d.branches), maxFrames)], depth)
	case "else", "elif":
		if n := len(d.branches); n > first {
			return d.branches[n-1]
		} else if n > 0 {
			return 0 // each branch has a head of the function of its own
		}
	case "endif":
		if n := len(d.branches); n > 0 {
			d.branches = d.branches[:n-1]
		}
	}
	return depth
}

// directiveName passes the line and returns which directive it is. The macro of a definition
// is added.
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

// directiveEnd is where the line ends, with those that a backslash adds and comments that begin
// in it.
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
