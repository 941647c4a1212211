package gitsource

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"

	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/sandbox"
)

// Kind classifies failures.
type Kind uint8

// Kinds of failures.
const (
	// Unknown: git failed with a message that this package does not know.
	Unknown Kind = iota
	// NotFound: the repository does not exist, or is hidden from the indexer.
	NotFound
	// NeedsCredentials: the host demands credentials, or refuses those it got.
	NeedsCredentials
	// Empty: the repository has no commits.
	Empty
	// NoBranch: a wanted branch does not exist.
	NoBranch
	// TooLarge: a limit on bytes, objects or documents was reached.
	TooLarge
	// TimedOut: the limit on time was reached.
	TimedOut
	// Refused: the policy forbids it, and the error wraps a *origin.RuleError, or an index cannot
	// hold it.
	Refused
	// Unreachable: the host or the network to it is down.
	Unreachable
	// Damaged: the objects that the host sent, or those in the mirror, are corrupt.
	Damaged
	// NoSpace: the local disk is full.
	NoSpace
	// Moved: a wanted branch, or its commit, was deleted between the look at the branches and their fetch, or the host never had
	// the commit.
	Moved
	// Killed: the machine ran out of memory, perhaps because of other work.
	Killed
)

// Permanent reports whether every later attempt will fail too, unless the repository or
// the configuration changes.
func (k Kind) Permanent() bool {
	switch k {
	case NotFound, NeedsCredentials, Empty, NoBranch, TooLarge, Refused:
		return true
	case Unknown, TimedOut, Unreachable, Damaged, NoSpace, Moved, Killed:
	}
	return false
}

// Failure is the reason that a repository could not be read, for the person who
// requested it. It holds no credentials.
type Failure struct {
	Kind Kind
	// Reason is one plain sentence without a full stop.
	Reason string
	// Err is the cause, nil if there is none.
	Err error
	// objects are those that git named as ones that the repository does not have, or that are no commits.
	objects []string
}

// Error implements error.
func (f *Failure) Error() string { return f.Reason }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

func failure(kind Kind, err error, reason string) error {
	return &Failure{Kind: kind, Reason: reason, Err: err}
}

// movedReason is why git did not follow a redirect.
const movedReason = "the host redirects git to another URL, and git reads only the one that was asked for: " +
	"index the repository by the URL that it has now"

// notShallowReason is why a host sent nothing when it was asked for the newest commits alone.
const notShallowReason = "the host cannot send commits without their history"

// hasReason reports whether a failure is for a reason, whatever git said besides.
func hasReason(err error, reason string) bool {
	f, ok := errors.AsType[*Failure](err)
	return ok && strings.HasPrefix(f.Reason, reason)
}

// message is one of git's messages, in the C locale.
type message struct {
	kind   Kind
	match  *regexp.Regexp
	reason string
}

// messages map git's messages in the C locale to kinds. The first match decides, so the
// more specific come first. They are compiled when git first fails: most commands run no git.
var messages = sync.OnceValue(func() []message {
	return []message{
		{NoSpace, regexp.MustCompile(`No space left on device|Disk quota exceeded|Out of diskspace|couldn't write '[^']*\.lock'`), "the indexer's disk is full"},
		{Moved, regexp.MustCompile(`couldn't find remote ref`), "a branch was deleted meanwhile"},
		{Moved, regexp.MustCompile(`upload-pack: not our ref`), "a branch or tag names an object that the repository does not have"},
		{Refused, regexp.MustCompile(`trying to write non-commit object`), "a branch names an object that is not a commit: delete the branch, or index the others by name"},
		{NeedsCredentials, regexp.MustCompile(`Host key verification failed`),
			"the ssh host key is not in the indexer's known_hosts"},
		{NotFound, regexp.MustCompile(`(?i)repository '?[^\n]*not found|does not appear to be a git repository|no such repository|` +
			`repository does not exist|project you were looking for could not be found|` +
			`repository '[^\n]*' does not exist|unable to find remote helper|requested URL returned error: (404|410)`),
			"the repository does not exist, or is not visible without credentials"},
		{NeedsCredentials, regexp.MustCompile(`could not read (Username|Password)|Authentication failed|Permission denied \(|` +
			`terminal prompts disabled|returned error: 40[13]|HTTP Basic: Access denied|Permission denied, please try again`),
			"the repository needs credentials that the indexer does not have"},
		{Refused, regexp.MustCompile(`does not support shallow`), notShallowReason},
		{Refused, regexp.MustCompile(`alternate disabled by http.followRedirects`), "the repository borrows objects from another one, and git reads only " +
			"the one that was asked for: repack it with git repack -a -d, and remove its file objects/info/alternates"},
		{Refused, regexp.MustCompile(`requested URL returned error: 30\d`), movedReason},
		{Refused, regexp.MustCompile(`transport '[^']*' not allowed`), "the transport is not allowed"},
		{Refused, regexp.MustCompile(`unable to access '[^':]*': Permission denied`), "the repository's configuration is in a file that may not be read, " +
			"perhaps one that it includes: allow the folder of that file, or remove the include"},
		{Refused, regexp.MustCompile(`unknown repository extension|Expected git repo version`), "the repository has a format that git, " +
			"as it is installed where Trawl runs, does not know: install a newer git there"},
		{Refused, regexp.MustCompile(`bad (numeric )?config (line|value)`), "git cannot read the repository's configuration, or a file that it includes: correct it"},
		{Unreachable, regexp.MustCompile(`not valid: is this a git repository|bad line length character|invalid server response|expected flush after`),
			"the host answers git with something else, such as a page to log in, or for maintenance"},
		{Unreachable, regexp.MustCompile(`(?i)could not resolve|connection refused|connection reset|timed out|timeout|` +
			`no route to host|network is unreachable|early EOF|RPC failed|unexpected disconnect|hung up|` +
			`returned error: (408|429|5\d\d)|failed to connect|couldn't connect|recv failure|transfer closed|` +
			`operation too slow|gnutls|SSL|certificate|response 50\d|connection closed|empty reply`), "the host cannot be reached"},
		{Refused, regexp.MustCompile(`from promisor remote|lazy fetching disabled`), "the repository is a partial clone that lacks files of the branch: index the repository " +
			"that it was cloned from, or check the branch out in it"},
		{Refused, regexp.MustCompile(`fsck error`), "the repository has a folder or commit that git itself would not write, and that an index cannot hold: " +
			"make it anew with git, and index the repository again"},
		{Damaged, regexp.MustCompile(`(?i)index-pack failed|invalid index-pack|corrupt|bad object|unable to read|` +
			`did not send all necessary objects|inflate|bad pack|missing (blob|tree|commit)|cannot obtain needed|object file .* is empty|` +
			`not a git repository|shallow file has changed|Unable to create '[^']*lock'`),
			"the repository's objects are not sound"},
	}
})

