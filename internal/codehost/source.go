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
	// BitbucketServer is Bitbucket Data Center as well.
	BitbucketServer = "bitbucket-server"
	Gerrit          = "gerrit"
)

// Defaults and bounds of a source.
const (
	DefaultEvery = 15 * time.Minute
	DefaultGrace = 72 * time.Hour
	// MinEvery is the minimum time between two looks at a host.
	MinEvery = time.Second
	// MaxSources bounds the number of sources.
	MaxSources = 1000
)

// public has the API addresses of the public hosts.
var public = map[string]string{
	GitHub: "https://api.github.com", GitLab: "https://gitlab.com", Bitbucket: "https://api.bitbucket.org",
}

// BaseURL returns the address of the host's API.
func BaseURL(s *ingestv1.Source) string { return cmp.Or(s.GetUrl(), public[s.GetKind()]) }

// Every returns the time between two looks at the host.
func Every(s *ingestv1.Source) time.Duration {
	return cmp.Or(s.GetEvery().AsDuration(), DefaultEvery)
}

// Grace returns how long a repo is kept after it left the source.
func Grace(s *ingestv1.Source) time.Duration {
	if s.GetGrace() == nil {
		return DefaultGrace
	}
	return s.GetGrace().AsDuration()
}

// Wants reports whether a source selects a repo of its host. The host chose the path: one that is longer than
// any name is not selected, since matching it takes time in step with its length.
func Wants(s *ingestv1.Source, r Repo) bool {
	return len(r.Path) <= origin.MaxName && (s.GetArchived() || !r.Archived) && (s.GetForks() || !r.Fork) &&
		(len(s.GetInclude()) == 0 || origin.MatchAny(s.GetInclude(), r.Path)) && !origin.MatchAny(s.GetExclude(), r.Path)
}

// Branches returns the branches to index of the repo at a path, those of the first
// override that matches.
func Branches(s *ingestv1.Source, path string) []string {
	for _, rule := range s.GetOverrides() {
		if origin.MatchPattern(rule.GetMatch(), path) {
			return rule.GetBranches()
		}
	}
	return s.GetBranches()
}

// Rank returns the rank of the repo at a path, that of the first rule that matches.
func Rank(s *ingestv1.Source, path string) uint32 {
	for _, rule := range s.GetRanks() {
		if origin.MatchPattern(rule.GetMatch(), path) {
			return rule.GetRank()
		}
	}
	return 0
}
