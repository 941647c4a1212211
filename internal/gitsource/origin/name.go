package origin

import (
	"net"
	"slices"
	"strings"
)

// RepoName derives a repo's name from its clone URL: host and path without ".git",
// such as "github.com/org/name". A local folder's name is "localhost" and its path,
// so that folders of equal name stay apart. Equivalent URLs, such as one with the
// scheme's own port, have one name. Every error is a *RuleError.
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
	name := host + "/" + barePath(r.Path)
	return name, CheckName(name)
}

// barePath is a path without slashes at its ends and without any ".git" at the end,
// in any letter case: hosts ignore these.
func barePath(p string) string {
	p = strings.Trim(p, "/")
	for len(p) >= len(".git") && strings.EqualFold(p[len(p)-len(".git"):], ".git") {
		p = strings.TrimRight(p[:len(p)-len(".git")], "/")
	}
	return p
}

// SameRepository reports whether two clone URLs lead to one repository in the same
// way: they differ at most in how scheme, host and port are written, and in ".git" and
// slashes at the end. Paths that differ in letter case are different: hosts need not
// fold it. Folders with and without ".git" are different, too. An invalid URL is the same as no other.
func SameRepository(a, b string) bool {
	left, errLeft := Parse(a)
	right, errRight := Parse(b)
	if errLeft != nil || errRight != nil {
		return false
	}
	if left.Scheme == SchemeFile && right.Scheme == SchemeFile {
		return strings.TrimSuffix(left.Path, "/.git") == strings.TrimSuffix(right.Path, "/.git")
	}
	relative := left.escaped == "" && right.escaped == "" || left.escaped != "" && right.escaped != ""
	return relative && left.Scheme == right.Scheme && left.User == right.User && left.HostPort(left.Host) == right.HostPort(right.Host) &&
		barePath(left.Path) == barePath(right.Path)
}

// MayShareName reports whether two clone URLs may have one repo without anybody having
// chosen its name: both imply the same name, and neither is a folder of another path.
func MayShareName(a, b string) bool {
	left, errLeft := RepoName(a)
	right, errRight := RepoName(b)
	return errLeft == nil && errRight == nil && left == right &&
		(SameRepository(a, b) || !isFolder(a) && !isFolder(b))
}

func isFolder(raw string) bool {
	r, err := Parse(raw)
	return err == nil && r.Scheme == SchemeFile
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

// BranchRef returns the ref that the name or pattern of a branch stands for: main for
// refs/heads/main, and a full name such as refs/tags/v1 for itself. HEAD stands for the default
// branch, or for what HEAD names if it names no branch.
func BranchRef(name string) string {
	if name == "HEAD" || strings.HasPrefix(name, "refs/") {
		return name
	}
	return "refs/heads/" + name
}

// BranchName is the name by which a ref is indexed, the inverse of BranchRef: that of a branch without
// refs/heads/, unless the rest would stand for something else or be taken for an option.
func BranchName(ref string) string {
	name, isBranch := strings.CutPrefix(ref, "refs/heads/")
	if !isBranch || BranchRef(name) != ref || strings.HasPrefix(name, "-") {
		return ref
	}
	return name
}

// MatchBranch reports whether any of the wanted names and patterns selects the branch of this name.
func MatchBranch(want []string, name string) bool {
	return slices.ContainsFunc(want, func(w string) bool { return MatchPattern(BranchRef(w), BranchRef(name)) })
}

// maxBranchPart is how many bytes a component of a branch's name may have. Git keeps a branch in a file of its name, and adds .lock to that
// while it writes; the names of files have 255 bytes at most.
const maxBranchPart = 255 - len(".lock")

// CheckBranch reports, as a *RuleError, whether s cannot name a branch or tag, by the
// rules of git-check-ref-format(1). "HEAD" is allowed, see BranchRef. Names that are not UTF-8
// or hold control characters, and components that are too long for a file, are refused although git allows them.
func CheckBranch(s string) error {
	if err := checkText(RuleBranch, "the branch name", s, MaxName); err != nil {
		return err
	}
	if strings.HasPrefix(s, "-") {
		return broken(RuleLeadingDash, "the branch name starts with a dash, as options do: write refs/heads/%s", s)
	}
	ref := BranchRef(s)
	if ref != "HEAD" && !strings.HasPrefix(ref, "refs/heads/") && !strings.HasPrefix(ref, "refs/tags/") {
		return broken(RuleBranch, "a full name is refs/heads/ and a branch, or refs/tags/ and a tag; other refs are not indexed")
	}
	if strings.ContainsAny(s, " ~^:?*[\\") || strings.Contains(s, "..") || strings.Contains(s, "@{") || strings.HasSuffix(s, ".") {
		return broken(RuleBranch, "the branch name holds what git does not allow in one")
	}
	for part := range strings.SplitSeq(ref, "/") {
		if part == "" || strings.HasPrefix(part, ".") || strings.HasSuffix(part, ".lock") {
			return broken(RuleBranch, "a component of the branch name is empty, starts with a dot or ends in .lock")
		}
		if len(part) > maxBranchPart {
			return broken(RuleBranch, "a component of the branch name has more than %d bytes", maxBranchPart)
		}
	}
	return nil
}

// CheckBranchPattern is CheckBranch for a pattern, in which stars stand for parts of
// names.
func CheckBranchPattern(s string) error {
	if strings.Contains(s, "***") {
		return broken(RuleBranch, "* stands for anything up to a slash, ** for anything; *** has no meaning")
	}
	return CheckBranch(strings.ReplaceAll(s, "*", "x"))
}
