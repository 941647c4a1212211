// Command runall runs the steps that prove the project, one after the other,
// and counts what ran. Each argument is a step, name=command; the command runs
// under sh. Where it prints the events of `go test -json` every test counts;
// any other step is one check, skipped when it prints a line "skipped: reason".
//
// A failed step does not stop the later ones. The last line printed is
// "N passed, N failed, N skipped", and the exit status is 1 when any failed.
package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	ok, err := runAll(ctx, os.Stdout, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "runall:", err)
	}
	if !ok || err != nil {
		os.Exit(1)
	}
}

// runAll runs the steps and prints the account; it reports whether all passed.
func runAll(ctx context.Context, out io.Writer, args []string) (bool, error) {
	var total tally
	var lines []string
	for _, arg := range args {
		name, command, ok := strings.Cut(arg, "=")
		if !ok {
			return false, fmt.Errorf("step %q is not name=command", arg)
		}
		fmt.Fprintf(out, "== %s\n", name)
		began := time.Now()
		t := runStep(ctx, out, name, command)
		lines = append(lines, fmt.Sprintf("%-16s %s in %s", name, t.String(), time.Since(began).Round(time.Second)))
		total.add(t)
	}
	printAccount(out, lines, total)
	return total.failed == 0, nil
}

func printAccount(out io.Writer, lines []string, total tally) {
	fmt.Fprintln(out, "\n== what ran")
	for _, line := range lines {
		fmt.Fprintln(out, line)
	}
	for _, s := range total.skips {
		fmt.Fprintln(out, "skipped:", s)
	}
	for _, f := range total.failures {
		fmt.Fprintln(out, "failed:", f)
	}
	fmt.Fprintf(out, "%d packages with tests\n", total.packages)
	fmt.Fprintln(out, total.String())
}

// runStep runs one command and counts what it did.
func runStep(ctx context.Context, out io.Writer, name, command string) tally {
	out = &lockedWriter{w: out} // the command's error output comes in between
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Stderr = out
	pipe, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return tally{failed: 1, failures: []string{name + ": " + err.Error()}}
	}
	c := newCounter(out)
	err = errors.Join(readLines(pipe, c.line), cmd.Wait())
	return c.finish(name, err)
}

// lockedWriter lets two goroutines write.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// readLines calls line for each line without its end. Test output may hold
// lines of any length, so this is not a Scanner.
func readLines(r io.Reader, line func(string)) error {
	br := bufio.NewReader(r)
	for {
		s, err := br.ReadString('\n')
		if s != "" {
			line(strings.TrimSuffix(s, "\n"))
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("reading the output: %w", err)
		}
	}
}
