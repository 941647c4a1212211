package codehost

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Repo is a repo as its host lists it.
type Repo struct {
	// ID survives renames and moves; "" if the host has no ids.
	ID string
	// Path at the host, such as org/name.
	Path     string
	CloneURL string

	Archived, Fork, Public bool
}

// page is one page of a list, with the address of the next page, "" if it is the last.
type page struct {
	repos []Repo
	next  string
	// fixed: no page follows the last one unless the last one changes too. It is unset where a full page, and with it its entity tag, may stay
	// as it is when another one follows.
	fixed bool
}

// dialect holds what differs between kinds of hosts.
type dialect struct {
	// first returns the address of the first page.
	first func(s *ingestv1.Source, base string, known bool) string
	// read decodes the page at an address.
	read func(body []byte, at *url.URL, header http.Header) (page, error)
	// authorize adds the token to a request.
	authorize func(r *http.Request, username string, token config.Secret)
	hook      hook
}

var dialects = map[string]dialect{
	GitHub:          github,
	GitLab:          gitlab,
	Gitea:           gitea,
	Bitbucket:       bitbucket,
	BitbucketServer: bitbucketServer,
	Gerrit:          gerrit,
}

// Bounds of one listing.
const (
	maxPages = 10_000
	maxRepos = 200_000
	// maxPage bounds one answer in bytes.
	maxPage = 32 << 20
	// maxList bounds what is kept of a list, in bytes: 335 a repo, if there are as many as there can be.
	maxList = 64 << 20
)

// tooLong is the error for a list that exceeds a bound.
func tooLong(format string, args ...any) error {
	return trouble("the host lists more than "+format+", the most that a source can have: divide it among sources whose owners have fewer repos", args...)
}

// List returns all repos of a source's host, including those that the source does not
// select. An incomplete list is an error: an *Error, or the cause of ctx.
func (c *Client) List(ctx context.Context, s *ingestv1.Source) ([]Repo, error) {
	if s.GetKind() == Git {
		return single(s)
	}
	host, ok := dialects[s.GetKind()]
	if !ok {
		return nil, trouble("unknown kind of host %q", s.GetKind())
	}
	base := strings.TrimSuffix(BaseURL(s), "/")
	if err := origin.CheckURL(base+"/x", c.policy); err != nil {
		return nil, trouble("%v", err)
	}
	token, err := c.secrets.Get(s.GetToken())
	if err != nil {
		return nil, trouble("%v", err)
	}
	return c.pages(ctx, &listing{Client: c, host: host, base: base, username: s.GetUsername(), token: token}, host.first(s, base, token != ""))
}

// single returns the repo of a source that is a clone URL.
func single(s *ingestv1.Source) ([]Repo, error) {
	name, err := origin.RepoName(s.GetUrl())
	if err != nil {
		return nil, trouble("%v", err)
	}
	_, path, _ := strings.Cut(name, "/")
	return []Repo{{Path: path, CloneURL: s.GetUrl()}}, nil
}

// pages reads all pages. Those of a list that failed are remembered until the next list, beside those of the last whole one.
func (c *Client) pages(ctx context.Context, a *listing, at string) (repos []Repo, err error) {
	read, before, size := map[string]cached{}, "", 0
	defer func() {
		if err == nil {
			c.cache, c.part = read, nil // without pages that no longer exist
			return
		}
		if refused, ok := errors.AsType[*Error](err); ok && refused.RetryAfter == 0 { // the page before may have led to one that is gone
			delete(read, before)
			delete(c.cache, before)
		}
		c.part = read
	}()
	for at != "" {
		if _, again := read[at]; again {
			return nil, trouble("the host's list does not end: page %d leads back to an earlier one", len(read))
		}
		answer, err := a.page(ctx, at)
		if answer.tag != "" || err == nil {
			read[at] = answer
		}
		if err != nil {
			return nil, err
		}
		switch repos, size = append(repos, answer.repos...), size+answer.bytes(); {
		case len(repos) > maxRepos:
			return nil, tooLong("%d repos", maxRepos)
		case len(read) > maxPages:
			return nil, tooLong("%d pages", maxPages)
		case size > maxList:
			return nil, tooLong("%d MiB of names and addresses", maxList>>20)
		}
		before, at = at, answer.next
	}
	return repos, nil
}

// Error is the reason that a host gave no list. Its text is for people and holds no
// credentials.
type Error struct {
	Reason string
	// RetryAfter is how long the host asked to be left alone, 0 if it did not say.
	RetryAfter time.Duration
}

// Error implements error.
func (t *Error) Error() string { return t.Reason }

func trouble(format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf(format, args...)}
}
