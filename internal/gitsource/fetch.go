package gitsource

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
)

// FetchConfig configures which repositories may be fetched, and bounds each fetch.
type FetchConfig struct {
	origin.Config
	CAFile string `config:"ca-file" doc:"PEM file of certificate authorities for https, in addition to the system's; empty: the system's alone"`

	// Timeout bounds one fetch, or one look at the branches, and MaxObjects is the number of
	// objects in one fetch. They are no settings.
	Timeout    time.Duration `config:"-"`
	MaxObjects uint64        `config:"-"`

	MaxBytes config.Bytes `config:"max-bytes" doc:"maximum bytes of packed objects in one repository"`
	Memory   config.Bytes `config:"git-memory" doc:"maximum memory of each process of git during a fetch; files that it maps do not count"`
}

const (
	// fetchTimeout is half of what a job has by default: it ends a fetch that hangs.
	fetchTimeout = time.Hour
	// maxObjects is twice as many objects as the largest known repositories have at one
	// commit. It refuses a pack of many tiny objects, which MaxBytes would let pass.
	maxObjects = 20_000_000
)

// SetDefaults implements config.Settings.
func (c *FetchConfig) SetDefaults() {
	c.Policy.SetDefaults()
	c.Timeout = fetchTimeout
	c.MaxBytes = 20 * config.GiB
	c.MaxObjects = maxObjects
	c.Memory = DefaultMemory
}

// Validate implements config.Settings.
func (c *FetchConfig) Validate() error {
	var check config.Check
	check.That(c.MaxBytes > 0, "max-bytes", c.MaxBytes, "more than 0")
	check.That(c.Memory >= minMemory, "git-memory", c.Memory, "64MiB or more")
	return errors.Join(c.Policy.Validate(), check.Err())
}

// Progress is the progress of a fetch, in objects.
type Progress struct{ Done, Total uint64 }

// Fetcher copies branches of remote repositories into local mirrors. It is safe for
// concurrent use, unless two calls use the same mirror.
type Fetcher struct {
	cfg     FetchConfig
	askpass string // the program that gives credentials to git
	trust   string // configuration with which git serves local folders of other users
	dir     string
}

// trustAll lets git serve an allowed folder that another user owns.
const trustAll = "[safe]\n\tdirectory = *\n"

// NewFetcher makes a fetcher, which the caller must close. Every fetch reads the
// credentials anew. A helper program for them is written below dir, which must be on a
// file system that allows execution; "" means the system's temporary folder.
func NewFetcher(dir string, cfg FetchConfig) (*Fetcher, error) {
	dir, err := os.MkdirTemp(dir, "trawl-git-")
	if err != nil {
		return nil, fmt.Errorf("create a folder for the credentials helper: %w", err)
	}
	f := &Fetcher{cfg: cfg, dir: dir, askpass: filepath.Join(dir, "askpass"), trust: filepath.Join(dir, "trust")}
	err = errors.Join(
		os.WriteFile(f.askpass, []byte(askpassScript), 0o700),
		os.WriteFile(f.trust, []byte(trustAll), 0o600))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("write git's helpers: %w", err), f.Close())
	}
	return f, nil
}

// Close removes the files that NewFetcher made.
func (f *Fetcher) Close() error {
	return os.RemoveAll(f.dir)
}

// Branches asks the remote repository for the commits of the wanted branches and tags and
// returns each once, in the order given. None, or "HEAD", means the default branch. It leaves out
// branches that do not exist, unless no wanted one does. Names are those of origin.BranchName; the commit
// of a tag is that of what it tags. It fetches no objects. Every error is a *Failure, except the cause of ctx.
func (f *Fetcher) Branches(ctx context.Context, url string, want []string) ([]docstore.Branch, error) {
	var branches []docstore.Branch
	err := f.session(ctx, url, func(ctx context.Context, s *session) error {
		refs, err := s.listRefs(ctx, want)
		if err == nil {
			branches, err = refs.choose(ctx, want)
		}
		return err
	})
	return branches, err
}

// Fetch fetches the branches of the remote repository at url into the bare repository
// at mirror, which it creates if needed. It returns the branches in the order given,
// with their present commits. It leaves out branches that name no commit of the repository, unless the first is one,
// and tags of single files, unless nothing else is left. It fetches the newest commit of each, without history. It
// replaces a mirror that is damaged, or that accumulated too many bytes. Progress may be
// nil; it is called on another goroutine, never concurrently.
//
// Every error is a *Failure, except the cause of ctx.
func (f *Fetcher) Fetch(ctx context.Context, mirror, url string, branches []docstore.Branch, progress func(Progress)) ([]docstore.Branch, error) {
	_, statErr := os.Stat(mirror)
	fetched, err := f.fetchOnce(ctx, mirror, url, branches, progress)
	if statErr != nil || !worthFresh(err) {
		return fetched, err
	}
	if err := os.RemoveAll(mirror); err != nil {
		return nil, failure(Unknown, err, "cannot remove a damaged copy of the repository")
	}
	return f.fetchOnce(ctx, mirror, url, branches, progress)
}

