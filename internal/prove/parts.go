package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
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
	// waits is for parts that mostly wait for processes and containers.
	waits
)

// part is a target of the Makefile.
type part struct {
	target string
	lane   lane
	// limit ends the part, which has failed then. It is several times what the part takes on
	// two cores, as a slow machine is no fault.
	limit time.Duration
	// checks is true if the target prints anything but events of `go test -json`.
	checks bool
}

// ofTest is what a change needs.
var ofTest = []part{
	{target: "build", lane: first, limit: 15 * time.Minute, checks: true},
	{target: "processes", lane: waits, limit: 15 * time.Minute},
	{target: "containers", lane: waits, limit: 20 * time.Minute},
	{target: "demo-short", lane: waits, limit: 5 * time.Minute, checks: true},
	{target: "lint", lane: computes, limit: 20 * time.Minute, checks: true},
	{target: "check-sums", lane: computes, limit: time.Minute, checks: true},
	{target: "unit", lane: computes, limit: 20 * time.Minute},
	{target: "bench-test", lane: computes, limit: 10 * time.Minute},
	{target: "race", lane: computes, limit: 15 * time.Minute},
	{target: "chart-test", lane: computes, limit: 15 * time.Minute},
}

// ofTestAll is what a release needs: the parts of make test in their long form, and more. Those that
// build Kubernetes and OpenTofu are among them where the environment asks for them.
func ofTestAll(env func(string) string) []part {
	parts := append(slices.Clone(ofTest),
		part{target: "check-generated", lane: computes, limit: 15 * time.Minute, checks: true},
		part{target: "tools-test", lane: computes, limit: 20 * time.Minute},
		part{target: "fuzz", lane: computes, limit: 30 * time.Minute, checks: true},
		part{target: "mutate", lane: computes, limit: 90 * time.Minute, checks: true},
	)
	if env("TRAWL_TEST_K8S") != "" {
		parts = append(parts, part{target: "e2e-k8s", lane: waits, limit: 100 * time.Minute})
	}
	if env("TRAWL_TEST_TERRAFORM") != "" {
		parts = append(parts, part{target: "terraform-test", lane: waits, limit: 100 * time.Minute})
	}
	return parts
}

// errTime means that a part did not end within its limit.
var errTime = errors.New("not done within its limit")

// run makes the target, with its results as events. An error says why the part failed.
func (p part) run(ctx context.Context, out *stream) error {
	ctx, cancel := context.WithTimeoutCause(ctx, p.limit, errTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, "make", "--no-print-directory", p.target, "JSON=-json")
	// A limit ends the whole part, not only its make.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	lines := out.part(p)
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = lines, &said
	err := cmd.Run()
	if err != nil {
		lines.failed(said.Bytes())
	}
	if ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
	}
	lines.end(err)
	return err
}
