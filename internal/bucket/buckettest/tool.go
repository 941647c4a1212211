package buckettest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

const (
	// serversModule is where the versions of the servers are pinned, below the
	// repository's root.
	serversModule = "tools/servers"
	// versitygw is the S3 server's package.
	versitygw = "github.com/versity/versitygw/cmd/versitygw"
	// buildTime bounds the building of a server: minutes, where nothing is in
	// Go's cache.
	buildTime = 15 * time.Minute
)

// serverBinary builds the S3 server of the pinned version, unless that was done
// before: binaries are kept in the user's cache folder, by the versions of all
// that goes into them. Where the modules cannot be had for want of a network
// the test is skipped, but never in CI.
func serverBinary(tb testing.TB) string {
	tb.Helper()
	path, output, err := build(tb.Context())
	if err == nil {
		return path
	}
	if offline(output) && os.Getenv("CI") != "true" {
		tb.Skipf("NOT TESTED on S3: the server's modules cannot be downloaded: %v\n%s", err, output)
	}
	tb.Fatalf("build the S3 server: %v\n%s", err, output)
	return ""
}

// build returns the path of the binary, or what the Go command said.
func build(ctx context.Context) (path, output string, err error) {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	dir, err := moduleDir(ctx)
	if err != nil {
		return "", "", err
	}
	path, err = cachePath(dir)
	if err != nil {
		return "", "", err
	}
	unlock, err := lock(path + ".lock")
	if err != nil {
		return "", "", err
	}
	defer unlock()
	if _, err := os.Stat(path); err == nil {
		return path, "", nil
	}
	output, err = compile(ctx, dir, path)
	return path, output, err
}

// compile builds into a file beside the path and renames it, so that a binary
// that is there is complete.
func compile(ctx context.Context, dir, path string) (output string, err error) {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", path+".new", versitygw)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	said, err := cmd.CombinedOutput()
	if err != nil {
		return string(said), err
	}
	return "", os.Rename(path+".new", path)
}

// moduleDir finds the pinning module from wherever in the repository the test
// runs.
func moduleDir(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	return filepath.Join(filepath.Dir(string(bytes.TrimSpace(out))), serversModule), nil
}

// cachePath names the binary by the content of go.mod and go.sum.
func cachePath(dir string) (string, error) {
	hash := sha256.New()
	for _, name := range []string{"go.mod", "go.sum"} {
		content, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return "", fmt.Errorf("read the servers' versions: %w", err)
		}
		hash.Write(content)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	cache = filepath.Join(cache, "trawl", "tools")
	return filepath.Join(cache, "versitygw-"+hex.EncodeToString(hash.Sum(nil)[:8])), os.MkdirAll(cache, 0o755)
}

// lock makes tests of several packages build one after the other.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}

// offline tells from the Go command's words that it had no network.
func offline(output string) bool {
	for _, sign := range []string{"dial tcp", "no such host", "i/o timeout", "network is unreachable", "connection refused", "module lookup disabled"} {
		if strings.Contains(output, sign) {
			return true
		}
	}
	return false
}
