package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
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
	Package string
	Test    string  `json:",omitempty"`
	Elapsed float64 `json:",omitempty"`
	Output  string  `json:",omitempty"`
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
	l := &lines{out: s, part: p, start: time.Now()}
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
	if !l.part.checks && json.Unmarshal(line, &of) == nil && of.Action != "" {
		if l.part.again {
			line = bytes.Replace(line, []byte(`"Package":"`), []byte(`"Package":"`+l.part.target+"/"), 1)
		}
		l.out.write(line)
		return
	}
	e := l.test("output")
	for len(line) > longest {
		e.Output = string(line[:longest])
		l.out.send(e)
		line = line[longest:]
	}
	e.Output = string(line) + "\n"
	l.out.send(e)
}

// end passes on what is left, and reports how the part ended.
func (l *lines) end(err error) {
	if len(l.rest) > 0 {
		l.pass(l.rest)
	}
	for line := range bytes.Lines(l.said.Bytes()) {
		l.pass(bytes.TrimSuffix(line, []byte("\n")))
	}
	action := "pass"
	if err != nil {
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
}
