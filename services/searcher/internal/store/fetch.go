package store

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/trawl-search/trawl/internal/searchwire"
)

const (
	// suffix of shard files; the rest of the name is the digest.
	suffix = ".trawl"
	// partial marks files that are being written.
	partial = ".partial-"
	// quarantineDir holds damaged files for inspection.
	quarantineDir = "quarantine"
	// maxQuarantined bounds how many are kept.
	maxQuarantined = 8
)

func (s *Store) path(d searchwire.Digest) string {
	return filepath.Join(s.cfg.Dir, d.String()+suffix)
}

// fetchAndOpen opens the shard from the cache, fetching it when it is not
// there. A cached file is taken by its size: its digest was verified when it
// came, and each of its blocks is when it is read.
func (s *Store) fetchAndOpen(ctx context.Context, ref Ref) (*opened, error) {
	if info, err := os.Stat(s.path(ref.Digest)); err != nil || info.Size() != ref.Size {
		if err := s.fetch(ctx, ref); err != nil {
			return nil, err
		}
	}
	sh, err := s.open(s.path(ref.Digest))
	if err == nil {
		return &opened{shard: sh, users: 1}, nil
	}
	if isDamage(err) {
		s.metrics.corrupt.Inc()
		s.quarantine(ref.Digest, err)
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	return nil, err
}

// fetch brings the object to the cache: under another name first, so that what
// has the shard's name is complete and has the shard's digest.
func (s *Store) fetch(ctx context.Context, ref Ref) (err error) {
	body, _, err := s.bucket.Get(ctx, ref.Key)
	if err != nil {
		return fmt.Errorf("fetch shard: %w", err)
	}
	defer body.Close()
	tmp, err := os.CreateTemp(s.cfg.Dir, partial+"*")
	if err != nil {
		return fmt.Errorf("make room for shard: %w", err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(tmp.Name())))
		}
	}()
	if err := errors.Join(copyVerified(tmp, body, ref), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp.Name(), s.path(ref.Digest)); err != nil {
		return fmt.Errorf("put shard in place: %w", err)
	}
	return nil
}

func copyVerified(to io.Writer, body io.Reader, ref Ref) error {
	h := sha256.New()
	// One byte more than announced is enough to see that it is too long.
	n, err := io.Copy(io.MultiWriter(to, h), io.LimitReader(body, ref.Size+1))
	if err != nil {
		return fmt.Errorf("fetch shard: %w", err)
	}
	return verify(ref, n, h)
}

func verify(ref Ref, n int64, h hash.Hash) error {
	if n != ref.Size {
		return fmt.Errorf("%w: object %s has not the announced %d bytes", ErrCorrupt, ref.Key, ref.Size)
	}
	if got := searchwire.Digest(h.Sum(nil)); got != ref.Digest {
		return fmt.Errorf("%w: object %s has digest %s", ErrCorrupt, ref.Key, got)
	}
	return nil
}

// quarantine moves the shard's file aside. If that fails it removes the file:
// it must not be opened again.
func (s *Store) quarantine(d searchwire.Digest, damage error) {
	dir := filepath.Join(s.cfg.Dir, quarantineDir)
	s.log.Error("shard is damaged; its file is put aside and fetched anew", "shard", d.String(), "folder", dir, "error", damage)
	kept, err := os.ReadDir(dir)
	if err == nil && len(kept) < maxQuarantined {
		err = os.Rename(s.path(d), filepath.Join(dir, d.String()+suffix))
	}
	if err != nil || len(kept) >= maxQuarantined {
		err = ignoreMissing(os.Remove(s.path(d)))
	}
	if err != nil {
		s.log.Error("put damaged shard aside", "shard", d.String(), "error", err)
	}
}

// sweep removes what an earlier process did not finish writing.
func (s *Store) sweep() error {
	files, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("read the shard cache: %w", err)
	}
	for _, f := range files {
		if strings.HasPrefix(f.Name(), partial) {
			if err := os.Remove(filepath.Join(s.cfg.Dir, f.Name())); err != nil {
				return fmt.Errorf("clean the shard cache: %w", err)
			}
		}
	}
	return nil
}

// Prune removes the cached files of shards that are neither wanted nor held:
// those an earlier process left. It is meant for after the first Want.
func (s *Store) Prune() error {
	files, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("read the shard cache: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	known := make(map[string]bool, len(s.entries))
	for d := range s.entries {
		known[d.String()+suffix] = true
	}
	var errs []error
	for _, f := range files {
		if strings.HasSuffix(f.Name(), suffix) && !known[f.Name()] {
			errs = append(errs, ignoreMissing(os.Remove(filepath.Join(s.cfg.Dir, f.Name()))))
		}
	}
	return errors.Join(errs...)
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
