package testrun

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Source returns the source of a test in a folder, from its arguments on; empty: there is no such test.
func Source(tb testing.TB, dir, name string) string {
	tb.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	Must(tb, err)
	for _, file := range files {
		text, err := os.ReadFile(file)
		Must(tb, err)
		if _, body, ok := strings.Cut(string(text), "\nfunc "+name+"("); ok {
			body, _, _ = strings.Cut(body, "\n}\n")
			return body
		}
	}
	return ""
}
