// Command mutate shows that the tests in docs/promises.md notice a broken promise. It
// puts one fault of mutations.txt at a time into the source and runs the one test that
// must fail. It prints a table and ends with "N killed, N lived"; its exit status is 1
// unless all were killed. A mutation was not killed if its text is not in the source
// exactly once, if it does not compile, or if its test is skipped or times out. It is not
// even tried if its test does not pass without it.
//
// It uses `go test -overlay`, so the work tree stays as it is. Run it in the root of the
// repository.
package main

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
)

//go:embed mutations.txt
var list string

func main() {
	only := flag.String("only", "", "try only the mutations whose 'PROMISE: DESCRIPTION', file, package or test matches this expression")
	parallel := flag.Int("parallel", runtime.NumCPU(), "number of mutations to try at once")
	page := flag.String("write", "", "also write the results to this page, which keeps those of the mutations that are not tried")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	lived, err := mutate(ctx, os.Stdout, *only, *parallel, *page)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
	}
	if lived > 0 || err != nil {
		os.Exit(1)
	}
}

// result is the outcome of a mutation, which may be an error.
type result struct {
	mutation

	verdict verdict
	err     error
}

func (r result) String() string {
	switch {
	case r.err != nil:
		return "lived: " + r.err.Error()
	case r.verdict == failed:
		return "killed"
	case r.verdict == notTried:
		return string(notTried)
	default:
		return "lived: the test " + string(r.verdict)
	}
}

// row returns the line of the page about a mutation.
func (r result) row() string {
	return fmt.Sprintf("| %d | %s | %#q | %#q in %#q | %s |\n", r.promise, r.what, r.file, r.test, "./"+r.pkg, r)
}

// killedRow returns the line of the page about a mutation that was killed.
func (m mutation) killedRow() string { return result{m, failed, nil}.row() }

// mutate tries the mutations that match only, and prints their results to out. It
// returns how many lived.
func mutate(ctx context.Context, out io.Writer, only string, parallel int, page string) (lived int, err error) {
	root, err := os.Getwd()
	if err != nil {
		return 0, fmt.Errorf("find the root of the repository: %w", err)
	}
	chosen, err := choose(only)
	if err != nil {
		return 0, err
	}
	fmt.Fprintf(out, "mutations: %d. First their tests run on the unchanged source.\n", len(chosen))
	unfit, err := unfitTests(ctx, root, chosen)
	if err != nil {
		return 0, err
	}
	results, err := tryAll(ctx, root, chosen, unfit, parallel)
	if err != nil {
		return 0, err
	}
	for _, r := range results {
		if r.verdict != failed {
			lived++
		}
	}
	if err := printTable(out, results); err != nil {
		return lived, fmt.Errorf("print the results: %w", err)
	}
	fmt.Fprintf(out, "%d killed, %d lived\n", len(results)-lived, lived)
	if page == "" {
		return lived, nil
	}
	return lived, writePage(page, results)
}

// choose parses the list and returns the mutations that match an expression.
func choose(only string) ([]mutation, error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("-only: %w", err)
	}
	all, err := parse(list)
	if err != nil {
		return nil, fmt.Errorf("internal/mutate/mutations.txt: %w", err)
	}
	var chosen []mutation
	for _, m := range all {
		if wanted.MatchString(fmt.Sprintf("%d: %s\n%s\n%s %s", m.promise, m.what, m.file, m.pkg, m.test)) {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		return nil, fmt.Errorf("-only: no mutation matches %q", only)
	}
	return chosen, nil
}

// tryAll tries several mutations at once, but none whose test is unfit. It reports the outcome
// of each on standard error as soon as it is known.
func tryAll(ctx context.Context, root string, all []mutation, unfit map[string]bool, parallel int) ([]result, error) {
	results := make([]result, len(all))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(parallel)
	for i, m := range all {
		group.Go(func() error {
			dir, err := os.MkdirTemp("", "mutate-")
			if err != nil {
				return fmt.Errorf("make a folder for the mutated file: %w", err)
			}
			defer os.RemoveAll(dir) //nolint:errcheck // what is left lies in a temporary folder
			verdict := notTried
			if !unfit[m.pkg+" "+m.test] {
				verdict, err = m.try(ctx, root, dir)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			results[i] = result{m, verdict, err}
			fmt.Fprintf(os.Stderr, "%d: %s: %s\n", m.promise, m.what, results[i])
			return nil
		})
	}
	return results, group.Wait()
}

func printTable(out io.Writer, results []result) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, r := range results {
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\n", r.promise, r.file, r.what, r.test, r)
	}
	return w.Flush()
}

// writePage writes the results as a page of Markdown. A mutation that was not tried keeps its row.
func writePage(path string, results []result) error {
	all, err := choose("")
	if err != nil {
		return err
	}
	before, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("read the earlier results: %w", err)
	}
	var rows strings.Builder
	killed := 0
	for _, m := range all {
		row, good := result{m, notTried, nil}.row(), m.killedRow()
		if bytes.Contains(before, []byte("\n"+good)) {
			row = good
		}
		if i := slices.IndexFunc(results, func(r result) bool { return r.killedRow() == good }); i >= 0 {
			row = results[i].row()
		}
		if rows.WriteString(row); row == good {
			killed++
		}
	}
	today := time.Now().UTC().Format(time.DateOnly)
	whole := lastWhole.FindString(string(before))
	if len(results) == len(all) {
		whole = "The last whole run was on " + today + "."
	}
	text := fmt.Sprintf(`# Mutations

What happens to the [promises](promises.md) when one line of the source is wrong: each mutation of
[mutations.txt](../internal/mutate/mutations.txt) must make the named test fail. `+"`make mutate`"+` writes this page.

%s, %s: %d killed, %d lived.
%s What has changed since then was tried by itself.

| promise | changed | file | test | result |
|---|---|---|---|---|
%s`, today, runtime.Version(), killed, len(all)-killed, whole, rows.String())
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		return fmt.Errorf("write the results: %w", err)
	}
	return nil
}

var lastWhole = regexp.MustCompile(`The last whole run was on [0-9-]+\.`)
