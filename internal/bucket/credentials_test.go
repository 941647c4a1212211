package bucket_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
	"github.com/trawl-search/trawl/internal/config"
)

// TestKeysAreReadAgain: S3 keys in a file can be replaced without opening the bucket again.
func TestKeysAreReadAgain(t *testing.T) {
	cfg := buckettest.StartS3(t).Config("code")
	access, secret := string(cfg.AccessKey), string(cfg.SecretKey)
	cfg.AccessKey, cfg.SecretKey, cfg.Attempts = "", "", 1
	cfg.CredentialsFile = filepath.Join(t.TempDir(), "credentials")
	write := func(secret string) {
		t.Helper()
		next := cfg.CredentialsFile + ".next"
		text := fmt.Sprintf("[default]\naws_access_key_id = %s\naws_secret_access_key = %s\n", access, secret)
		if err := errors.Join(os.WriteFile(next, []byte(text), 0o600), os.Rename(next, cfg.CredentialsFile)); err != nil {
			t.Fatal(err)
		}
	}
	if err := cfg.Validate(); err != nil {
		t.Fatal(err)
	}
	b, err := bucket.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close(b)
	works := func(what string, want bool) {
		t.Helper()
		var err error
		for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
			if err = bucket.Reachable(t.Context(), b); (err == nil) == want {
				return
			}
		}
		t.Fatalf("%s: %v", what, err)
	}
	works("without a file", false)
	write(secret)
	works("with the keys", true)
	write("revoked")
	works("with wrong keys", false)
	write(secret)
	works("with the keys again", true)
	cfg.AccessKey, cfg.SecretKey = config.Secret(access), config.Secret(secret)
	if cfg.Validate() == nil {
		t.Error("keys and a file with keys are accepted together")
	}
}
