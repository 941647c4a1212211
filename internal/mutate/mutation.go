package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// mutation is one fault to put into the source, and the test that must notice it.
type mutation struct {
	// promise is the row of docs/promises.md that the changed line keeps.
	promise int
	what    string
	file    string // from the root of the repository, with slashes
	// before and after are the changed lines of the file and the lines around them. Space
	// at their ends does not count.
	before, after []string
	pkg           string // folder of the test, from the root
	test          string // name of a top-level test
}

// parse reads a list of mutations. Blocks are separated by empty lines; lines that
// begin with # are comments. A block looks like a hunk of a diff:
//
//	1: the view does not wait for the last revision
//	--- internal/catalog/view.go
//	-		if s.Revision >= max(revision, 1) {
//	+		if s.Revision >= max(revision-1, 1) {
//	=== internal/catalog TestCurrentWaitsForTheWatch
func parse(text string) ([]mutation, error) {
	var all []mutation
	var block []string
	for n, line := range append(strings.Split(text, "\n"), "") {
		switch {
		case strings.HasPrefix(line, "#"):
		case strings.TrimSpace(line) != "":
			block = append(block, line)
		case len(block) > 0:
			m, err := parseBlock(block)
			if err != nil {
				return nil, fmt.Errorf("the mutation before line %d: %w", n+1, err)
			}
			all, block = append(all, m), nil
		}
	}
	return all, nil
}

func parseBlock(lines []string) (m mutation, err error) {
	promise, what, ok := strings.Cut(lines[0], ": ")
	if m.promise, err = strconv.Atoi(promise); err != nil || !ok {
		return m, fmt.Errorf("%q: want the number of a promise, a colon and what is changed", lines[0])
	}
	m.what = what
	for _, line := range lines[1:] {
		rest := line[1:]
		switch {
		case strings.HasPrefix(line, "--- "):
			m.file = line[4:]
		case strings.HasPrefix(line, "=== "):
			m.pkg, m.test, _ = strings.Cut(line[4:], " ")
		case line[0] == '-':
			m.before = append(m.before, strings.TrimSpace(rest))
		case line[0] == '+':
			m.after = append(m.after, rest)
		case line[0] == ' ' || line[0] == '\t':
			m.before = append(m.before, strings.TrimSpace(rest))
			m.after = append(m.after, rest)
		default:
			return m, fmt.Errorf("%q: want a line of a hunk, --- FILE or === PACKAGE TEST", line)
		}
	}
	if m.file == "" || m.pkg == "" || m.test == "" || len(m.before) == 0 || slices.Equal(m.before, m.after) {
		return m, fmt.Errorf("%q: want --- FILE, a change of lines, and === PACKAGE TEST", lines[0])
	}
	return m, nil
}

var (
	errNotFound = errors.New("its lines are not in the file: the code has changed, so must the mutation")
	errTwice    = errors.New("its lines are in the file more than once: give it a line of what stands around them")
)

// apply returns the source with the change in it.
func (m mutation) apply(source string) (string, error) {
	lines := strings.Split(source, "\n")
	at := -1
	for i := range len(lines) - len(m.before) + 1 {
		if !slices.EqualFunc(lines[i:i+len(m.before)], m.before, func(a, b string) bool { return strings.TrimSpace(a) == b }) {
			continue
		}
		if at >= 0 {
			return "", fmt.Errorf("%s: %w", m.file, errTwice)
		}
		at = i
	}
	if at < 0 {
		return "", fmt.Errorf("%s: %w", m.file, errNotFound)
	}
	return strings.Join(slices.Replace(lines, at, at+len(m.before), m.after...), "\n"), nil
}
