package shardcache

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/services/searcher/internal/disk"
	"github.com/trawl-search/trawl/services/searcher/internal/ranged"
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

func (s *Store) path(d searchapi.Digest) string {
	return filepath.Join(s.cfg.Dir, d.String()+suffix)
}

// fetchAndOpen opens the shard from the cache, fetching it when it is not there
// and the budget has room for it; otherwise, and if the disk fails, it is opened by ranges.
func (s *Store) fetchAndOpen(ctx context.Context, ref Ref) (*opened, error) {
	o, err := s.fetchWhole(ctx, ref, 0)
	if errors.Is(err, errDisk) {
		s.log.ErrorContext(ctx, "the shard is read by ranges", "shard", ref.Digest.String(), "error", err)
	}
	if errors.Is(err, errNoRoom) || errors.Is(err, errDisk) {
		return s.openRanged(ctx, ref)
	}
	return o, err
}

// fetchWhole returns a whole copy: the file of an earlier process, or a new one. A new one
// uses the given room in the budget; if that is 0, fetchWhole takes the room itself.
func (s *Store) fetchWhole(ctx context.Context, ref Ref, room int64) (*opened, error) {
	if left, there := s.takeLeft(ref); there {
		s.giveWhole(room)
		return s.openWhole(ref, left)
	}
	if room == 0 {
		room = disk.Rounded(ref.Size)
		if err := s.takeWhole(room); err != nil {
			return nil, err
		}
	}
	if err := s.fetch(ctx, ref); err != nil {
		s.giveWhole(room)
		return nil, err
	}
	return s.openWhole(ref, room)
}

// openWhole opens the file in the cache, which takes taken bytes of the budget. It does
// not verify the digest: fetch did, and each block is verified when it is read.
func (s *Store) openWhole(ref Ref, taken int64) (*opened, error) {
	sh, err := s.open(s.path(ref.Digest))
	if err == nil {
		return &opened{shard: sh, users: 1, whole: true, taken: taken}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !IsDamage(err) {
		s.left[ref.Digest] = taken
		return nil, err
	}
	s.metrics.corrupt.Inc()
	s.keepAside(s.quarantine(ref.Digest, err), taken)
	return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
}

// openRanged opens the shard for ranged reads, after reading its table of contents.
func (s *Store) openRanged(ctx context.Context, ref Ref) (*opened, error) {
	sh := s.ranges.Open(s.object(ref))
	if err := sh.Check(ctx); err != nil {
		err = errors.Join(err, sh.Close())
		if IsDamage(err) {
			s.metrics.corrupt.Inc()
			return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
		}
		return nil, err
	}
	return &opened{shard: sh, users: 1}, nil
}

func (s *Store) object(ref Ref) ranged.Object {
	return ranged.Object{Name: ref.Digest.String() + suffix, Key: ref.Key, Size: ref.Size}
}

// fetch downloads the object to the cache, under a temporary name first: a file with the
// shard's name is complete and has the shard's digest.
func (s *Store) fetch(ctx context.Context, ref Ref) (err error) {
	body, _, err := s.bucket.Get(ctx, ref.Key)
	if err != nil {
		return fmt.Errorf("fetch shard: %w", err)
	}
	defer body.Close()
	tmp, err := disk.Create(s.cfg.Dir, partial+"*")
	if err != nil {
		return onDisk(err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, ignoreMissing(os.Remove(tmp.Name())))
		}
	}()
	if err := disk.Allocate(tmp, ref.Size); err != nil {
		return errors.Join(onDisk(err), tmp.Close())
	}
	if err := errors.Join(copyVerified(diskFile{tmp}, body, ref), onDisk(tmp.Sync()), tmp.Close()); err != nil {
		return err
	}
	return onDisk(os.Rename(tmp.Name(), s.path(ref.Digest)))
}

// errDisk means that the disk failed, and not the bucket.
var errDisk = errors.New("write a shard to the disk")

func onDisk(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%w: %w", errDisk, err)
}

// diskFile is a file whose errors are those of the disk.
type diskFile struct{ *os.File }

func (f diskFile) Write(p []byte) (int, error) {
	n, err := f.File.Write(p)
	return n, onDisk(err)
}

