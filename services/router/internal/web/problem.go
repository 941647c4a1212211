package web

import (
	"context"
	"errors"
	"html/template"
	"net/http"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/index/snippet"
	"github.com/trawl-search/trawl/internal/searchapi"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// problem is what a page says instead of an answer.
type problem struct {
	Status int
	Text   string
	// Before and After are the query at both sides of the place where it is wrong.
	Before, After template.HTML
	Marked        bool
	Found, Wanted string
	// Nearest are the places whose names come nearest to one that does not exist.
	Nearest []nearest
}

// reply is a page that shows the problem, if there is one.
func (p *problem) reply(kind string, page any) reply {
	status := http.StatusOK
	if p != nil {
		status = p.Status
	}
	return reply{status: status, template: kind, data: page}
}

// nearest is a place with its address.
type nearest struct{ Name, URL string }

// problemOf says what went wrong, and what to do.
func problemOf(query string, err error) *problem {
	coded, ok := errors.AsType[interface {
		error
		GRPCStatus() *status.Status
	}](err)
	if !ok {
		if errors.Is(err, context.DeadlineExceeded) {
			return &problem{Status: http.StatusGatewayTimeout, Text: late}
		}
		return &problem{Status: http.StatusInternalServerError, Text: "Something went wrong. Try again, and report it if it stays."}
	}
	s := coded.GRPCStatus()
	p := &problem{Status: http.StatusInternalServerError, Text: plain(cut(s.Message(), 1000))}
	switch s.Code() {
	case codes.InvalidArgument:
		p.Status = http.StatusBadRequest
	case codes.NotFound:
		p.Status = http.StatusNotFound
	case codes.DeadlineExceeded, codes.Canceled:
		p.Status, p.Text = http.StatusGatewayTimeout, late
	case codes.ResourceExhausted:
		p.Status = http.StatusTooManyRequests
		if searchapi.IsOverloaded(err) {
			p.Text += ". Try again in a moment."
		}
	case codes.Unavailable:
		p.Status = http.StatusServiceUnavailable
		p.Text += ". Try again in a moment."
	}
	for _, detail := range s.Details() {
		if d, ok := detail.(*searchv1.QueryError); ok && d.GetExpected() != "" {
			p.mark(query, d)
		}
	}
	return p
}

const late = "There was no answer in time. Narrow the search to a repo, a path or a language, or use a longer text."

// mark shows where the query is wrong.
func (p *problem) mark(query string, d *searchv1.QueryError) {
	at := snippet.RuneStart(query, min(int(d.GetPosition()), len(query)))
	p.Text, p.Marked = "The query cannot be read.", true
	p.Before, p.After = name(cutFront(query[:at], nameBytes)), name(cut(query[at:], nameBytes))
	p.Found, p.Wanted = plain(cut(d.GetFound(), nameBytes)), plain(cut(d.GetExpected(), 500))
}
