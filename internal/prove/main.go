// Command prove runs the parts of `make test`, or with -all those of `make test-all`. Each
// part is a target of the Makefile with a time limit of its own. A part that fails stops no
// other.
//
// Standard output has the events of `go test -json` of all parts, for gotestsum to count; a
// part that does not run Go tests counts as one. A table on standard error says at the end what each
// part took.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"
)

func main() {
	all := flag.Bool("all", false, "run everything that proves the project, not only what each change needs")
	flag.Parse()
	// The parts end with the run, also when its terminal goes (SIGHUP) or nobody reads the events (SIGPIPE).
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGPIPE)
	parts := partsOf(*all, os.Getenv)
	results := prove(ctx, parts, &stream{to: os.Stdout})
	stop()
	if failed := report(os.Stderr, results); failed > 0 {
		fmt.Fprintf(os.Stderr, "prove: %d of %d parts failed\n", failed, len(results))
		os.Exit(1)
	}
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
	return failed
}
