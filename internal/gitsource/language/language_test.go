package language

import (
	"fmt"
	"strings"
	"testing"
)

func TestDetect(t *testing.T) {
	for _, c := range []struct{ path, content, want string }{
		{"a/b/main.go", "package main", "Go"},
		{"MAIN.GO", "", "Go"},
		{"x.min.js", "", "JavaScript"},
		{"go.mod", "module x", "Go Module"},
		{"Makefile", "all:", "Makefile"},
		{"dir/Dockerfile", "", "Dockerfile"},
		{"README.md", "# x", "Markdown"},
		{"a.s", "TEXT ·f(SB)", "Assembly"},
		{"tool", "#!/usr/bin/env python3\nprint()", "Python"},
		{"tool", "#!/bin/sh\n", "Shell"},
		{"tool", "no first line", ""},
		{"name.unknown-extension", "", ""},
		{"bad\xff\nname.py", "", "Python"},
		{"", "", ""},
		{"a.h", "#include <stdio.h>\nint f(void);\n", "C"},
		{"a.h", "/* class of */\n\tclass A {};\n", "C++"},
		{"a.h", "#import <Foundation/Foundation.h>\n", "Objective-C"},
		{"a.ts", "const x: number = 1;", "TypeScript"},
		{"a.m", "#import <x.h>\n@implementation A\n@end\n", "Objective-C"},
		{"a.pl", "use strict;\nmy $x = 1;\n", "Perl"},
	} {
		var d Detector
		for range 2 { // the second time from memory
			if got := d.Detect([]byte(c.path), []byte(c.content)); got != c.want {
				t.Errorf("%q %q: got %q, want %q", c.path, c.content, got, c.want)
			}
		}
	}
}

func TestDetectIsBounded(t *testing.T) {
	d := Detector{spent: budget}
	if got := d.Detect([]byte("a.pl"), []byte("use strict;")); got != "Perl" {
		t.Errorf("over budget: got %q, want the first candidate", got)
	}
	for i := range maxCached + 10 {
		d.Detect(fmt.Appendf(nil, "x.e%d", i), nil)
	}
	if len(d.extensions) > maxCached {
		t.Errorf("%d extensions are remembered, limit %d", len(d.extensions), maxCached)
	}
}

func TestByAlias(t *testing.T) {
	for alias, want := range map[string]string{"golang": "Go", "GO": "Go", "cpp": "C++", "python": "Python"} {
		if got, ok := ByAlias(alias); !ok || got != want {
			t.Errorf("%s: got %q, %v, want %q", alias, got, ok, want)
		}
	}
	for _, alias := range []string{"no such", "go,python", "go,"} { // one of several would be an answer to another question
		if got, ok := ByAlias(alias); ok {
			t.Errorf("%s: got %q", alias, got)
		}
	}
}

func BenchmarkDetect(b *testing.B) {
	content := []byte(strings.Repeat("static int function(struct object *o);\n", 400))
	for _, name := range []string{"a/b/c.go", "include/linux/x.h", "x.c", "a.s", "LICENSE", "x.pl"} {
		b.Run(name, func(b *testing.B) {
			var d Detector
			b.SetBytes(int64(len(content)))
			for b.Loop() {
				d.Detect([]byte(name), content)
			}
		})
	}
}