func copyVerified(to io.Writer, body io.Reader, ref Ref) error {
	h := sha256.New()
	n, err := io.Copy(io.MultiWriter(to, h), io.LimitReader(body, ref.Size))
	if err != nil {
		return fmt.Errorf("fetch shard: %w", err)
	}
	// One byte more than announced shows that the object is too long. There is no room to
	// write it.
	more, err := io.Copy(io.Discard, io.LimitReader(body, 1))
	if err != nil {
		return fmt.Errorf("fetch shard: %w", err)
	}
	return verify(ref, n+more, h)
}

func verify(ref Ref, n int64, h hash.Hash) error {
	if n != ref.Size {
		return fmt.Errorf("%w: object %s has not the announced %d bytes", ErrCorrupt, ref.Key, ref.Size)
	}
	if got := searchapi.Digest(h.Sum(nil)); got != ref.Digest {
		return fmt.Errorf("%w: object %s has digest %s", ErrCorrupt, ref.Key, got)
	}
	return nil
}

// quarantine moves the shard's file to the quarantine folder and returns its name there.
// If that fails it removes the file, which must not be opened again.
func (s *Store) quarantine(d searchapi.Digest, damage error) (name string) {
	dir := filepath.Join(s.cfg.Dir, quarantineDir)
	s.log.Error("shard is damaged; its file goes to quarantine and is fetched again", "shard", d.String(), "folder", dir, "error", damage)
	kept, err := os.ReadDir(dir)
	if err == nil && len(kept) < maxQuarantined {
		name = d.String() + suffix
		err = os.Rename(s.path(d), filepath.Join(dir, name))
	}
	if err != nil || len(kept) >= maxQuarantined {
		name, err = "", ignoreMissing(os.Remove(s.path(d)))
	}
	if err != nil {
		s.log.Error("move damaged shard to quarantine", "shard", d.String(), "error", err)
	}
	return name
}

// sweep removes the unfinished files of an earlier process, parts of shards included. It accounts
// for the complete files as far as the budget reaches.
func (s *Store) sweep() error {
	aside, err := os.ReadDir(filepath.Join(s.cfg.Dir, quarantineDir))
	if err != nil {
		return fmt.Errorf("read the shard cache: %w", err)
	}
	for _, f := range aside {
		if err := s.sweepFile(filepath.Join(quarantineDir, f.Name()), func(n int64) { s.aside[f.Name()] = n }); err != nil {
			return err
		}
	}
	files, err := os.ReadDir(s.cfg.Dir)
	if err != nil {
		return fmt.Errorf("read the shard cache: %w", err)
	}
	for _, f := range files {
		var keep func(int64)
		if d, ok := digestOf(f.Name()); ok {
			keep = func(n int64) { s.left[d] = n }
		} else if !strings.HasPrefix(f.Name(), partial) && !strings.HasPrefix(f.Name(), ranged.Prefix) {
			continue
		}
		if err := s.sweepFile(f.Name(), keep); err != nil {
			return err
		}
	}
	return nil
}

// sweepFile keeps a file of an earlier process if keep is not nil and the budget has room
// for it, and removes it otherwise.
func (s *Store) sweepFile(name string, keep func(taken int64)) error {
	path := filepath.Join(s.cfg.Dir, name)
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("clean the shard cache: %w", err)
	}
	if taken := disk.Rounded(info.Size()); keep != nil && s.budget.Take(taken) {
		s.whole += taken
		keep(taken)
		return nil
	}
	if err := os.Remove(path); err != nil {
		return fmt.Errorf("clean the shard cache: %w", err)
	}
	return nil
}

// digestOf reads the digest of a shard from the name of its file.
func digestOf(name string) (searchapi.Digest, bool) {
	text, ok := strings.CutSuffix(name, suffix)
	raw, err := hex.DecodeString(text)
	if !ok || err != nil {
		return searchapi.Digest{}, false
	}
	d, err := searchapi.ParseDigest(raw)
	return d, err == nil
}

// Prune removes the files that an earlier process left of shards that are neither wanted
// nor held, also those in quarantine. Call it after the first Want. From then on Run
// removes quarantined files together with their shards, and retries failed removals.
func (s *Store) Prune() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pruned = true
	s.notify()
	return s.prune()
}

// removeLeft removes a file of an earlier process; callers hold mu.
func (s *Store) removeLeft(d searchapi.Digest) error {
	taken, ok := s.left[d]
	if !ok {
		return nil
	}
	if err := ignoreMissing(os.Remove(s.path(d))); err != nil {
		return err // it stays taken
	}
	delete(s.left, d)
	s.give(taken)
	return nil
}

func ignoreMissing(err error) error {
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	return err
}
