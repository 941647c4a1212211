package origin

import (
	"fmt"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/internal/config"
)

// Policy says which repositories may be fetched. The zero value allows none.
type Policy struct {
	Schemes         []string `config:"schemes" doc:"schemes that clone URLs may have: https, ssh, http, git"`
	Hosts           []string `config:"hosts" doc:"hosts that clone URLs may name, as git.example.com, or *.example.com for all below it; empty: all"`
	PrivateNetworks []string `config:"private-networks" doc:"networks whose addresses are allowed although they are not public, such as 10.0.0.0/8, or 10.1.2.3/32:8443 and [fd00::/8]:22 for one port; metadata services of clouds are never allowed"`
	Folders         []string `config:"folders" doc:"absolute paths of folders below which local repositories may be read; empty: none"`
	Canary          string   `config:"canary" doc:"URL of the repository of trawl canary, http://HOST:PORT/trawl/canary.git: this one may be fetched whatever schemes, hosts and private-networks say; empty: none"`
}

// Config is the policy, and the credentials of what it allows.
type Config struct {
	Policy
	Credentials string `config:"credentials" doc:"folder of secret files: those that sources name (routers read only those of webhooks), and for git HOST/username and HOST/password, or HOST/ssh_key, and known_hosts; HOST:PORT where the URL has a port"`
}

// SetDefaults allows https and ssh to public addresses.
func (p *Policy) SetDefaults() {
	*p = Policy{Schemes: []string{"https", "ssh"}}
}

// knownSchemes are the schemes that git serves itself; all others are helpers
// that run programs.
var knownSchemes = []string{"https", "http", "ssh", "git"}

// Validate implements config.Settings.
func (p *Policy) Validate() error {
	var c config.Check
	for _, s := range p.Schemes {
		c.OneOf("schemes", s, knownSchemes...)
	}
	for _, h := range p.Hosts {
		c.That(validHost(strings.TrimPrefix(h, "*.")), "hosts", h, "a host name, or *. and a host name")
	}
	for _, n := range p.PrivateNetworks {
		_, _, err := parseNetwork(n)
		c.That(err == nil, "private-networks", n, "an address and a prefix length, such as 10.0.0.0/8, with a port behind it if only that is allowed: 10.1.2.3/32:8443, [fd00::/8]:22")
	}
	for _, f := range p.Folders {
		c.That(filepath.IsAbs(f), "folders", f, "an absolute path")
	}
	if p.Canary != "" {
		r, err := Parse(p.Canary)
		c.That(err == nil && r.Scheme == "http", "canary", p.Canary, "a URL such as http://HOST:PORT/trawl/canary.git")
	}
	return c.Err()
}

// Rule names a rule that a URL or name breaks.
type Rule string

// Rules of URLs, names and branches.
const (
	RuleSyntax         Rule = "syntax"
	RuleLeadingDash    Rule = "leading-dash"
	RuleScheme         Rule = "scheme"
	RuleHelper         Rule = "transport-helper"
	RuleCredentials    Rule = "credentials"
	RuleHost           Rule = "host"
	RulePrivateAddress Rule = "private-address"
	RuleFolder         Rule = "folder"
	RuleName           Rule = "name"
	RuleBranch         Rule = "branch"
)

// RuleError says which rule a URL, name or branch breaks. Its text never holds
// a password.
type RuleError struct {
	Rule Rule
	// Detail says in plain words what is wrong and what would be right.
	Detail string
}

// Error implements error.
func (e *RuleError) Error() string {
	return fmt.Sprintf("%s (rule %s)", e.Detail, e.Rule)
}

func broken(rule Rule, format string, args ...any) error {
	return &RuleError{Rule: rule, Detail: fmt.Sprintf(format, args...)}
}

// CheckURL reports, as a *RuleError, whether the policy forbids a clone URL or path.
// It does not resolve names: Policy.Resolve, and again Fetcher when it connects,
// refuses a name whose address is private.
func CheckURL(raw string, p Policy) error {
	remote, err := Parse(raw)
	if err != nil {
		return err
	}
	return p.Check(remote)
}

// Check is CheckURL for a parsed URL.
func (p Policy) Check(r Remote) error {
	if r.Scheme == SchemeFile {
		return p.checkFolder(r.Path)
	}
	if p.Canary != "" && SameRepository(p.Canary, r.CloneURL("")) {
		return nil
	}
	if !slices.Contains(p.Schemes, r.Scheme) {
		return broken(RuleScheme, "the scheme %q is not allowed; --source-schemes allows: %s", r.Scheme, orNone(p.Schemes))
	}
	if len(p.Hosts) > 0 && !slices.ContainsFunc(p.Hosts, func(h string) bool { return hostMatches(h, r.Host) }) {
		return broken(RuleHost, "the host %q is not allowed; --source-hosts allows: %s", r.Host, orNone(p.Hosts))
	}
	if r.Host == "localhost" || strings.HasSuffix(r.Host, ".localhost") {
		return p.checkAddress(netip.AddrFrom4([4]byte{127, 0, 0, 1}), r.DialPort())
	}
	if addr, err := netip.ParseAddr(r.Host); err == nil {
		return p.checkAddress(addr, r.DialPort())
	}
	return nil
}

func (p Policy) checkFolder(path string) error {
	if slices.ContainsFunc(p.Folders, func(f string) bool { return within(filepath.Clean(f), path) }) {
		return nil
	}
	return broken(RuleFolder, "the folder is not below one that is allowed; --source-folders allows: %s", orNone(p.Folders))
}

// CheckResolvedFolder is checkFolder for a path without symbolic links.
func (p Policy) CheckResolvedFolder(path string) error {
	var resolved Policy
	for _, f := range p.Folders {
		if f, err := filepath.EvalSymlinks(f); err == nil {
			resolved.Folders = append(resolved.Folders, f)
		}
	}
	return resolved.checkFolder(path)
}

// within reports whether a clean path is root or below it.
func within(root, path string) bool {
	rel, err := filepath.Rel(root, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

func hostMatches(pattern, host string) bool {
	if parent, ok := strings.CutPrefix(pattern, "*"); ok {
		return strings.HasSuffix(host, strings.ToLower(parent))
	}
	return strings.EqualFold(pattern, host)
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
