package bucket_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
)

// openFolder opens a folder for one test.
func openFolder(t *testing.T, dir string) *bucket.Folder {
	t.Helper()
	f, err := bucket.OpenFolder(dir, buckettest.Limit)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func TestFolder(t *testing.T) {
	buckettest.Run(t, func(t *testing.T) bucket.Bucket { return openFolder(t, filepath.Join(t.TempDir(), "new", "folder")) })
}

func TestFolderKeepsWhatWasPut(t *testing.T) {
	dir := t.TempDir()
	content := buckettest.Content(1, 1000)
	buckettest.Put(t, openFolder(t, dir), "a/b", content)
	buckettest.Want(t, openFolder(t, dir), "a/b", content)
}

func TestFolderLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	f := openFolder(t, dir)
	buckettest.Put(t, f, "a", []byte("x"))
	if err := f.Put(t.Context(), "b", bytes.NewReader(nil), bucket.PutOptions{Size: 5}); err == nil {
		t.Fatal("a content that is too short was taken")
	}
	left, err := os.ReadDir(filepath.Join(dir, ".tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("incomplete files: %v, error %v", left, err)
	}
}

func TestFolderClearsOldIncompleteFiles(t *testing.T) {
	dir := t.TempDir()
	openFolder(t, dir)
	stale, fresh := filepath.Join(dir, ".tmp", "stale"), filepath.Join(dir, ".tmp", "fresh")
	for _, name := range []string{stale, fresh} {
		if err := os.WriteFile(name, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	old := time.Now().Add(-25 * time.Hour)
	if err := os.Chtimes(stale, old, old); err != nil {
		t.Fatal(err)
	}
	f := openFolder(t, dir)
	if _, err := os.Stat(stale); !os.IsNotExist(err) {
		t.Errorf("the old incomplete file is still there: %v", err)
	}
	if _, err := os.Stat(fresh); err != nil {
		t.Errorf("the file that may still be in the making is gone: %v", err)
	}
	for info := range f.List(t.Context(), "") {
		t.Errorf("an incomplete file is listed: %+v", info)
	}
}

// TestFolderIsNotLeft puts symbolic links into the folder, as someone with
// access to it could: through none of them may anything be read or written.
func TestFolderIsNotLeft(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	f := openFolder(t, dir)
	if err := os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"folder": outside, "file": filepath.Join(outside, "secret")} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"folder/secret", "file"} {
		if r, _, err := f.Get(t.Context(), key); err == nil {
			r.Close()
			t.Errorf("%s was read", key)
		}
	}
	if err := f.Put(t.Context(), "folder/new", bytes.NewReader([]byte("x")), bucket.PutOptions{Size: 1}); err == nil {
		t.Error("something was written outside")
	}
	for info, err := range f.List(t.Context(), "") {
		t.Errorf("a link is listed: %+v, %v", info, err)
	}
	if entries, err := os.ReadDir(outside); err != nil || len(entries) != 1 {
		t.Errorf("outside there is %v, error %v", entries, err)
	}
}
