// Command prove runs the parts of `make test`, or with TRAWL_TEST_ALL those of `make test-all`.
// Each part is a target of the Makefile with a time limit of its own. A part that fails stops no
// other.
//
// Its arguments are a command that gets the events of `go test -json` of all parts, for gotestsum to
// count; a part that does not run Go tests counts as one. A table on standard error says at the end
// what each part took, before the command prints its summary.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	// The parts end with the run, also when its terminal goes (SIGHUP) or nobody reads the table (SIGPIPE).
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	context.AfterFunc(ctx, stop) // a second interrupt ends the run at once
	err := count(ctx, partsOf(os.Getenv("TRAWL_TEST_ALL") != "", os.Getenv), os.Args[1:])
	stop()
	if err != nil && !errors.Is(err, errParts) { // the table names the parts that failed
		fmt.Fprintln(os.Stderr, "prove:", err)
	}
	if err != nil {
		os.Exit(1)
	}
}

// errParts means that parts failed.
var errParts = errors.New("parts failed")

// count runs the parts, and a command that gets their events. If the command ends, so do the parts.
func count(ctx context.Context, parts []part, args []string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	counter := exec.CommandContext(context.WithoutCancel(ctx), args[0], args[1:]...)
	counter.Stdout, counter.Stderr = os.Stdout, os.Stderr
	counter.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // an interrupt is for the parts: the command counts to the end
	events, err := counter.StdinPipe()
	if err == nil {
		err = counter.Start()
	}
	if err != nil {
		return fmt.Errorf("start what counts the tests: %w", err)
	}
	ended := make(chan error, 1)
	go func() {
		ended <- counter.Wait()
		cancel()
	}()
	go func() {
		for parent := os.Getppid(); os.Getppid() == parent; time.Sleep(time.Second) {
		}
		cancel()
	}()
	done := make(chan struct{})
	defer close(done)
	// If nobody takes what the command prints, it takes no events. This must not keep parts that should end.
	context.AfterFunc(ctx, func() {
		select {
		case <-done:
		case <-time.After(interrupted + time.Minute):
			_ = syscall.Kill(-counter.Process.Pid, syscall.SIGKILL)
			time.Sleep(time.Minute)
			os.Exit(1) // nobody takes the table either
		}
	})
	results := prove(ctx, parts, &stream{to: events})
	if report(os.Stderr, results) > 0 {
		err = errParts
	}
	_ = events.Close() // the end of the command counts
	return errors.Join(err, <-ended)
}

// result is how long a part took, and why it failed.
type result struct {
	part

	took time.Duration
	err  error
}

// prove runs all parts, each as its lane says, and returns their results in the same order.
func prove(ctx context.Context, parts []part, out *stream) []result {
	results := make([]result, len(parts))
	run := func(l lane) {
		for i, p := range parts {
			if p.lane == l {
				start := time.Now()
				err := p.run(ctx, out)
				results[i] = result{p, time.Since(start), err}
			}
		}
	}
	run(first)
	var both sync.WaitGroup
	both.Go(func() { run(computes) })
	both.Go(func() { run(waits) })
	both.Wait()
	run(alone)
	return results
}

// report prints what each part took, and returns how many failed.
func report(to io.Writer, results []result) (failed int) {
	w := tabwriter.NewWriter(to, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "seconds\tlimit\tpart\t")
	for _, r := range results {
		outcome := ""
		if r.err != nil {
			outcome, failed = "  FAILED: "+r.err.Error(), failed+1
		}
		fmt.Fprintf(w, "%.0f\t%.0f\t%s\t%s\n", r.took.Seconds(), r.limit.Seconds(), r.target, outcome)
	}
	_ = w.Flush() // a table that nobody can read fails no test
	if failed > 0 {
		fmt.Fprintf(to, "prove: %d of %d parts failed\n", failed, len(results))
	}
	return failed
}
