package bucket_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/bucket"
	"github.com/trawl-search/trawl/internal/bucket/buckettest"
	"github.com/trawl-search/trawl/internal/testrun"
)

// TestKeysAreReadAgain: S3 keys in a file can be replaced without opening the bucket again.
func TestKeysAreReadAgain(t *testing.T) {
	cfg := buckettest.StartS3(t).Config("code")
	cfg.Attempts = 1
	cfg.CredentialsFile = filepath.Join(t.TempDir(), "credentials")
	write := func(secret string) {
		t.Helper()
		next := cfg.CredentialsFile + ".next"
		if err := errors.Join(os.WriteFile(next, buckettest.CredentialsText(buckettest.AccessKey, secret), 0o600), os.Rename(next, cfg.CredentialsFile)); err != nil {
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
		testrun.Until(t, what, func() bool { return (bucket.Reachable(t.Context(), b) == nil) == want })
	}
	works("without a file", false)
	write(buckettest.SecretKey)
	works("with the keys", true)
	write("revoked")
	works("with wrong keys", false)
	write(buckettest.SecretKey)
	works("with the keys again", true)
}

// TestKeysOfTheEnvironment: without a file, the variables of AWS's tools are used.
func TestKeysOfTheEnvironment(t *testing.T) {
	cfg := buckettest.StartS3(t).Config("code")
	cfg.CredentialsFile = ""
	t.Setenv("AWS_ACCESS_KEY_ID", buckettest.AccessKey)
	for secret, want := range map[string]bool{"revoked": false, buckettest.SecretKey: true} {
		t.Setenv("AWS_SECRET_ACCESS_KEY", secret)
		if err := bucket.Reachable(t.Context(), open(t, cfg)); (err == nil) != want {
			t.Errorf("with the key %s: %v", secret, err)
		}
	}
}

// TestCredentialsFilesThatCannotBeUsed: the error names the file and what it wants, and shows nothing of
// what is in it.
func TestCredentialsFilesThatCannotBeUsed(t *testing.T) {
	cfg := buckettest.StartS3(t).Config("code")
	cfg.Attempts = 1
	for _, text := range []string{
		"", "hunter2\n", "[default]\naws_secret_access_key  hunter2\n", "[other]\naws_access_key_id = hunter2\n",
		"[default]\naws_secret_access_key = hunter2\n", "[default\nhunter2", "\x00hunter2",
	} {
		cfg.CredentialsFile = filepath.Join(t.TempDir(), "credentials")
		if err := os.WriteFile(cfg.CredentialsFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		err := bucket.Reachable(t.Context(), open(t, cfg))
		if err == nil || !strings.Contains(err.Error(), cfg.CredentialsFile) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v", text, err)
		}
	}
}
