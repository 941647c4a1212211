package origin

import (
	"net"
	"strings"
)

// RepoName derives a repo's name from its clone URL: host and path without
// ".git", such as "github.com/org/name". A local folder is below "localhost",
// so that folders of equal name stay apart. Every error is a *RuleError.
func RepoName(raw string) (string, error) {
	r, err := Parse(raw)
	if err != nil {
		return "", err
	}
	host := r.Host
	switch {
	case r.Scheme == SchemeFile:
		host = "localhost"
	case r.Port != "":
		host = net.JoinHostPort(r.Host, r.Port)
	}
	p := strings.Trim(r.Path, "/")
	p = strings.TrimSuffix(strings.TrimSuffix(p, ".git"), "/")
	name := host + "/" + p
	return name, CheckName(name)
}

// CheckName reports, as a *RuleError, whether s cannot name a repo: names are
// UTF-8 of at most MaxName bytes, without control characters, empty or dot
// components, and do not start with a dash.
func CheckName(s string) error {
	if err := checkText(RuleName, "the name", s, MaxName); err != nil {
		return err
	}
	if strings.HasPrefix(s, "-") {
		return broken(RuleLeadingDash, "the name starts with a dash, as options do")
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || part == "." || part == ".." {
			return broken(RuleName, "the name has an empty component, or one that is . or ..")
		}
	}
	return nil
}

// CheckBranch reports, as a *RuleError, whether s cannot name a branch, by the
// rules of git-check-ref-format(1). "HEAD" is allowed: it means the default
// branch.
func CheckBranch(s string) error {
	if err := checkText(RuleBranch, "the branch name", s, MaxName); err != nil {
		return err
	}
	if strings.HasPrefix(s, "-") {
		return broken(RuleLeadingDash, "the branch name starts with a dash, as options do")
	}
	if strings.ContainsAny(s, " ~^:?*[\\") || strings.Contains(s, "..") || strings.Contains(s, "@{") ||
		s == "@" || strings.HasSuffix(s, ".") {
		return broken(RuleBranch, "the branch name holds what git does not allow in one")
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return broken(RuleBranch, "a component of the branch name is empty, starts with a dot or ends in .lock")
		}
	}
	return nil
}

// CheckBranchPattern is CheckBranch for a pattern, in which stars stand for what
// the branches of a repo are called.
func CheckBranchPattern(s string) error {
	if strings.Contains(s, "***") {
		return broken(RuleBranch, "* stands for anything up to a slash, ** for anything, *** for nothing")
	}
	return CheckBranch(strings.ReplaceAll(s, "*", "x"))
}
