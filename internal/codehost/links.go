package codehost

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// LinkLine stands for a line in the addresses of Pages.
const LinkLine = "{line}"

// Pages are the addresses of a repo at its Git host, and of a file there at a commit; empty if unknown. They are http or
// https. In those of a file LinkLine stands for a line.
type Pages struct{ Repo, File, Blame, History string }

// software are templates of the pages below the address of a host.
var software = map[string]Pages{
	Git:             {Repo: "{repo}"},
	GitHub:          {"{repo}", "{repo}/blob/{commit}/{path}#L{line}", "{repo}/blame/{commit}/{path}#L{line}", "{repo}/commits/{commit}/{path}"},
	GitLab:          {"{repo}", "{repo}/-/blob/{commit}/{path}#L{line}", "{repo}/-/blame/{commit}/{path}#L{line}", "{repo}/-/commits/{commit}/{path}"},
	Gitea:           {"{repo}", "{repo}/src/commit/{commit}/{path}#L{line}", "{repo}/blame/commit/{commit}/{path}#L{line}", "{repo}/commits/commit/{commit}/{path}"},
	Bitbucket:       {"{repo}", "{repo}/src/{commit}/{path}#lines-{line}", "{repo}/annotate/{commit}/{path}#lines-{line}", "{repo}/history-node/{commit}/{path}"},
	BitbucketServer: {"{repo}/browse", "{repo}/browse/{path}?at={commit}#{line}", "", ""},
	Gerrit: {
		"plugins/gitiles/{repo}", "plugins/gitiles/{repo}/+/{commit}/{path}#{line}",
		"plugins/gitiles/{repo}/+blame/{commit}/{path}#{line}", "plugins/gitiles/{repo}/+log/{commit}/{path}",
	},
	sourcehut: {"{repo}", "{repo}/tree/{commit}/item/{path}#L{line}", "{repo}/blame/{commit}/{path}#L{line}", "{repo}/log/{commit}/item/{path}"},
}

// sourcehut is software that no kind of source has.
const sourcehut = "sourcehut"

// revealed is the software of a host by a label of its name.
var revealed = map[string]string{
	"github": GitHub, "gitlab": GitLab, "gitea": Gitea, "forgejo": Gitea, "codeberg": Gitea, "bitbucket": Bitbucket, "sr": sourcehut,
}

// PagesOf returns the pages of a file at the host that a repo was cloned from; for a repo or a folder the path is empty.
// A source of the host has templates of them, or knows the software by its kind. Without one, the first or the second label of the
// host's name reveals the software: github.com, gitlab.example.org, git.forgejo.example, git.sr.ht.
func PagesOf(sources []*ingestv1.Source, cloneURL, commit, path string) Pages {
	remote, err := origin.Parse(cloneURL)
	if err != nil {
		return Pages{}
	}
	s := sourceOf(sources, cloneURL, remote)
	kind, at := s.GetKind(), BaseURL(s)
	if kind == "" || kind == Git {
		kind, at = reveal(remote), "https://"+remote.HostPort(remote.Host)
	}
	web, repo := locate(kind, at, remote)
	shown := repo
	if kind == BitbucketServer {
		shown = "projects/" + strings.Replace(repo, "/", "/repos/", 1)
	}
	filled := func(template, repo string) string {
		return strings.NewReplacer("{repo}", escape(repo), "{commit}", escape(commit), "{path}", escape(path)).Replace(template)
	}
	below := func(template string) string {
		if template == "" {
			return ""
		}
		return web + filled(template, shown)
	}
	own := func(template string) string {
		if checkLink(template) != nil {
			return "" // it was stored without a check
		}
		return filled(template, repo)
	}
	t := software[kind]
	pages := Pages{Repo: below(t.Repo)}
	switch l := s.GetLinks(); {
	case path == "" || commit == "":
	case l != nil:
		pages.File, pages.Blame, pages.History = own(l.GetFile()), own(l.GetBlame()), own(l.GetHistory())
	default:
		pages.File, pages.Blame, pages.History = below(t.File), below(t.Blame), below(t.History)
	}
	return pages
}

