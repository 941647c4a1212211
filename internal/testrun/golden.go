package testrun

import (
	"bytes"
	"flag"
	"os"
	"testing"
)

// Update reports whether tests rewrite the files that they compare with: go test was called with -update.
func Update() bool { return *update }

var update = flag.Bool("update", false, "rewrite the files that tests compare with what they get")

// Golden compares what a test got with a file. With -update it writes the file first.
func Golden(tb testing.TB, file string, got []byte) {
	tb.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			tb.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		tb.Fatal(err)
	}
	number := 1
	for !bytes.Equal(got, want) {
		line, left, _ := bytes.Cut(got, []byte("\n"))
		wanted, rest, _ := bytes.Cut(want, []byte("\n"))
		if !bytes.Equal(line, wanted) || len(left) == 0 || len(rest) == 0 {
			tb.Errorf("%s differs from line %d on:\n got %s\nwant %s\nIf the new text is right, run the test with -update.", file, number, line, wanted)
			return
		}
		got, want, number = left, rest, number+1
	}
}