// worthFresh reports whether the content of an old mirror can have caused a failure.
func worthFresh(err error) bool {
	fail, ok := errors.AsType[*Failure](err)
	return ok && (fail.Kind == Damaged || fail.Kind == TooLarge || fail.Kind == Unknown)
}

// FetchCommits fetches former commits of branches into an existing mirror, without
// their history. The remote repository may have dropped them, or refuse commits that
// are not on a branch. Every error is a *Failure, except the cause of ctx.
func (f *Fetcher) FetchCommits(ctx context.Context, mirror, url string, at []docstore.Branch) error {
	return f.session(ctx, url, func(ctx context.Context, s *session) error {
		var wanted strings.Builder
		for _, b := range at {
			if !hexOID(b.Commit) {
				return failure(Damaged, nil, "the name of a commit cannot be read")
			}
			wanted.WriteString(b.Commit + "\n")
		}
		stop := s.watchSize(ctx, mirror)
		err := s.fetchRefs(ctx, mirror, s.url, wanted.String(), nil, "--depth=1")
		if stop(); err != nil {
			return err
		}
		return f.checkSize(mirror)
	})
}

// fetchOnce fetches into the mirror as it is, and removes one that became too large.
func (f *Fetcher) fetchOnce(ctx context.Context, mirror, url string, branches []docstore.Branch, progress func(Progress)) ([]docstore.Branch, error) {
	var fetched []docstore.Branch
	err := f.session(ctx, url, func(ctx context.Context, s *session) error {
		if err := s.prepareMirror(ctx, mirror, branches); err != nil {
			return err
		}
		defer s.watchSize(ctx, mirror)()
		branches, err := s.fetch(ctx, mirror, branches, progress)
		if err != nil {
			return err
		}
		if fetched, err = s.commits(ctx, mirror, branches); err != nil {
			return err
		}
		if err := s.fetchSubmodules(ctx, mirror, fetched); err != nil {
			return err
		}
		return f.checkSize(mirror)
	})
	if fail, ok := errors.AsType[*Failure](err); ok && fail.Kind == TooLarge { // during the fetch or after it
		if failed := os.RemoveAll(mirror); failed != nil {
			err = errors.Join(err, failed)
		}
	}
	return fetched, err
}

// session runs fn in a session with the remote repository, within the time limit. If the
// session ended early, the error is the reason. If git met a redirect that it does not
// follow, fn runs again for the URL with .git at its end: some hosts redirect to that one.
func (f *Fetcher) session(ctx context.Context, url string, fn func(context.Context, *session) error) error {
	err := f.sessionOnce(ctx, url, fn)
	if hasReason(err, movedReason) && !strings.HasSuffix(url, ".git") && f.sessionOnce(ctx, strings.TrimRight(url, "/")+".git", fn) == nil {
		return nil
	}
	return err
}

func (f *Fetcher) sessionOnce(ctx context.Context, url string, fn func(context.Context, *session) error) error {
	timeout := failure(TimedOut, nil, fmt.Sprintf("it took longer than the limit of %s", f.cfg.Timeout))
	limited, cancel := context.WithTimeoutCause(ctx, f.cfg.Timeout, timeout)
	defer cancel()
	limited, exceeded := context.WithCancelCause(limited)
	defer exceeded(nil)

	s, err := f.open(limited, url, exceeded)
	defer s.close()
	if err == nil {
		err = fn(limited, s)
		if refusal := s.refusal(); err != nil && refusal != nil {
			err = refusal
		}
	}
	return outcome(ctx, outcome(limited, err))
}

// outcome is the cause of ctx if that has ended, and else makes a *Failure of any error.
func outcome(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return asFailure(err)
}

// asFailure makes a *Failure of any error.
func asFailure(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*Failure](err); ok {
		return err
	}
	if rule, ok := errors.AsType[*origin.RuleError](err); ok {
		return failure(Refused, rule, rule.Error())
	}
	if errors.Is(err, errNoSpace) {
		return failure(NoSpace, err, "the indexer's disk is full")
	}
	return failure(Unknown, err, sanitize(err.Error()))
}

func tooManyBytes(limit int64) error {
	return failure(TooLarge, nil, fmt.Sprintf("it has more than the limit of %s", config.Bytes(limit)))
}
