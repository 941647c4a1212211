package pinned

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Trawl returns the absolute path of the binary of Trawl that tests run: the one that
// TRAWL_TEST_BINARY names, as in `make test`, or else bin/trawl, which it makes.
func Trawl(ctx context.Context) (string, error) {
	if path := os.Getenv("TRAWL_TEST_BINARY"); path != "" {
		if !filepath.IsAbs(path) { // each package's tests run in its own folder
			return "", fmt.Errorf("TRAWL_TEST_BINARY is %q: want an absolute path", path)
		}
		return path, nil
	}
	root, err := Repository(ctx)
	if err != nil {
		return "", err
	}
	if out, err := exec.CommandContext(ctx, "make", "-s", "-C", root, "build").CombinedOutput(); err != nil {
		return "", &BuildError{Program: "trawl", Output: string(out), Err: fmt.Errorf("make build: %w", err)}
	}
	return filepath.Join(root, "bin", "trawl"), nil
}
