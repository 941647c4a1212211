package codehost

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Repo is a repo as its host tells of it.
type Repo struct {
	// ID stays when the repo is renamed or moved; empty where the host has none.
	ID string
	// Path at the host, such as org/name.
	Path     string
	CloneURL string

	Archived, Fork, Public bool
}

// page is one answer of a host: repos, and where the next page is, if there is one.
type page struct {
	repos []Repo
	next  string
}

// dialect is what is special about a host.
type dialect struct {
	// first is where the first page is.
	first func(s *ingestv1.Source, base string, known bool) string
	// read decodes a page that came from at.
	read func(body []byte, at *url.URL, header http.Header) (page, error)
	// authorize shows the token.
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
)

// List tells the repos of a source, those that it does not want included. It is
// complete, or an error: a *Error, or the cause of ctx.
func (c *Client) List(ctx context.Context, s *ingestv1.Source) ([]Repo, error) {
	if s.GetKind() == Git {
		return single(s)
	}
	host, ok := dialects[s.GetKind()]
	if !ok {
		return nil, trouble("there is no host of the kind %q", s.GetKind())
	}
	base := strings.TrimSuffix(BaseURL(s), "/")
	if err := origin.CheckURL(base+"/x", c.policy); err != nil {
		return nil, trouble("%v", err)
	}
	token, err := c.secrets.Get(s.GetToken())
	if err != nil {
		return nil, trouble("%v", err)
	}
	return c.pages(ctx, &asking{Client: c, host: host, base: base, username: s.GetUsername(), token: token}, host.first(s, base, token != ""))
}

// single is the one repo of a source that is a clone URL.
func single(s *ingestv1.Source) ([]Repo, error) {
	name, err := origin.RepoName(s.GetUrl())
	if err != nil {
		return nil, trouble("%v", err)
	}
	_, path, _ := strings.Cut(name, "/")
	return []Repo{{Path: path, CloneURL: s.GetUrl()}}, nil
}

// pages follows the pages to the last.
func (c *Client) pages(ctx context.Context, a *asking, at string) ([]Repo, error) {
	var repos []Repo
	read := map[string]cached{}
	for at != "" {
		if _, again := read[at]; again || len(read) == maxPages || len(repos) > maxRepos {
			return nil, trouble("the host's list does not end: %d pages, %d repos", len(read), len(repos))
		}
		answer, err := a.page(ctx, at)
		if err != nil {
			return nil, err
		}
		read[at] = answer
		repos = append(repos, answer.repos...)
		at = answer.next
	}
	c.cache = read // pages that are no longer there are forgotten
	return repos, nil
}

// Error is why a host could not be asked. Its text is for people, and holds no
// credentials.
type Error struct {
	Reason string
	// RetryAfter is how long the host wants to be left alone; 0: it did not say.
	RetryAfter Wait
}

// Error implements error.
func (t *Error) Error() string { return t.Reason }

func trouble(format string, args ...any) error {
	return &Error{Reason: fmt.Sprintf(format, args...)}
}
