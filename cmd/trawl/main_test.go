package main

import (
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestNothingIsCollectedBeforeMain: all packages are initialised without a collection, which would cost each command milliseconds.
func TestNothingIsCollectedBeforeMain(t *testing.T) {
	self := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	self.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOGC=") }), "GODEBUG=gctrace=1")
	out, err := self.CombinedOutput()
	if err != nil || strings.Contains(string(out), "gc 1 @") {
		t.Errorf("%v\n%s", err, out)
	}
}
