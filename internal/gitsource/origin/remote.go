package origin

import (
	"cmp"
	"net"
	"net/netip"
	"net/url"
	"path"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// MaxURL and MaxName bound the bytes of a clone URL and of a repo's or branch's name.
const (
	MaxURL  = 4096
	MaxName = 1024
)

// SchemeFile is the Scheme of a Remote that is a local folder.
const SchemeFile = "file"

// Remote is a clone URL taken apart.
type Remote struct {
	// Scheme is https, http, ssh, git or file.
	Scheme string
	// User logs in over ssh; empty elsewhere.
	User string
	// Host is a lower-case name without a final dot, or an address without brackets.
	Host string
	// Port is a decimal number without leading zeros, and empty for the scheme's own.
	Port string
	// Path starts with a slash, except after "host:" over ssh; for file it is
	// absolute and clean.
	Path string

	// escaped is Path as it is written in a URL.
	escaped string
}

// HostPort is host, or host:port, as it is written in a URL.
func (r Remote) HostPort(host string) string {
	switch {
	case r.Port != "":
		return net.JoinHostPort(host, r.Port)
	case strings.Contains(host, ":"):
		return "[" + host + "]"
	}
	return host
}

// DialPort is the port to connect to: that of the URL, else the scheme's own.
func (r Remote) DialPort() string { return cmp.Or(r.Port, defaultPorts[r.Scheme]) }

// CloneURL is the URL for git. It is made from the checked parts, so that git cannot
// interpret the text differently from the check. A non-empty address replaces the
// host.
func (r Remote) CloneURL(address string) string {
	if r.Scheme == SchemeFile {
		return r.Path
	}
	host, user := cmp.Or(address, r.Host), ""
	if r.User != "" {
		user = r.User + "@"
	}
	p := r.escaped
	if p == "" { // user@host:path, relative to the home folder
		return user + r.HostPort(host) + ":" + r.Path
	}
	return r.Scheme + "://" + user + r.HostPort(host) + p
}

// Parse takes a clone URL, "user@host:path", or an absolute path apart.
// Every error is a *RuleError; none repeats the URL, which may hold a password.
func Parse(raw string) (Remote, error) {
	if err := checkText(RuleSyntax, "the URL", raw, MaxURL); err != nil {
		return Remote{}, err
	}
	scheme, rest, isURL := strings.Cut(raw, "://")
	switch {
	case strings.HasPrefix(raw, "-"):
		return Remote{}, broken(RuleLeadingDash, "the URL starts with a dash, as options do")
	case strings.HasPrefix(raw, "/"):
		return parsePath(raw)
	case helper(raw):
		return Remote{}, broken(RuleHelper, "the URL names a transport helper (name::address), which runs programs")
	case !isURL:
		return parseSCP(raw)
	case strings.EqualFold(scheme, SchemeFile):
		return parseFile(rest)
	}
	return parseURL(raw)
}

// helper reports whether git would read raw as "helper::address".
func helper(raw string) bool {
	name, _, ok := strings.Cut(raw, "::")
	return ok && !strings.ContainsFunc(name, func(r rune) bool {
		return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("+-.", r))
	})
}

func parsePath(raw string) (Remote, error) {
	for part := range strings.SplitSeq(raw, "/") {
		if part == ".." {
			return Remote{}, broken(RuleFolder, "the path holds ..")
		}
	}
	return Remote{Scheme: SchemeFile, Path: path.Clean(raw)}, nil
}

func parseFile(rest string) (Remote, error) {
	host, _, _ := strings.Cut(rest, "/")
	if host != "" && host != "localhost" {
		return Remote{}, broken(RuleFolder, "a file URL has no host: file:///path")
	}
	decoded, err := url.PathUnescape(strings.TrimPrefix(rest, host))
	if err != nil || !strings.HasPrefix(decoded, "/") {
		return Remote{}, broken(RuleSyntax, "a file URL is file:// and an absolute path")
	}
	if err := checkText(RuleSyntax, "the path", decoded, MaxURL); err != nil {
		return Remote{}, err
	}
	return parsePath(decoded)
}

// parseSCP reads "[user@]host:path", which git takes for ssh.
func parseSCP(raw string) (Remote, error) {
	authority, p, ok := strings.Cut(raw, ":")
	if !ok || strings.Contains(authority, "/") {
		return Remote{}, broken(RuleSyntax, "the URL has no scheme; expected such as https://host/path or user@host:path")
	}
	user, host, hasUser := strings.Cut(authority, "@")
	if !hasUser {
		user, host = "", authority
	}
	r := Remote{Scheme: "ssh", User: user, Host: canonicalHost(host), Path: p}
	return r, r.checkParts()
}

