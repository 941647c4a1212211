package resolve_test

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
	"a field hides a static import": `
-- src/test/a/b/BufTest.java --
package a.b;
import static a.b.Unpooled.buffer;
class BufTest {
    private Buf buffer; // HERE
    void test() { ‹buffer›.clear(); }
}
-- src/main/a/b/Unpooled.java --
package a.b;
class Unpooled {
    static Buf buffer(int size) { return null; }
}
`,
	"a call is of a static import, not of a field": `
-- src/test/a/b/BufTest.java --
package a.buffer;
import static a.buffer.Unpooled.buffer;
class BufTest {
    private Buf buffer;
    void test() { Buf b = ‹buffer›(1); }
}
-- src/main/a/buffer/Unpooled.java --
package a.buffer;
class Unpooled {
    static Buf buffer(int size) { return null; } // HERE
}
`,
	"a field with the name of its package": `
-- a/factorial/Handler.java --
package a.factorial;
class Handler {
    private int factorial = 1; // HERE
    int get() { return ‹factorial›; }
}
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
	"Rust, of a module by another name": `
-- src/main.rs --
use crate::db as store;
fn f() { store::‹connect›() }
fn connect() {}
-- src/db.rs --
pub fn connect() {} // HERE
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
