package codehost

import (
	"cmp"
	"time"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// Kinds of sources.
const (
	Git       = "git"
	GitHub    = "github"
	GitLab    = "gitlab"
	Gitea     = "gitea"
	Bitbucket = "bitbucket"
	// BitbucketServer is Bitbucket Data Center, too.
	BitbucketServer = "bitbucket-server"
	Gerrit          = "gerrit"
)

// What a source has that does not say.
const (
	DefaultEvery = 15 * time.Minute
	DefaultGrace = 72 * time.Hour
	// MinEvery bounds how often a host is asked.
	MinEvery = time.Second
	// MaxSources is how many sources there can be.
	MaxSources = 1000
)

// public are the base URLs of the hosts that everybody uses.
var public = map[string]string{
	GitHub: "https://api.github.com", GitLab: "https://gitlab.com", Bitbucket: "https://api.bitbucket.org",
}

// BaseURL is where the host's API is.
func BaseURL(s *ingestv1.Source) string { return cmp.Or(s.GetUrl(), public[s.GetKind()]) }

// Every is the time between two looks at the host.
func Every(s *ingestv1.Source) time.Duration {
	return cmp.Or(s.GetEvery().AsDuration(), DefaultEvery)
}

// Grace is how long a repo that has left is kept.
func Grace(s *ingestv1.Source) time.Duration {
	if s.GetGrace() == nil {
		return DefaultGrace
	}
	return s.GetGrace().AsDuration()
}

// Facts are what decides whether a source wants a repo.
type Facts struct {
	// Path of the repo at its host, such as org/name.
	Path           string
	Archived, Fork bool
}

// Wants reports whether a source wants a repo of its host.
func Wants(s *ingestv1.Source, f Facts) bool {
	return (s.GetArchived() || !f.Archived) && (s.GetForks() || !f.Fork) &&
		(len(s.GetInclude()) == 0 || origin.MatchAny(s.GetInclude(), f.Path)) && !origin.MatchAny(s.GetExclude(), f.Path)
}

// Branches are the branches to index of the repo at a path.
func Branches(s *ingestv1.Source, path string) []string {
	for _, rule := range s.GetOverrides() {
		if origin.MatchPattern(rule.GetMatch(), path) {
			return rule.GetBranches()
		}
	}
	return s.GetBranches()
}
