package web

import (
	"net/url"
	"strings"
)

// host is the pages of a repo at its Git host.
type host struct {
	// Addresses; empty if unknown. All but Repo name the commit. All known hosts take #L10 for a line.
	Repo, File, Blame, History string
}

// hostPaths are the paths of a file, its blame and its history below that of a repo. The path of the file follows.
var hostPaths = map[string]struct{ file, blame, history string }{
	"github":    {"/blob/COMMIT/", "/blame/COMMIT/", "/commits/COMMIT/"},
	"gitlab":    {"/-/blob/COMMIT/", "/-/blame/COMMIT/", "/-/commits/COMMIT/"},
	"gitea":     {"/src/commit/COMMIT/", "/blame/commit/COMMIT/", "/commits/commit/COMMIT/"},
	"forgejo":   {"/src/commit/COMMIT/", "/blame/commit/COMMIT/", "/commits/commit/COMMIT/"},
	"codeberg":  {"/src/commit/COMMIT/", "/blame/commit/COMMIT/", "/commits/commit/COMMIT/"},
	"bitbucket": {"/src/COMMIT/", "/annotate/COMMIT/", "/history-node/COMMIT/"},
	"sr":        {"/tree/COMMIT/item/", "/blame/COMMIT/", "/log/COMMIT/item/"},
}

// hostOf are the pages of a path at the host that a repo was cloned from. The first or second label of the
// host's name reveals its software: github.com, gitlab.example.org, git.forgejo.example, git.sr.ht.
func hostOf(clone, commit, path string) (h host) {
	u, err := url.Parse(clone)
	if err != nil || u.Scheme != "https" || u.Host == "" {
		return h
	}
	at := func(more string) string {
		return (&url.URL{Scheme: u.Scheme, Host: u.Host, Path: strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), ".git") + more}).String()
	}
	h.Repo = at("")
	labels := strings.Split(u.Hostname(), ".")
	for _, label := range labels[:min(len(labels), 2)] {
		if paths, ok := hostPaths[label]; ok && commit != "" && path != "" && !strings.HasSuffix(path, "/") {
			of := func(page string) string { return at(strings.Replace(page, "COMMIT", commit, 1) + path) }
			h.File, h.Blame, h.History = of(paths.file), of(paths.blame), of(paths.history)
			break
		}
	}
	for _, address := range []*string{&h.Repo, &h.File, &h.Blame, &h.History} {
		if len(*address) > maxURL {
			*address = ""
		}
	}
	return h
}
