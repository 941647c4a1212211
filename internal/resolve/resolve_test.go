package resolve_test

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/symbols"
	"github.com/trawl-search/trawl/internal/resolve"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// tree is an index of a few files, which the oracle searches.
type tree struct {
	t      *testing.T
	corpus *indextest.Corpus
	oracle *indextest.Oracle
}

// Definitions implements resolve.Index.
func (x *tree) Definitions(_ context.Context, name, within string) (found []resolve.Definition, err error) {
	q, _, err := searchapi.ParseAnswer(searchapi.DefinitionsOf(name, within), 2)
	if err != nil {
		x.t.Errorf("definitions of %s within %s: %v", name, within, err)
		return nil, err
	}
	results, err := x.oracle.Eval(q)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		repo, d := x.document(r.Repo, r.Path)
		all := symbols.For(d.Language).Append(nil, d.Content)
		for _, in := range r.Content {
			for _, s := range all {
				if int(s.Start) != in.Start {
					continue
				}
				begin := bytes.LastIndexByte(d.Content[:s.Start], '\n') + 1
				found = append(found, resolve.Definition{
					Repo: repo, Path: d.Path, Language: d.Language, Kind: s.Kind, Scope: string(d.Content[s.Scope.Start:s.Scope.End]),
					Text: d.Content[begin:], At: int(s.Start) - begin, Number: uint32(1 + bytes.Count(d.Content[:s.Start], []byte("\n"))),
				})
			}
		}
	}
	return found, nil
}

func (x *tree) document(repo, path string) (string, *indextest.Document) {
	for i := range x.corpus.Repos {
		for j := range x.corpus.Repos[i].Documents {
			if d := &x.corpus.Repos[i].Documents[j]; x.corpus.Repos[i].Name == repo && d.Path == path {
				return repo, d
			}
		}
	}
	x.t.Fatalf("no file %s in %s", path, repo)
	return "", nil
}

var languages = map[string]string{"go": "Go", "py": "Python", "ts": "TypeScript", "js": "JavaScript", "java": "Java", "rs": "Rust", "c": "C", "h": "C", "cc": "C++", "rb": "Ruby", "php": "PHP", "txt": "Text", "kt": "Kotlin"}

// newTree reads files whose names begin with that of their repo, up to a colon. The place is a name between ‹ and ›. The line with the right
// definition has the word HERE, or none has.
func newTree(t *testing.T, text string) (x *tree, place resolve.Place, want string) {
	t.Helper()
	x = &tree{t: t, corpus: &indextest.Corpus{Name: "resolve"}}
	repos := map[string]int{}
	for part := range strings.SplitSeq(text, "\n-- ") {
		name, data, ok := strings.Cut(part, " --\n")
		if !ok {
			continue
		}
		repo, path, ok := strings.Cut(name, ":")
		if !ok {
			repo, path = "example.com/a/b", name
		}
		if _, ok := repos[repo]; !ok {
			repos[repo] = len(x.corpus.Repos)
			x.corpus.Repos = append(x.corpus.Repos, indextest.Repo{Name: repo, Branches: []string{"main"}})
		}
		language := languages[path[strings.LastIndexByte(path, '.')+1:]]
		before, rest, here := strings.Cut(data+"\n", "‹")
		name, after, _ := strings.Cut(rest, "›")
		if here {
			place = resolve.Place{Repo: repo, Path: path, Language: language, Text: []byte(before + name + after), Name: name, Offset: len(before)}
		}
		content := []byte(before + name + after)
		if at := bytes.Index(content, []byte("HERE")); at >= 0 {
			want = fmt.Sprintf("%s:%s:%d", repo, path, 1+bytes.Count(content[:at], []byte("\n")))
		}
		r := &x.corpus.Repos[repos[repo]]
		r.Documents = append(r.Documents, indextest.Document{Path: path, Content: content, Branches: []string{"main"}, Language: language})
	}
	x.oracle = indextest.NewOracle(x.corpus)
	return x, place, want
}

