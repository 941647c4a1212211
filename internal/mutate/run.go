package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// verdict is the outcome of a test.
type verdict string

const (
	failed    verdict = "failed"
	passed    verdict = "passed"
	skipped   verdict = "was skipped"
	timedOut  verdict = "timed out"
	noBuild   verdict = "does not compile"
	notThere  verdict = "did not run"
	notTried  verdict = "not tried: its test fails unchanged"
	testLimit         = "10m"
)

// goTest runs tests of one package with the files of overlay in place of those of the
// work tree, and returns the verdict of each. It runs them in the form that `make test`
// has, without cached results.
func goTest(ctx context.Context, root, overlay, pkg string, tests []string) (map[string]verdict, error) {
	args := []string{
		"test", "-json", "-count=1", "-vet=off", "-ldflags=-s -w", "-timeout", testLimit,
		"-run", "^(" + strings.Join(tests, "|") + ")$",
	}
	if overlay != "" {
		args = append(args, "-overlay", overlay)
	}
	args = append(args, "./"+pkg)
	if rapid, err := usesRapid(filepath.Join(root, pkg)); err != nil {
		return nil, err
	} else if rapid {
		// Otherwise rapid would write the failures that it finds into the work tree.
		args = append(args, "-rapid.nofailfile")
	}
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	// A mutation often shows as something that never happens. The test passes unchanged with this patience too, or is unfit.
	cmd.Env = append(os.Environ(), "TRAWL_TEST_ALL=", "TRAWL_TEST_PATIENCE=1m")
	// If interrupted rather than killed, the go command ends its test.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return nil, fmt.Errorf("run go test of %s: %w", pkg, err)
	}
	return judge(out, tests), nil
}

// usesRapid reports whether tests in a folder use rapid, and so accept its flags.
func usesRapid(dir string) (bool, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		return false, fmt.Errorf("find tests: %w", err)
	}
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return false, fmt.Errorf("read tests: %w", err)
		}
		if bytes.Contains(source, []byte(`"pgregory.net/rapid"`)) {
			return true, nil
		}
	}
	return false, nil
}

// judge reads the events of `go test -json`. A test that failed for another reason,
// such as a broken build or a timeout, does not count as failed.
func judge(events []byte, tests []string) map[string]verdict {
	verdicts := make(map[string]verdict)
	otherwise := notThere
	for line := range bytes.Lines(events) {
		var e struct{ Action, Test, Output string }
		if json.Unmarshal(line, &e) != nil {
			continue
		}
		switch {
		case e.Action == "build-fail":
			otherwise = noBuild
		case strings.HasPrefix(e.Output, "panic: test timed out"):
			otherwise = timedOut
		case e.Action == "fail" && otherwise != timedOut:
			verdicts[e.Test] = failed
		case e.Action == "pass":
			verdicts[e.Test] = passed
		case e.Action == "skip":
			verdicts[e.Test] = skipped
		}
	}
	for _, test := range tests {
		if verdicts[test] == "" {
			verdicts[test] = otherwise
		}
	}
	return verdicts
}

// unfitTests runs the tests of all mutations on the unchanged source, and returns those
// that do not pass, even alone: their failures say nothing about a mutation.
func unfitTests(ctx context.Context, root string, all []mutation) (map[string]bool, error) {
	tests := make(map[string][]string)
	for _, m := range all {
		if !slices.Contains(tests[m.pkg], m.test) {
			tests[m.pkg] = append(tests[m.pkg], m.test)
		}
	}
	unfit := make(map[string]bool)
	for pkg, names := range tests {
		verdicts, err := goTest(ctx, root, "", pkg, names)
		if err != nil {
			return nil, err
		}
		for _, name := range names {
			v := verdicts[name]
			if v != passed {
				again, err := goTest(ctx, root, "", pkg, []string{name})
				if err != nil {
					return nil, err
				}
				v = again[name]
			}
			if v != passed {
				fmt.Fprintf(os.Stderr, "without any mutation %s of %s %s\n", name, pkg, v)
				unfit[pkg+" "+name] = true
			}
		}
	}
	return unfit, nil
}

// try runs the test of a mutation on the mutated source. It does not change the work
// tree: the mutated file is in the folder dir, which must be empty.
func (m mutation) try(ctx context.Context, root, dir string) (verdict, error) {
	path := filepath.Join(root, filepath.FromSlash(m.file))
	source, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read the file to mutate: %w", err)
	}
	mutated, err := m.apply(string(source))
	if err != nil {
		return "", err
	}
	replacement := filepath.Join(dir, filepath.Base(path))
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {path: replacement}})
	if err != nil {
		return "", fmt.Errorf("encode the overlay: %w", err)
	}
	list := filepath.Join(dir, "overlay.json")
	if err := errors.Join(os.WriteFile(replacement, []byte(mutated), 0o600), os.WriteFile(list, overlay, 0o600)); err != nil {
		return "", fmt.Errorf("write the mutated file: %w", err)
	}
	verdicts, err := goTest(ctx, root, list, m.pkg, []string{m.test})
	return verdicts[m.test], err
}
