package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// stream merges the events of parts that run at the same time, a line at a time.
type stream struct {
	mu sync.Mutex
	to io.Writer
}

// event is a line of `go test -json`, as described by go doc test2json.
type event struct {
	Time    string
	Action  string
	Package string  `json:",omitempty"`
	Test    string  `json:",omitempty"`
	Elapsed float64 `json:",omitempty"`
	Output  string  `json:",omitempty"`
	// ImportPath is in events of a build, in place of Package.
	ImportPath string `json:",omitempty"`
}

func (s *stream) write(line []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = fmt.Fprintf(s.to, "%s\n", line) // without a reader the run ends
}

func (s *stream) send(e event) {
	e.Time = time.Now().Format(time.RFC3339Nano)
	if line, err := json.Marshal(e); err == nil { // which texts and seconds do not prevent
		s.write(line)
	}
}

// part returns what takes the output of a part, until its end.
func (s *stream) part(p part) *lines {
	l := &lines{out: s, part: p, start: time.Now(), running: map[[2]string]bool{}}
	s.send(l.event("start"))
	if p.checks {
		s.send(l.test("run"))
	}
	return l
}

// lines passes on the lines of one part: events as they are, all others as output of the package
// that stands for the part, or of its test if it is one. It is for one goroutine.
type lines struct {
	out   *stream
	part  part
	start time.Time
	rest  []byte       // of an unfinished line
	said  bytes.Buffer // on standard error: it is passed on at the end
	// running are the tests that have not ended, as package and name; begun is how many began, failed how many tests and packages failed.
	running       map[[2]string]bool
	begun, failed int
}

// event is one of the package that stands for the part.
func (l *lines) event(action string) event {
	return event{Action: action, Package: "make/" + l.part.target}
}

// test is an event of the test that a part without Go tests is.
func (l *lines) test(action string) event {
	e := l.event(action)
	if l.part.checks {
		e.Test = l.part.target
	}
	return e
}

func (l *lines) Write(b []byte) (int, error) {
	size := len(b)
	for {
		line, rest, whole := bytes.Cut(b, []byte("\n"))
		l.rest = append(l.rest, line...)
		if !whole {
			return size, nil
		}
		l.pass(l.rest)
		l.rest, b = l.rest[:0], rest
	}
}

// longest is the most bytes of output in one event: gotestsum gives up at lines of 64 KiB, and JSON
// writes up to six bytes for one.
const longest = 8 << 10

func (l *lines) pass(line []byte) {
	var of event
	if l.part.checks || json.Unmarshal(line, &of) != nil || of.Action == "" {
		l.output(l.test("output"), string(line)+"\n")
		return
	}
	l.follow(of)
	if l.part.again {
		line = bytes.Replace(line, []byte(`"Package":"`), []byte(`"Package":"`+l.part.target+"/"), 1)
		if of.Package != "" {
			of.Package = l.part.target + "/" + of.Package
		}
	}
	if len(line) > longest && of.Output != "" {
		l.output(of, of.Output)
		return
	}
	l.out.write(line)
}

// output sends an event with a text, in several events if it is long.
func (l *lines) output(e event, text string) {
	for piece := range slices.Chunk([]byte(text), longest) {
		e.Output = string(piece)
		l.out.send(e)
	}
}

// follow notes which tests run, and which have failed.
func (l *lines) follow(e event) {
	test := [2]string{e.Package, e.Test}
	switch e.Action {
	case "run":
		l.running[test] = true
		l.begun++
	case "fail":
		l.failed++
		delete(l.running, test)
	case "pass", "skip":
		delete(l.running, test)
	}
}

// outcome is the error of a part, whose target ended with an error or none. A program that ends well
// although its tests did not is an error too.
func (l *lines) outcome(err error) error {
	switch {
	case err != nil:
		return err
	case l.failed > 0:
		return errors.New("tests failed, although their program ended well")
	case l.begun == 0 && !l.part.checks:
		return errors.New("no test ran: does what it names exist?")
	}
	for test := range l.running {
		return fmt.Errorf("%s in %s did not end, although its program ended well", test[1], test[0])
	}
	return nil
}

// end passes on what is left, and reports how the part ended: err is that of its target.
func (l *lines) end(err error) error {
	if len(l.rest) > 0 {
		l.pass(l.rest)
	}
	for line := range bytes.Lines(l.said.Bytes()) {
		l.pass(bytes.TrimSuffix(line, []byte("\n")))
	}
	action := "pass"
	if err = l.outcome(err); err != nil {
		action = "fail"
		l.pass([]byte(err.Error()))
	}
	ends := []event{l.event(action)}
	if l.part.checks {
		ends = []event{l.test(action), l.event(action)}
	}
	for _, e := range ends {
		e.Elapsed = time.Since(l.start).Seconds()
		l.out.send(e)
	}
	return err
}