func TestTheDefinitionThatIsMeantComesFirst(t *testing.T) {
	for name, text := range places {
		t.Run(name, func(t *testing.T) {
			x, place, want := newTree(t, text)
			found, likely, err := resolve.Resolve(t.Context(), x, place, 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range found {
				got = append(got, fmt.Sprintf("%s:%s:%d", d.Repo, d.Path, d.Number))
			}
			if len(got) == 0 || got[0] != want {
				t.Fatalf("%s at %s:%s: got %v, want first %s", place.Name, place.Repo, place.Path, got, want)
			}
			if !likely && !strings.HasPrefix(name, "unsure") {
				t.Errorf("the first of %v is not said to be likely", got)
			}
		})
	}
}

// Files in other folders and repos that define everything too.
const elsewhere = `
-- z/z.go --
package z
func Close() {}
func New() {}
type Server struct { Name string }
func (s *Server) Close() {}
-- example.com/other:x/x.go --
package x
func Close() {}
func New() {}
func (t *T) Close() {}
`

var places = map[string]string{
	"same file": elsewhere + `
-- b/b.go --
package b
func Close() {}
-- a/a.go --
package a
func f() { ‹Close›() }
func Close() {} // HERE
`,
	"same folder": elsewhere + `
-- a/a.go --
package a
func f() { ‹Close›() }
-- a/b.go --
package a
func (x X) Close() {}
-- a/c.go --
package a
func Close() {} // HERE
`,
	"imported": elsewhere + `
-- a/a.go --
package a
import "example.com/a/b/net/http"
func f() { http.‹Close›() }
func Close() {}
-- net/http/x.go --
package http
func Close() {} // HERE
-- http/x.go --
package http
func Close() {}
`,
	"imported by another name": elsewhere + `
-- a/a.go --
package a
import (
	"fmt"
	h "example.com/a/b/net/http" // named
)
func f() { h.‹Close›() }
-- net/http/x.go --
package http
func Close() {} // HERE
`,
	"imported from another repo": elsewhere + `
-- a/a.go --
package a
import "example.com/lib/v2/deep"
func f() { deep.‹Close›() }
-- example.com/lib:deep/x.go --
package deep
func Close() {} // HERE
`,
	"method of a parameter": elsewhere + `
-- a/a.go --
package a
func f(x int, conn *Conn) error { return conn.‹Close›() }
func (f *File) Close() error {}
func (c *Conn) Close() error {} // HERE
`,
	"method of a value that is made": elsewhere + `
-- a/a.go --
package a
func f() { c := &Conn{1}; c.‹Close›() }
func (f *File) Close() error {}
func (c *Conn) Close() error {} // HERE
`,
	"method of what a function returns": elsewhere + `
-- a/a.go --
package a
func f() { c, err := open("x"); c.‹Close›() }
func (f *File) Close() error {}
-- a/b.go --
package a
func open(name string) (conn *Conn, err error) { return nil, nil }
func (c *Conn) Close() error {} // HERE
`,
	"method of the second result": elsewhere + `
-- a/a.go --
package a
func f() { _, c := open("x"); c.‹Close›() }
func open(name string) (*File, *Conn) { return nil, nil }
func (f *File) Close() error {}
func (c *Conn) Close() error {} // HERE
`,
	"method of a field's field": elsewhere + `
-- a/a.go --
package a
func (s *session) f() { s.pool.conn.‹Close›() }
-- a/b.go --
package a
type session struct {
	pool *pool
}
type pool struct {
	file *File
	conn *Conn
}
func (f *File) Close() error {}
func (c *Conn) Close() error {} // HERE
`,
	"method of a type in an imported package": elsewhere + `
-- a/a.go --
package a
import "example.com/a/b/db"
func f(c *db.Conn) { c.‹Close›() }
func (c *Conn) Close() error {}
-- db/b.go --
package db
func (f *File) Close() error {}
func (c *Conn) Close() error {} // HERE
`,
	"method of an element": elsewhere + `
-- a/a.go --
package a
func f(all []*Conn) { for _, c := range all { c.‹Close›() } }
func (f *File) Close() error {}
func (c *Conn) Close() error {} // HERE
`,
	"method after a switch of types": elsewhere + `
-- a/a.go --
package a
func f(v any) {
	switch x := v.(type) {
	case *File:
		x.Close()
	case *Conn:
		x.‹Close›()
	}
}
func (f *File) Close() error {}
func (c *Conn) Close() error {} // HERE
`,
	"field in a literal": elsewhere + `
-- a/a.go --
package a
var x = []Options{{Other: 1}, {
	Other: 2,
	‹Name›: "x",
}}
type Server struct { Name string }
const Name = 1
type Options struct {
	Other int
	Name string // HERE
}
`,
	"value in a map": elsewhere + `
-- a/a.go --
package a
var x = map[string]int{
	‹Name›: 1,
}
type Server struct { Name string }
const Name = "x" // HERE
`,
	"the definition itself": elsewhere + `
-- a/a.go --
package a
func (f *File) Close() error {}
func (c *Conn) ‹Close›() error {} // HERE
`,
	"not for another system": elsewhere + `
-- a/a.go --
package a
func f() { ‹Close›() }
-- a/close_darwin.go --
package a
func Close() {}
-- a/close_unix.go --
package a
func Close() {} // HERE
`,
	"not in tests": elsewhere + `
-- a/b.go --
package a
func f() { ‹Close›() }
-- a/a_test.go --
package a
func Close() {}
-- a/c.go --
package a
func Close() {} // HERE
`,
	"unsure, of nothing known": elsewhere + `
-- a/a.go --
package a
func f() { g()().‹Close›() }
func Close() error {}
func (f *File) Close() error {} // HERE
func (c *Conn) Close() error {}
`,

	"required": `
-- lib/app.js --
const Router = require('./router')
const r = new ‹Router›()
-- lib/router.js --
class Router {} // HERE
-- test/other.js --
var Router = require('../lib/router')
-- app.go --
package a
type Router struct{}
`,
	"named import": `
-- src/app.ts --
import { type Options, open as openFile } from './db/file'
export function f() { return ‹open›() }
-- src/db/file.ts --
export function open() {} // HERE
-- src/db/index.ts --
export function open() {}
-- src/a.ts --
export function open() {}
`,
	"typed parameter": `
-- src/app.ts --
import { Conn } from './conn'
export function f(c: Conn) { c.‹close›() }
-- src/conn.ts --
export class File { close() {} }
export class Conn {
  close() {} // HERE
}
`,
	"this": `
-- src/app.ts --
class File { close() {} }
class Conn {
  f() { this.‹close›() }
  close() {} // HERE
}
`,
	"Python, from a module": `
-- pkg/app.py --
from .db import connect
def f():
    return ‹connect›()
-- pkg/db.py --
def connect(): # HERE
    pass
-- pkg/aaa.py --
def connect():
    pass
`,
	"Python, of a module": `
-- app.py --
import pkg.db as database
def f():
    return database.‹connect›()
def connect():
    pass
-- pkg/db.py --
def connect(): # HERE
    pass
`,
	"Python, self": `
-- app.py --
class A:
    def close(self): pass
class B:
    def f(self):
        self.‹close›()
    def close(self): # HERE
        pass
`,
	"Python, of an object": `
-- app.py --
class A:
    def close(self): pass
class B:
    def close(self): # HERE
        pass
def f():
    x = B(1)
    x.‹close›()
`,
	"Java, by its import": `
-- src/a/Main.java --
package a;
import b.c.Conn;
class Main { void f() { ‹Conn› x; } }
-- src/b/c/Conn.java --
package b.c;
public class Conn {} // HERE
-- src/b/d/Conn.java --
package b.d;
public class Conn {}
`,
	"Java, of a variable": `
-- src/a/Main.java --
package a;
class Main { void f() { Conn c = open(); c.‹close›(); } }
class File { void close() {} }
-- src/a/Conn.java --
package a;
public class Conn {
	public void close() {} // HERE
}
`,
	"Java, of its own class": `
-- src/a/Main.java --
package a;
class File { void close() {} }
class Main {
	void f() { ‹close›(); }
	void close() {} // HERE
}
`,
	"C, in a header that is included": `
-- src/main.c --
#include "net/conn.h"
int f(void) { return ‹conn_close›(1); }
-- include/net/conn.h --
static inline int conn_close(int x) { return x; } // HERE
-- other/conn.h --
static inline int conn_close(int x) { return x; }
`,
	"C, of a struct": `
-- src/main.c --
struct file { int fd; };
struct conn {
	int fd; // HERE
};
int f(struct conn *c) { return c->‹fd›; }
`,
	"Rust, of a module": `
-- src/main.rs --
use crate::db::{connect, Conn};
fn f() { ‹connect›() }
-- src/db.rs --
pub fn connect() {} // HERE
-- src/aa.rs --
pub fn connect() {}
`,
	"Rust, of a value": `
-- src/main.rs --
fn f(c: &mut Conn) { c.‹close›() }
struct File; impl File { fn close(&self) {} }
struct Conn;
impl Conn {
    fn close(&self) {} // HERE
}
`,
	"unknown language": `
-- a/a.txt --
see ‹connect›
-- a/b.py --
def connect(): # HERE
    pass
-- z/b.py --
def connect():
    pass
`,
}
