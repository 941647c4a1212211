package gitsource

import (
	"regexp"
	"strings"
	"unicode"
)

// Kind is what went wrong with a fetch.
type Kind uint8

// Kinds of failures.
const (
	// Unknown is what git says and this package has no words for.
	Unknown Kind = iota
	// NotFound: there is no such repository, or it is hidden from us.
	NotFound
	// NeedsCredentials: the host wants credentials, or others.
	NeedsCredentials
	// Empty: the repository has no commits.
	Empty
	// NoBranch: a wanted branch does not exist.
	NoBranch
	// TooLarge: a limit on bytes, objects or documents was reached.
	TooLarge
	// TimedOut: the limit on time was reached.
	TimedOut
	// Refused: the policy forbids it; the error wraps a *origin.RuleError.
	Refused
	// Unreachable: the host, or the way to it, does not work now.
	Unreachable
	// Damaged: what the host sent, or what is stored here, is not sound.
	Damaged
	// NoSpace: the local disk is full.
	NoSpace
)

// Permanent says whether trying again later is pointless as long as neither
// the repository nor the configuration changes.
func (k Kind) Permanent() bool {
	switch k {
	case NotFound, NeedsCredentials, Empty, NoBranch, TooLarge, Refused:
		return true
	case Unknown, TimedOut, Unreachable, Damaged, NoSpace:
	}
	return false
}

// Failure is why a repository could not be read, in words for the person who
// asked for it. It holds no credentials.
type Failure struct {
	Kind Kind
	// Reason is one plain sentence without a full stop.
	Reason string
	// Err is the cause, if there is one with a type of its own.
	Err error
}

// Error implements error.
func (f *Failure) Error() string { return f.Reason }

// Unwrap gives the cause.
func (f *Failure) Unwrap() error { return f.Err }

func failure(kind Kind, err error, reason string) error {
	return &Failure{Kind: kind, Reason: reason, Err: err}
}

// sayings turn git's words (in the C locale) into kinds; the first that matches
// decides, so the more telling come first.
var sayings = []struct {
	kind   Kind
	match  *regexp.Regexp
	reason string
}{
	{NoSpace, regexp.MustCompile(`No space left on device|Disk quota exceeded`), "the indexer's disk is full"},
	{NoBranch, regexp.MustCompile(`couldn't find remote ref`), "the repository has no such branch"},
	{NeedsCredentials, regexp.MustCompile(`Host key verification failed`),
		"the ssh host key is not in the indexer's known_hosts"},
	{NotFound, regexp.MustCompile(`(?i)repository '?[^\n]*not found|does not appear to be a git repository|no such repository|` +
		`repository does not exist|project you were looking for could not be found|` +
		`repository '[^\n]*' does not exist|unable to find remote helper|requested URL returned error: (404|410)`),
		"the repository does not exist, or is not visible without credentials"},
	{NeedsCredentials, regexp.MustCompile(`could not read (Username|Password)|Authentication failed|Permission denied \(|` +
		`terminal prompts disabled|returned error: 40[13]|HTTP Basic: Access denied|Permission denied, please try again`),
		"the repository needs credentials that the indexer does not have"},
	{Refused, regexp.MustCompile(`transport '[^']*' not allowed`), "the transport is not allowed"},
	{Unreachable, regexp.MustCompile(`(?i)could not resolve|connection refused|connection reset|timed out|timeout|` +
		`no route to host|network is unreachable|early EOF|RPC failed|unexpected disconnect|hung up|` +
		`returned error: (408|429|5\d\d)|failed to connect|couldn't connect|recv failure|transfer closed|` +
		`operation too slow|gnutls|SSL|certificate|response 50\d|connection closed`), "the host cannot be reached"},
	{Damaged, regexp.MustCompile(`(?i)fsck|index-pack failed|invalid index-pack|corrupt|bad object|unable to read|` +
		`did not send all necessary objects|inflate|bad pack|missing (blob|tree|commit)|object file .* is empty|` +
		`not a git repository|shallow file has changed|Unable to create '[^']*lock'|dumb http transport`),
		"the repository's objects are not sound"},
}

// explain makes a Failure of what git wrote to its error output.
func explain(stderr string, cause error) error {
	said := sanitize(stderr)
	for _, s := range sayings {
		if s.match.MatchString(stderr) {
			return failure(s.kind, cause, withDetail(s.reason, said))
		}
	}
	return failure(Unknown, cause, withDetail("git failed", said))
}

func withDetail(reason, said string) string {
	if said == "" {
		return reason
	}
	return reason + " (git: " + said + ")"
}

// maxSaid bounds how much of git's own words a reason repeats.
const maxSaid = 400

// askpassFailed begins what git says when askpass has no answer; it names a
// file of the indexer, and what git says next is that credentials are missing.
const askpassFailed = "unable to read askpass response"

// userinfo is the part of a URL that can hold credentials.
var userinfo = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s]*@`)

// sanitize makes git's words fit to be shown: one line, no control characters,
// no credentials, the decisive lines only, not too long.
func sanitize(stderr string) string {
	var kept []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"fatal: ", "error: ", "remote: ", "ERROR: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line != "" && !strings.HasPrefix(line, askpassFailed) {
			kept = append(kept, line)
		}
	}
	text := userinfo.ReplaceAllString(strings.Join(kept, "; "), "$1")
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == unicode.ReplacementChar {
			return -1
		}
		return r
	}, text)
	if len(text) > maxSaid {
		text = strings.ToValidUTF8(text[:maxSaid], "") + "…"
	}
	return text
}
