package main

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// events is the output of `go test -json` for a package with one test of each
// outcome, one that does not build, and one without tests.
const events = `{"Action":"start","Package":"a"}
{"Action":"run","Package":"a","Test":"TestGood"}
{"Action":"pass","Package":"a","Test":"TestGood","Elapsed":0}
{"Action":"output","Package":"a","Test":"TestSkip","Output":"    a_test.go:7: needs a printer\n"}
{"Action":"output","Package":"a","Test":"TestSkip","Output":"--- SKIP: TestSkip (0.00s)\n"}
{"Action":"skip","Package":"a","Test":"TestSkip","Elapsed":0}
{"Action":"output","Package":"a","Test":"TestBad","Output":"    a_test.go:9: it burns\n"}
{"Action":"fail","Package":"a","Test":"TestBad","Elapsed":0}
{"Action":"fail","Package":"a","Elapsed":0.1}
{"ImportPath":"b","Action":"build-output","Output":"b.go:1: no such thing\n"}
{"Action":"fail","Package":"b","Elapsed":0}
{"Action":"skip","Package":"c","Elapsed":0}
`

func TestCountsEvents(t *testing.T) {
	var out bytes.Buffer
	c := newCounter(&out)
	if err := readLines(strings.NewReader(events), c.line); err != nil {
		t.Fatal(err)
	}
	got := c.finish("tests", nil)
	if got.String() != "1 passed, 2 failed, 1 skipped" {
		t.Errorf("counted %s", got.String())
	}
	if len(got.skips) != 1 || got.skips[0] != "a TestSkip: needs a printer" {
		t.Errorf("skips = %q", got.skips)
	}
	for _, want := range []string{"it burns", "no such thing"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the output of the failure %q is not shown:\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "needs a printer") {
		t.Error("output of a test that did not fail is shown")
	}
}

func TestStepsAndLastLine(t *testing.T) {
	for _, tt := range []struct {
		name  string
		steps []string
		last  string
		ok    bool
	}{
		{"all pass", []string{"one=true", "two=echo fine"}, "2 passed, 0 failed, 0 skipped", true},
		{"a failure does not stop the rest", []string{"one=exit 3", "two=true"}, "1 passed, 1 failed, 0 skipped", false},
		{"a skip says why", []string{"one=echo 'skipped: no compiler'"}, "0 passed, 0 failed, 1 skipped", true},
		{"a crash after events", []string{`one=echo '{"Action":"pass","Package":"a","Test":"T"}'; exit 2`}, "1 passed, 1 failed, 0 skipped", false},
		{"a command that is not there", []string{"one=/nonexistent/command"}, "0 passed, 1 failed, 0 skipped", false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var out bytes.Buffer
			ok, err := runAll(context.Background(), &out, tt.steps)
			if err != nil || ok != tt.ok {
				t.Errorf("runAll = %v, %v", ok, err)
			}
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if lines[len(lines)-1] != tt.last {
				t.Errorf("last line is %q, want %q", lines[len(lines)-1], tt.last)
			}
		})
	}
	if _, err := runAll(context.Background(), &bytes.Buffer{}, []string{"no command"}); err == nil {
		t.Error("a step without a command is not refused")
	}
}
