package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestSecretsAreNeverReadable: nobody else can open a file of a secret, not even before the secret is in it.
func TestSecretsAreNeverReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	err := writeFile(path, 0o600, func(io.Writer) error {
		files, err := filepath.Glob(path + "*")
		if err != nil || len(files) != 1 {
			return fmt.Errorf("%d files: %w", len(files), err)
		}
		info, err := os.Stat(files[0])
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("the permissions are %v while it is written", info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestUnwritableFiles: an error names the file that the user named, and not the temporary one.
func TestUnwritableFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "none", "file")
	err := writeFile(path, 0o600, nil)
	if want := "making " + path + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
	path = filepath.Join(t.TempDir(), "file")
	err = writeFile(path, 0o600, func(w io.Writer) error {
		closed := w.(namelessWriter).file.Close()
		_, err := w.Write([]byte("x"))
		return errors.Join(closed, err)
	})
	if err == nil || strings.Contains(err.Error(), ".tmp") || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}
