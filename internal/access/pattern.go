package access

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
)

// Limits of the patterns of one token: how many may allow and how many deny, the bytes of
// one, and the bytes of all. Every router holds the patterns of all tokens.
const (
	maxPatterns     = 256
	maxPatternBytes = 1024
	maxPatternText  = 32 << 10
)

// patterns are the repos that a token is for. In a pattern * stands for any
// bytes but a slash, ** for any bytes at all; everything else stands for itself.
type patterns struct{ allow, deny []string }

// match reports whether some pattern allows the repo and none denies it. Allowing is
// exact. Denying ignores letter case and the port, as most Git hosts do: otherwise a
// caller could get a denied repo under another spelling.
func (p patterns) match(repo string) bool {
	if !origin.MatchAny(p.allow, repo) {
		return false
	}
	if len(p.deny) == 0 {
		return true
	}
	repo = foldRepo(repo)
	return !slices.ContainsFunc(p.deny, func(deny string) bool { return origin.MatchPattern(foldRepo(deny), repo) })
}

// foldRepo returns a name or pattern in small letters, without the port of its host.
func foldRepo(name string) string {
	name = strings.ToLower(name)
	authority, path, ok := strings.Cut(name, "/")
	host, port, err := net.SplitHostPort(authority)
	if !ok || err != nil || strings.Trim(port, "0123456789") != "" {
		return name
	}
	if strings.Contains(host, ":") {
		host = "[" + host + "]"
	}
	return host + "/" + path
}

// all reports whether every repo matches, whatever its name.
func (p patterns) all() bool {
	return len(p.deny) == 0 && slices.Contains(p.allow, "**")
}

func checkPatterns(kind string, list []string) error {
	if len(list) > maxPatterns {
		return fmt.Errorf("%d patterns to %s, at most %d: use * and ** for what they have in common", len(list), kind, maxPatterns)
	}
	for _, p := range list {
		switch {
		case p == "":
			return fmt.Errorf("an empty pattern to %s: ** stands for all repos", kind)
		case len(p) > maxPatternBytes:
			return fmt.Errorf("a pattern to %s of %d bytes, at most %d: use * and ** for a part of it", kind, len(p), maxPatternBytes)
		case strings.Contains(p, "***"):
			return fmt.Errorf("pattern %q: * stands for anything up to a slash, ** for anything; *** has no meaning", p)
		}
	}
	return nil
}

func (p patterns) check() error {
	if len(p.allow) == 0 {
		return errors.New("no pattern of repos that are allowed: ** stands for all")
	}
	text := 0
	for _, pattern := range slices.Concat(p.allow, p.deny) {
		text += len(pattern)
	}
	if err := errors.Join(checkPatterns("allow", p.allow), checkPatterns("deny", p.deny)); err != nil || text <= maxPatternText {
		return err
	}
	return fmt.Errorf("patterns of %d bytes in all, at most %d: use * and ** for what they have in common", text, maxPatternText)
}
