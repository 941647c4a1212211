package codehost

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// name matches names of sources, which are part of webhooks' URLs.
var name = lazyregexp.New(`^[a-z0-9][a-z0-9-]{0,62}$`)

// CheckSource reports why a source is invalid, in words for its author.
func CheckSource(s *ingestv1.Source) error {
	if !name().MatchString(s.GetName()) {
		return fmt.Errorf("name %q: want 1 to 63 small letters, digits and dashes, not starting with a dash", s.GetName())
	}
	return errors.Join(checkPlace(s), checkPatterns(s), checkBranches(s), checkCloneHosts(s), checkLinks(s), checkSecrets(s), checkTimes(s))
}

// checkPlace checks the fields that locate the repos.
func checkPlace(s *ingestv1.Source) error {
	kind := s.GetKind()
	switch {
	case !slices.Contains([]string{Git, GitHub, GitLab, Gitea, Bitbucket, BitbucketServer, Gerrit}, kind):
		return fmt.Errorf("kind %q: want git, github, gitlab, gitea, bitbucket, bitbucket-server or gerrit", kind)
	case BaseURL(s) == "":
		return fmt.Errorf("url is missing: %s needs one", kind)
	case kind == Git && s.GetOwner() != "":
		return errors.New("owner: a single URL has none")
	case s.GetUser() && kind != GitHub && kind != GitLab && kind != Gitea:
		return fmt.Errorf("user: %s does not distinguish users from organizations; use owner", kind)
	case kind == Git:
		_, err := origin.RepoName(s.GetUrl())
		return err
	case s.GetOwner() == "" && kind != Gerrit:
		return fmt.Errorf("owner is missing: the organisation, group or user of %s", kind)
	case strings.ContainsAny(s.GetOwner(), "?#%\\ ") || slices.Contains(strings.Split(s.GetOwner(), "/"), ".."):
		return fmt.Errorf("unknown owner %q", s.GetOwner())
	}
	return checkBase(BaseURL(s))
}

// checkBase checks the address of an API, which must not hold a password.
func checkBase(raw string) error {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != "http":
		return errors.New("url: want the address of a host, such as https://git.example.com")
	case u.User != nil:
		return errors.New("url: it holds a user or password; name them by token")
	case u.RawQuery != "" || u.Fragment != "":
		return errors.New("url: the address of a host has neither query nor fragment")
	}
	return nil
}

// maxRank is the highest rank of a repo, that of RepoFacts.
const maxRank = 100

func checkPatterns(s *ingestv1.Source) error {
	for _, p := range slices.Concat(s.GetInclude(), s.GetExclude()) {
		if err := origin.CheckPattern(p); err != nil {
			return fmt.Errorf("include, exclude: %w", err)
		}
	}
	for _, rule := range s.GetRanks() {
		if err := origin.CheckPattern(rule.GetMatch()); err != nil {
			return fmt.Errorf("ranks: %w", err)
		}
		if rule.GetRank() > maxRank {
			return fmt.Errorf("ranks: %q has the rank %d: want 0 to %d", rule.GetMatch(), rule.GetRank(), maxRank)
		}
	}
	return nil
}

func checkBranches(s *ingestv1.Source) error {
	all := slices.Clone(s.GetBranches())
	for _, rule := range s.GetOverrides() {
		if err := origin.CheckPattern(rule.GetMatch()); err != nil {
			return fmt.Errorf("overrides: %w", err)
		}
		if len(rule.GetBranches()) == 0 {
			return fmt.Errorf("overrides: %q has no branches", rule.GetMatch())
		}
		all = append(all, rule.GetBranches()...)
	}
	for _, b := range all {
		if err := origin.CheckBranchPattern(b); err != nil {
			return fmt.Errorf("branches: %q: %w", b, err)
		}
	}
	return nil
}

func checkTimes(s *ingestv1.Source) error {
	if s.GetEvery() != nil && Every(s) < MinEvery {
		return fmt.Errorf("every: %v, at least %v", Every(s), MinEvery)
	}
	if Grace(s) < 0 {
		return fmt.Errorf("grace: %v, want 0 or more", Grace(s))
	}
	return nil
}

// CheckAllowed fails if a source is at a host that the policy does not allow.
func CheckAllowed(list []*ingestv1.Source, policy origin.Policy) error {
	for _, s := range list {
		at := s.GetUrl()
		if s.GetKind() != Git {
			at = BaseURL(s) + "/x" // a path makes a clone URL of it
		}
		if err := origin.CheckURL(at, policy); err != nil {
			return fmt.Errorf("source %q: %w", s.GetName(), err)
		}
	}
	return nil
}

// CheckSources checks every source, their number, and that their names differ.
func CheckSources(list []*ingestv1.Source) error {
	if len(list) > MaxSources {
		return fmt.Errorf("%d sources, at most %d", len(list), MaxSources)
	}
	seen := map[string]bool{}
	for _, s := range list {
		if err := CheckSource(s); err != nil {
			return fmt.Errorf("source %q: %w", s.GetName(), err)
		}
		if seen[s.GetName()] {
			return fmt.Errorf("source %q is defined twice", s.GetName())
		}
		seen[s.GetName()] = true
	}
	return nil
}
