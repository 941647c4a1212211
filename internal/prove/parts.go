package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// lane says beside what a part runs. The parts of one lane run one after the other.
type lane int

const (
	// first is for what the other lanes need.
	first lane = iota
	// computes is for parts that keep all processors busy.
	computes
	// waits is for parts that leave processors free: they wait for processes and containers, or run one test at a time.
	waits
	// alone is for parts that need the machine for themselves, after all others.
	alone
)

// part is a target of the Makefile.
type part struct {
	target string
	lane   lane
	// limit ends the part, which has failed then: in make test, and in make test-all. It is several
	// times what the part takes on two cores, so that a slow machine does not fail. With no limit the
	// part is not in make test.
	limit, limitAll time.Duration
	// checks is true if the target prints anything but events of `go test -json`.
	checks bool
	// again is true if other parts test the same packages: gotestsum would merge both runs of a
	// package and could lose a failure.
	again bool
	// asks names a variable of the environment: without it the part does not run.
	asks string
}

// parts in the order of their lanes.
var parts = []part{
	{target: "build", lane: first, limit: 30 * time.Minute, limitAll: 30 * time.Minute, checks: true},
	{target: "processes", lane: waits, limit: 60 * time.Minute, limitAll: 60 * time.Minute},
	{target: "containers", lane: waits, limit: 60 * time.Minute, limitAll: 90 * time.Minute},
	{target: "demo-short", lane: waits, limit: 10 * time.Minute, limitAll: 10 * time.Minute, checks: true},
	{target: "mutate", lane: waits, limitAll: 120 * time.Minute, checks: true},
	{target: "e2e-k8s", lane: waits, limitAll: 200 * time.Minute, again: true, asks: "TRAWL_TEST_K8S"},
	{target: "terraform-test", lane: waits, limitAll: 200 * time.Minute, again: true, asks: "TRAWL_TEST_TERRAFORM"},
	{target: "check-sums", lane: computes, limit: time.Minute, limitAll: time.Minute, checks: true},
	{target: "lint", lane: computes, limit: 40 * time.Minute, limitAll: 40 * time.Minute, checks: true},
	{target: "unit", lane: computes, limit: 60 * time.Minute, limitAll: 90 * time.Minute},
	{target: "bench-test", lane: computes, limit: 20 * time.Minute, limitAll: 20 * time.Minute},
	{target: "race", lane: computes, limit: 40 * time.Minute, limitAll: 90 * time.Minute, again: true},
	{target: "chart-test", lane: computes, limit: 30 * time.Minute, limitAll: 30 * time.Minute},
	{target: "check-generated", lane: computes, limitAll: 30 * time.Minute, checks: true},
	{target: "tools-test", lane: computes, limitAll: 30 * time.Minute},
	{target: "fuzz", lane: computes, limitAll: 60 * time.Minute, checks: true},
	{target: "hostile", lane: alone, limitAll: 50 * time.Minute, again: true},
}

// partsOf are the parts of make test, or all that the environment asks for.
func partsOf(all bool, env func(string) string) (chosen []part) {
	for _, p := range parts {
		if all {
			p.limit = p.limitAll
		}
		if p.limit > 0 && (p.asks == "" || env(p.asks) != "") {
			chosen = append(chosen, p)
		}
	}
	return chosen
}

// errTime means that a part did not end within its limit.
var errTime = errors.New("not done within its limit")

// interrupted is how long a part that is interrupted has to remove what it made: more than the two
// minutes that tests in containers take for it at most.
const interrupted = 3 * time.Minute

// run makes the target, with its results as events. An error says why the part failed.
func (p part) run(ctx context.Context, out *stream) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, errTime)
	defer cancel()
	// Go counts the timeout of each package from its own start: one that starts in the first half of the
	// limit ends before the part does, and shows where it was.
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", p.target, "JSON=-json", "TIMEOUT="+(p.limit/2).String())
	cmd.Env = append(os.Environ(), "MAKEFLAGS=") // the jobs of a make around this one are none of its
	// The go command passes an interrupt on to its tests, and dies of anything else.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGINT) }
	cmd.WaitDelay = interrupted
	lines := out.part(p)
	cmd.Stdout, cmd.Stderr = lines, &lines.said
	err := cmd.Run()
	if cmd.Process != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what is left of it, if anything
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	case errors.Is(err, exec.ErrWaitDelay):
		err = errors.New("it left a process that holds its output")
	}
	return lines.end(err)
}
