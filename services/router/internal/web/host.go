package web

import (
	"net/url"
	"strings"
)

// host is the pages of a repo at its Git host.
type host struct {
	// Repo, File and Blame are addresses; empty if unknown. File and Blame name the commit. All
	// known hosts take #L10 for a line.
	Repo, File, Blame string
}

// hostPaths are the paths of a file and of its blame below that of a repo. COMMIT and the path follow.
var hostPaths = map[string]struct{ file, blame string }{
	"github":    {"/blob/", "/blame/"},
	"gitlab":    {"/-/blob/", "/-/blame/"},
	"gitea":     {"/src/commit/", "/blame/commit/"},
	"forgejo":   {"/src/commit/", "/blame/commit/"},
	"codeberg":  {"/src/commit/", "/blame/commit/"},
	"bitbucket": {"/src/", "/annotate/"},
}

// hostOf are the pages of a path at the host that a repo was cloned from. The first or second label of the
// host's name reveals its software: github.com, gitlab.example.org, git.forgejo.example.
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
			h.File, h.Blame = at(paths.file+commit+"/"+path), at(paths.blame+commit+"/"+path)
			break
		}
	}
	for _, address := range []*string{&h.Repo, &h.File, &h.Blame} {
		if len(*address) > maxURL {
			*address = ""
		}
	}
	return h
}