// explain turns git's error output into a Failure.
func explain(stderr string, cause error) error {
	said := sanitize(stderr)
	cause = sandbox.Explain(cause, stderr)
	if e, ok := errors.AsType[*sandbox.LimitError](cause); ok {
		return overLimit(e, said)
	}
	for _, s := range messages() {
		if s.match.MatchString(stderr) {
			f := &Failure{Kind: s.kind, Reason: withDetail(s.reason, said), Err: cause}
			for _, m := range noCommit().FindAllStringSubmatch(stderr, -1) {
				f.objects = append(f.objects, m[1])
			}
			return f
		}
	}
	return failure(Unknown, cause, withDetail("git failed", said))
}

// overLimit is the failure when a limit ended git.
func overLimit(e *sandbox.LimitError, said string) error {
	switch e.Limit {
	case sandbox.Memory:
		return failure(TooLarge, e, withDetail("git needs more memory than its limit; "+
			"if the repository is to be trusted, raise the indexer's source.git-memory", said))
	case sandbox.FileSize:
		return failure(TooLarge, e, withDetail("git wrote a larger file than its limit; "+
			"if the repository is to be trusted, raise the indexer's source.max-bytes", said))
	case sandbox.CPU:
		return failure(TooLarge, e, withDetail(fmt.Sprintf("git took more than %s of processor time", maxCPU), said))
	case sandbox.Machine:
	}
	return failure(Killed, e, withDetail("git was killed, probably because the indexer's machine ran out of memory; "+
		"give the indexer more memory, or fewer workers", said))
}

func withDetail(reason, said string) string {
	if said == "" {
		return reason
	}
	return reason + " (git: " + said + ")"
}

// maxSaid bounds how many bytes of git's message a reason repeats.
const maxSaid = 400

// askpassFailed is the start of git's message that askpass gave no answer. That
// message names a file of the indexer, so it is dropped; git's next message says that
// credentials are missing.
const askpassFailed = "unable to read askpass response"

// unknownCheck is the start of git's warning that it is older than one of the checks in harmless.
const unknownCheck = "warning: Skipping unknown msg id"

// userinfo is the part of a URL that can hold credentials.
var userinfo = lazyregexp.New(`([A-Za-z][A-Za-z0-9+.-]*://)[^/\s]*@`)

// sanitize reduces git's output to one line for people: the decisive messages, bounded,
// without control characters and credentials.
func sanitize(stderr string) string {
	var kept []string
	for line := range strings.Lines(stderr) {
		line = strings.TrimSpace(line)
		for _, prefix := range []string{"fatal: ", "error: ", "remote: ", "ERROR: "} {
			line = strings.TrimPrefix(line, prefix)
		}
		if line != "" && !strings.HasPrefix(line, askpassFailed) && !strings.HasPrefix(line, unknownCheck) {
			kept = append(kept, line)
		}
	}
	text := userinfo().ReplaceAllString(strings.Join(kept, "; "), "$1")
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
