package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestSecretsAreNeverReadable: nobody else can open a file of a secret, not even before the secret is in it.
func TestSecretsAreNeverReadable(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	err := writeFile(path, 0o600, func(file *os.File) error {
		info, err := file.Stat()
		if err == nil && info.Mode().Perm() != 0o600 {
			t.Errorf("the permissions are %v while it is written", info.Mode())
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