// reveal is the software of a host that no source knows; empty if nothing is known of pages there.
func reveal(remote origin.Remote) string {
	if remote.Scheme != "https" {
		return ""
	}
	labels := strings.Split(remote.Host, ".")
	for _, label := range labels[:min(len(labels), 2)] {
		if kind, known := revealed[label]; known {
			if kind == Bitbucket && strings.HasPrefix(remote.Path, "/"+scm) {
				return BitbucketServer
			}
			return kind
		}
	}
	return Git
}

// sourceOf is the source that says most about the host of a clone URL: one with links before one that has only its kind, that of
// the same repository before one of the host, and the first of these. Nil if none says anything.
func sourceOf(sources []*ingestv1.Source, cloneURL string, remote origin.Remote) (most *ingestv1.Source) {
	best := 0
	for _, s := range sources {
		says := 0
		switch {
		case s.GetKind() != Git && CheckClone(s, cloneURL) == nil:
			says = 1
		case s.GetKind() == Git && s.GetLinks() != nil && origin.SameRepository(s.GetUrl(), cloneURL):
			says = 2
		case s.GetKind() == Git && s.GetLinks() != nil && remote.Host != "":
			if own, err := origin.Parse(s.GetUrl()); err == nil && own.HostPort(own.Host) == remote.HostPort(remote.Host) {
				says = 1
			}
		}
		if says > 0 && s.GetLinks() != nil {
			says += 2
		}
		if says > best {
			best, most = says, s
		}
	}
	return most
}

// scm is the folder of repos in clone URLs of Bitbucket Data Center.
const scm = "scm/"

// locate is the address of a host's pages, and the path of a repo below it. The address of a host is that of its API.
func locate(kind, at string, remote origin.Remote) (web, repo string) {
	base, err := url.Parse(strings.TrimSuffix(at, "/"))
	repo = strings.TrimSuffix(strings.Trim(remote.Path, "/"), ".git")
	if err != nil {
		return "", repo
	}
	below := strings.TrimPrefix(base.Path, "/")
	if kind == GitHub {
		below = strings.TrimSuffix(below, "api/v3")
	}
	if kind == GitHub || kind == Bitbucket {
		base.Host = strings.TrimPrefix(base.Host, "api.")
	}
	if below = strings.TrimSuffix(below, "/"); below != "" {
		below += "/"
	}
	repo = strings.TrimPrefix(repo, below)
	if kind == BitbucketServer {
		repo = strings.TrimPrefix(repo, scm)
	}
	return (&url.URL{Scheme: base.Scheme, Host: base.Host, Path: "/" + below}).String(), repo
}

// escape writes a text so that it means itself in the path, the query and the fragment of a URL.
func escape(text string) string {
	return strings.NewReplacer("+", "%20", "%2F", "/").Replace(url.QueryEscape(text))
}

// maxLink bounds a template, in bytes.
const maxLink = 1024

func checkLinks(s *ingestv1.Source) error {
	l := s.GetLinks()
	for _, t := range []struct{ name, template string }{{"file", l.GetFile()}, {"blame", l.GetBlame()}, {"history", l.GetHistory()}} {
		if err := checkLink(t.template); err != nil {
			return fmt.Errorf("links: %s: %w", t.name, err)
		}
	}
	if l != nil && l.GetFile() == "" {
		return errors.New("links: file is missing")
	}
	return nil
}

// checkLink checks a template. Values are escaped when they are put into it, so that its scheme and host stay its own.
func checkLink(template string) error {
	u, err := url.Parse(template)
	switch {
	case template == "":
		return nil
	case len(template) > maxLink:
		return fmt.Errorf("%d bytes, at most %d", len(template), maxLink)
	case strings.ContainsFunc(template, func(r rune) bool {
		return r > unicode.MaxASCII || r <= ' ' || strings.ContainsRune("\x7f\"'`<>\\^|", r)
	}):
		return errors.New("it holds a space, a quote, or another character that addresses write as %XX")
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || strings.ContainsAny(u.Host, "{}"):
		return errors.New("want an address that begins with https:// or http:// and the name of a host")
	case u.User != nil:
		return errors.New("it holds a user or password")
	case strings.ContainsAny(strings.NewReplacer("{repo}", "", "{commit}", "", "{path}", "", LinkLine, "").Replace(template), "{}"):
		return errors.New("it may hold {repo}, {commit}, {path} and {line}, and no other braces")
	case !strings.Contains(template, "{path}"):
		return errors.New("it has no {path}")
	}
	return nil
}
