package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// tally counts what ran.
type tally struct {
	passed, failed, skipped, packages int
	skips, failures                   []string
}

func (t *tally) add(o tally) {
	t.passed += o.passed
	t.failed += o.failed
	t.skipped += o.skipped
	t.packages += o.packages
	t.skips = append(t.skips, o.skips...)
	t.failures = append(t.failures, o.failures...)
}

func (t *tally) String() string {
	return fmt.Sprintf("%d passed, %d failed, %d skipped", t.passed, t.failed, t.skipped)
}

// event is a line of `go test -json`; see go doc test2json.
type event struct {
	Action     string
	Package    string
	ImportPath string
	Test       string
	Output     string
	Elapsed    float64
}

// counter reads the output of one step.
type counter struct {
	out    io.Writer
	tally  tally
	events bool
	// Output of running tests and packages, printed when they fail only.
	output map[string][]string
	// Failed tests by package: a package that fails without one is counted itself.
	failedTests map[string]int
	tests       map[string]int
}

func newCounter(out io.Writer) *counter {
	return &counter{out: out, output: map[string][]string{}, failedTests: map[string]int{}, tests: map[string]int{}}
}

// line takes one line of output.
func (c *counter) line(s string) {
	var e event
	if strings.HasPrefix(s, "{") && json.Unmarshal([]byte(s), &e) == nil && e.Action != "" {
		c.events = true
		c.event(e)
		return
	}
	if reason, ok := strings.CutPrefix(s, "skipped: "); ok {
		c.tally.skipped++
		c.tally.skips = append(c.tally.skips, reason)
	}
	fmt.Fprintln(c.out, s)
}

func (c *counter) event(e event) {
	key := e.Package + " " + e.Test
	switch e.Action {
	case "build-output":
		fmt.Fprint(c.out, e.Output)
	case "output":
		c.output[key] = append(c.output[key], e.Output)
	case "pass", "fail", "skip":
		if e.Test == "" {
			c.packageEnd(e, c.output[key])
		} else {
			c.testEnd(e, key, c.output[key])
		}
		delete(c.output, key)
	}
}

func (c *counter) testEnd(e event, key string, output []string) {
	c.tests[e.Package]++
	switch e.Action {
	case "pass":
		c.tally.passed++
	case "skip":
		c.tally.skipped++
		c.tally.skips = append(c.tally.skips, key+": "+skipReason(output))
	case "fail":
		c.failedTests[e.Package]++
		c.tally.failed++
		c.tally.failures = append(c.tally.failures, key)
		c.print(output)
	}
}

func (c *counter) packageEnd(e event, output []string) {
	if e.Action == "skip" || (e.Action == "pass" && c.tests[e.Package] == 0) {
		return // no test files
	}
	c.tally.packages++
	fmt.Fprintf(c.out, "%-4s %s %d tests %.1fs\n", e.Action, e.Package, c.tests[e.Package], e.Elapsed)
	if e.Action != "fail" {
		return
	}
	c.print(output)
	if c.failedTests[e.Package] == 0 {
		// It did not build, crashed or timed out.
		c.tally.failed++
		c.tally.failures = append(c.tally.failures, e.Package)
		c.printRunning(e.Package)
	}
}

// printRunning prints what tests of a crashed package had said.
func (c *counter) printRunning(pkg string) {
	for key, output := range c.output {
		if strings.HasPrefix(key, pkg+" ") {
			c.print(output)
		}
	}
}

func (c *counter) print(output []string) {
	for _, s := range output {
		fmt.Fprint(c.out, s)
	}
}

// finish closes the account of a step whose command ended with err.
func (c *counter) finish(name string, err error) tally {
	switch {
	case err != nil && (!c.events || c.tally.failed == 0):
		c.tally.failed++
		c.tally.failures = append(c.tally.failures, name+": "+err.Error())
	case !c.events && c.tally.skipped == 0:
		c.tally.passed++
	}
	return c.tally
}

// skipReason is what a test said when it skipped itself: the last line that is
// not test2json's own, without the place in the source.
func skipReason(output []string) string {
	reason := "no reason given"
	for _, s := range output {
		s = strings.TrimSpace(s)
		if strings.HasPrefix(s, "=== ") || strings.HasPrefix(s, "--- ") || s == "" {
			continue
		}
		if _, rest, ok := strings.Cut(s, ".go:"); ok {
			if _, text, ok := strings.Cut(rest, ": "); ok {
				s = text
			}
		}
		reason = s
	}
	return reason
}