func parseURL(raw string) (Remote, error) {
	u, err := url.Parse(raw)
	if err != nil {
		return Remote{}, broken(RuleSyntax, "the URL cannot be read; expected such as https://host/path")
	}
	if u.RawQuery != "" || u.Fragment != "" || u.ForceQuery {
		return Remote{}, broken(RuleSyntax, "a clone URL has neither query nor fragment")
	}
	r := Remote{
		Scheme: strings.ToLower(u.Scheme), Host: canonicalHost(u.Hostname()),
		Port: u.Port(), Path: u.Path, escaped: u.EscapedPath(),
	}
	if r.Port, err = canonicalPort(r.Scheme, r.Port); err != nil {
		return Remote{}, err
	}
	if u.User != nil {
		r.User = u.User.Username()
		if _, has := u.User.Password(); has || r.Scheme != "ssh" {
			return Remote{}, broken(RuleCredentials,
				"the URL holds a user or password; credentials belong in the indexer's credentials folder")
		}
	}
	return r, r.checkParts()
}

// checkParts checks the parts that every URL with a host must have.
func (r Remote) checkParts() error {
	if !isAddress(r.Host) && !validHost(r.Host) {
		return broken(RuleHost, "the URL's host is not a host name or address")
	}
	if r.Path == "" || r.Path == "/" || strings.HasPrefix(r.Path, "-") || strings.HasPrefix(r.Path, "/-") {
		return broken(RuleSyntax, "the URL's path is missing or starts with a dash")
	}
	if strings.ContainsAny(r.Path, `\;`) {
		// Some servers take \ for / and drop what follows ;, so that one repository would
		// have many names.
		return broken(RuleSyntax, "the URL's path holds a backslash or a semicolon")
	}
	if strings.HasPrefix(r.User, "-") || strings.ContainsFunc(r.User, func(c rune) bool {
		return c != '-' && c != '_' && c != '.' && !unicode.IsLetter(c) && !unicode.IsDigit(c)
	}) {
		return broken(RuleSyntax, "the URL's user is not a login name")
	}
	return checkText(RuleSyntax, "the URL's path", r.Path, MaxURL)
}

// canonicalHost is the form in which hosts are compared: a name in small letters
// without the final dot, an address as netip writes it.
func canonicalHost(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	if addr, err := netip.ParseAddr(host); err == nil && addr.Zone() == "" {
		return addr.String()
	}
	return host
}

// defaultPorts are the ports of the schemes' own.
var defaultPorts = map[string]string{"https": "443", "http": "80", "ssh": "22", "git": "9418"}

// canonicalPort drops leading zeros, and the scheme's own port.
func canonicalPort(scheme, port string) (string, error) {
	if port == "" {
		return "", nil
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", broken(RuleSyntax, "the URL's port is not a number from 1 to 65535")
	}
	if port = strconv.FormatUint(n, 10); port == defaultPorts[scheme] {
		return "", nil
	}
	return port, nil
}

func isAddress(host string) bool {
	addr, err := netip.ParseAddr(host)
	return err == nil && addr.Zone() == ""
}

// validHost accepts DNS names. One that ends in a number is refused: some
// resolvers read it as an IPv4 address in octal, hexadecimal or short form.
func validHost(host string) bool {
	if host == "" || len(host) > 253 {
		return false
	}
	var last string
	for label := range strings.SplitSeq(host, ".") {
		if label == "" || len(label) > 63 || label[0] == '-' || strings.ContainsFunc(label, notHostRune) {
			return false
		}
		last = label
	}
	_, err := strconv.ParseUint(strings.ToLower(last), 0, 64)
	return err != nil && strings.Trim(last, "0123456789") != ""
}

func notHostRune(r rune) bool {
	return !('a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '-' || r == '_')
}

// checkText refuses what no URL and no name may hold: nothing at all, too
// much, invalid UTF-8, control characters.
func checkText(rule Rule, what, s string, limit int) error {
	switch {
	case s == "":
		return broken(rule, "%s is empty", what)
	case len(s) > limit:
		return broken(rule, "%s has %d bytes; the limit is %d", what, len(s), limit)
	case !utf8.ValidString(s):
		return broken(rule, "%s is not valid UTF-8", what)
	case strings.ContainsFunc(s, func(r rune) bool { return unicode.IsControl(r) || r == '\u2028' || r == '\u2029' }):
		return broken(rule, "%s holds a control character", what)
	}
	return nil
}
