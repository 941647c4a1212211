package charttest

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// scratch is removed at the end.
var scratch string

// binary is the path of trawl: what TRAWL_TEST_BINARY names, or bin/trawl, which it makes.
var binary = sync.OnceValues(func() (string, error) {
	if path := os.Getenv("TRAWL_TEST_BINARY"); path != "" {
		return path, nil
	}
	if said, err := exec.Command("make", "-s", "-C", root, "build").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build trawl: %w\n%s", err, said)
	}
	return filepath.Join(root, "bin", "trawl"), nil
})

// tool builds a program of the module tools and returns its path. As that takes minutes, only
// make test-all and make charts do. Tests run it from there and not with go tool, which would mix
// its own messages, such as the modules that it downloads, with the program's.
func tool(t *testing.T, name string) string {
	t.Helper()
	if os.Getenv("TRAWL_TEST_ALL") == "" && !*update {
		t.Skip("not run: make test-all runs it (TRAWL_TEST_ALL=1)")
	}
	path, err := exec.CommandContext(t.Context(), "go", "tool", "-modfile="+root+"/tools/go.mod", "-n", name).Output()
	if err != nil {
		t.Fatalf("build %s: %v", name, err)
	}
	return strings.TrimSpace(string(path))
}

// talkative stands for the Go command of a machine with an empty module cache:
// it always names a module that it downloads, on standard error.
const talkative = `#!/bin/sh
echo "go: downloading example.org/anything v1.2.3" >&2
exec %q "$@"
`

// talkativeGo makes all tests use a talkative Go command.
func talkativeGo() error {
	program, err := exec.LookPath("go")
	if err != nil {
		return err
	}
	dir := filepath.Join(scratch, "bin")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "go"), fmt.Appendf(nil, talkative, program), 0o755); err != nil {
		return err
	}
	return os.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
}

// runTests runs the tests with a scratch folder and a talkative Go command.
func runTests(m *testing.M) (status int, err error) {
	if scratch, err = os.MkdirTemp("", "trawl-chart-"); err != nil {
		return 1, err
	}
	defer os.RemoveAll(scratch)
	if err := talkativeGo(); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func TestMain(m *testing.M) {
	flag.Parse()
	status, err := runTests(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(status)
}
