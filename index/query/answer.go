package query

import (
	"strconv"
	"time"
)

// Answer is what a query asks of its answer as a whole, by fields of syntax version 2 that hold for
// all of the query wherever they stand. Of two of one field the last counts. What finds documents
// is the tree alone: it is the same without them.
type Answer struct {
	// Count is the most files of all pages together, from 1 to MaxCount; 0 is no bound.
	Count int
	// Timeout is the most time for the answer, up to MaxTimeout; 0 is that of the caller.
	Timeout time.Duration
	// Select is what the answer lists.
	Select Selection
}

// Selection is what an answer lists.
type Selection uint8

// Selections of an answer. That of names of files or of symbols is part of the tree.
const (
	// SelectFiles lists files.
	SelectFiles Selection = iota
	// SelectRepos lists the repos of files that match, with how many files of each do.
	SelectRepos
	// SelectFolders lists the folders of files that match, likewise.
	SelectFolders
)

// MaxCount and MaxTimeout are the most that count: and timeout: may ask for.
const (
	MaxCount   = 1_000_000
	MaxTimeout = time.Hour
)

// ofAnswer reads a field that holds for the whole query.
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
		return p.selects(tok)
	}
	return nil
}

func (p *parser) selects(tok token) error {
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
