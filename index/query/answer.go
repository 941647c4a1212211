package query

import (
	"strconv"
	"time"
)

// Answer is what a query asks for about its answer as a whole, by fields of syntax version 2 that
// apply to the whole query wherever they stand. If a field occurs twice, the last one counts. These
// fields do not change the tree, which alone decides which documents match.
type Answer struct {
	// Count is the most files of all pages together, from 1 to MaxCount; 0 means no bound.
	Count int
	// Timeout is the most time for the answer, up to MaxTimeout; 0 leaves it to the caller.
	Timeout time.Duration
	// Select is what the answer lists.
	Select Selection
}

// Selection is what an answer lists.
type Selection uint8

// Selections of an answer. The selection of file names or of symbols is part of the tree.
const (
	// SelectFiles lists files.
	SelectFiles Selection = iota
	// SelectRepos lists the repos of matching files, with the number of files in each.
	SelectRepos
	// SelectFolders lists the folders of matching files, with the number of files in each.
	SelectFolders
)

// MaxCount and MaxTimeout are the most that count: and timeout: may ask for.
const (
	MaxCount   = 1_000_000
	MaxTimeout = time.Hour
)

// ofAnswer reads a field that applies to the whole query.
func (p *parser) ofAnswer(tok token) error {
	wrong := func(expected string) error {
		return &SyntaxError{tok.at[0], quote(string(tok.text)) + " after " + tok.field, expected}
	}
	switch tok.kind {
	case tokenCount:
		n, err := strconv.Atoi(string(tok.text))
		if err != nil || n < 1 || n > MaxCount {
			return wrong("how many files are listed at most, from 1 to 1000000")
		}
		p.answer.Count = n
	case tokenTimeout:
		d, err := time.ParseDuration(string(tok.text))
		if err != nil || d < time.Millisecond || d > MaxTimeout {
			return wrong("a time from 1ms to 1h, such as 500ms or 5s")
		}
		p.answer.Timeout = d
	default:
		name, err := choose(tok, "repo", "dir", "file", "symbol")
		p.answer.Select, p.returns = SelectFiles, settings{}
		names := KindFileName
		switch name {
		case "repo":
			p.answer.Select = SelectRepos
		case "dir":
			p.answer.Select = SelectFolders
		case "file":
			p.returns.kind = &names
		case "symbol":
			p.returns.symbols = true
		}
		return err
	}
	return nil
}
