package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestGoIsNotTakenAtItsWord: no code depends on what the Go command, or make, writes
// to standard error. With an empty module cache it lists downloaded modules there
// although nothing is wrong.
func TestGoIsNotTakenAtItsWord(t *testing.T) {
	commands := 0
	goFiles(t, func(path string, _ []byte, set *token.FileSet, file *ast.File) {
		for _, decl := range file.Decls {
			if fn := bodyOf(decl); fn != nil && runsGo(fn) {
				commands++
				for _, place := range decidesByErrors(fn) {
					t.Errorf("%s:%d: this depends on what the go command says on standard error", path, set.Position(place).Line)
				}
			}
		}
	})
	if commands < 10 {
		t.Errorf("only %d functions that run go were found", commands)
	}
}

// TestDecidesByErrors shows which forms decidesByErrors finds, and which it does not.
func TestDecidesByErrors(t *testing.T) {
	for body, want := range map[string]int{
		`if out, err := cmd.CombinedOutput(); err != nil { return wrap(out) }`:                                 0,
		`out, err := cmd.CombinedOutput(); t.Logf("%s", out); if err != nil { t.Fatal(err) }`:                  0,
		`var errs B; cmd.Stderr = &errs; if err := cmd.Run(); err != nil { return errors.New(errs.String()) }`: 0,
		`out, err := cmd.Output(); return parse(out)`:                                                          0,
		`out, err := cmd.CombinedOutput(); return parse(out)`:                                                  1,
		`if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 { t.Fatal(err) }`:                     1,
		`var errs B; cmd.Stderr = &errs; if err := cmd.Run(); err != nil || errs.Len() > 0 { t.Fatal(err) }`:   1,
		`var errs B; cmd.Stderr = &errs; err := cmd.Run(); if errs.Len() > 0 { t.Fatal(err) }`:                 1,
		`var all B; cmd.Stdout, cmd.Stderr = &all, &all; err := cmd.Run(); compare(all.String())`:              1,
	} {
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, "x.go", "package x\nfunc f() { cmd := exec.Command(\"go\", \"run\", \".\"); "+body+" }", 0)
		if err != nil {
			t.Fatal(err)
		}
		fn := bodyOf(file.Decls[0])
		if got := len(decidesByErrors(fn)); !runsGo(fn) || got != want {
			t.Errorf("%s: %d places, want %d", body, got, want)
		}
	}
}

// bodyOf is the code of a declaration: a function's body, or the values of variables.
func bodyOf(decl ast.Decl) ast.Node {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Body != nil {
			return d.Body
		}
	case *ast.GenDecl:
		if d.Tok == token.VAR {
			return d
		}
	}
	return nil
}

// runsGo reports whether code makes a command that runs go or make.
func runsGo(fn ast.Node) (found bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || methodOf(call) != "Command" && methodOf(call) != "CommandContext" {
			return true
		}
		for _, arg := range call.Args[:min(len(call.Args), 2)] {
			if name, ok := arg.(*ast.BasicLit); ok && (name.Value == `"go"` || name.Value == `"make"`) {
				found = true
			}
		}
		return true
	})
	return found
}

// decidesByErrors are the places that use the standard error of a command for
// anything but reporting a failure.
func decidesByErrors(fn ast.Node) (places []token.Pos) {
	said := standardErrors(fn)
	reporting := map[*ast.Ident]bool{}
	ast.Inspect(fn, func(n ast.Node) bool {
		var within ast.Node
		switch n := n.(type) {
		case *ast.IfStmt:
			if isFailure(n.Cond) {
				within = n.Body
			}
		case *ast.CallExpr:
			switch methodOf(n) {
			case "Log", "Logf", "Error", "Errorf", "Fatal", "Fatalf":
				within = n
			}
		}
		if within != nil {
			ast.Inspect(within, func(n ast.Node) bool {
				if id, ok := n.(*ast.Ident); ok {
					reporting[id] = true
				}
				return true
			})
		}
		return true
	})
	fields := map[*ast.Ident]bool{} // fields that only share the name of a variable
	ast.Inspect(fn, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			fields[s.Sel] = true
		}
		if id, ok := n.(*ast.Ident); ok && said[id.Name] && !fields[id] && !reporting[id] && !isWritten(fn, id) {
			places = append(places, id.Pos())
		}
		return true
	})
	return places
}

// standardErrors are the names of variables that hold the standard error of commands.
func standardErrors(fn ast.Node) map[string]bool {
	said := map[string]bool{}
	add := func(e ast.Expr) {
		if u, ok := e.(*ast.UnaryExpr); ok {
			e = u.X
		}
		if id, ok := e.(*ast.Ident); ok {
			said[id.Name] = true
		}
	}
	ast.Inspect(fn, func(n ast.Node) bool {
		assign, ok := n.(*ast.AssignStmt)
		if !ok {
			return true
		}
		for i, to := range assign.Lhs {
			if s, ok := to.(*ast.SelectorExpr); ok && s.Sel.Name == "Stderr" && len(assign.Lhs) == len(assign.Rhs) {
				add(assign.Rhs[i])
			}
		}
		if call, ok := assign.Rhs[0].(*ast.CallExpr); ok && methodOf(call) == "CombinedOutput" {
			add(assign.Lhs[0])
		}
		return true
	})
	return said
}

// isWritten reports whether a variable is declared or assigned at this place, or
// passed to a command to write to.
func isWritten(fn ast.Node, id *ast.Ident) (written bool) {
	ast.Inspect(fn, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.ValueSpec:
			for _, name := range n.Names {
				written = written || name == id
			}
		case *ast.AssignStmt:
			for i, to := range n.Lhs {
				written = written || to == id
				if s, ok := to.(*ast.SelectorExpr); ok && len(n.Lhs) == len(n.Rhs) && (s.Sel.Name == "Stderr" || s.Sel.Name == "Stdout") {
					u, isAddress := n.Rhs[i].(*ast.UnaryExpr)
					written = written || n.Rhs[i] == id || isAddress && u.X == id
				}
			}
		}
		return !written
	})
	return written
}

// isFailure reports whether a condition only checks that there is an error.
func isFailure(cond ast.Expr) bool {
	b, ok := cond.(*ast.BinaryExpr)
	if !ok || b.Op != token.NEQ {
		return false
	}
	x, isName := b.X.(*ast.Ident)
	y, isNil := b.Y.(*ast.Ident)
	return isName && isNil && x.Name == "err" && y.Name == "nil"
}

func methodOf(call *ast.CallExpr) string {
	if s, ok := call.Fun.(*ast.SelectorExpr); ok {
		return s.Sel.Name
	}
	return ""
}

var (
	// goInShell is a call of the Go command, make, or a tool that Go runs.
	goInShell = regexp.MustCompile(`(^|[\s(;&|'"@])(go|make|\$\(GO\)|\$\(MAKE\)|\$\(BUF\)|\$\(LINT\))\s+\S`)
	// joined matches standard error that goes to standard output, unread both discarded.
	joined = regexp.MustCompile(`2>&1|\|&|&>`)
	unread = regexp.MustCompile(`>\s*/dev/null 2>&1|&>\s*/dev/null`)
)

// TestScriptsDoNotReadErrorsOfGo checks the same for scripts and makefiles.
func TestScriptsDoNotReadErrorsOfGo(t *testing.T) {
	for line, want := range map[string]bool{
		"out=$(go list ./... 2>&1)": true, "	$(GO) test ./... 2>&1 | tee log": true, "@make lint |& grep x": true,
		"go build ./... > /dev/null 2>&1": false, "go list ./... | grep x": false, "cargo build 2>&1": false,
	} {
		if got := readsErrorsOfGo(line); got != want {
			t.Errorf("%q: %v, want %v", line, got, want)
		}
	}
	scripts := 0
	root := repoRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (d.Name() == ".git" || d.Name() == ".cache" || d.Name() == "bin" || d.Name() == "dist") {
			return fs.SkipDir
		}
		named := filepath.Ext(path) == ".sh" || d.Name() == "Makefile" || d.Name() == "Dockerfile"
		if !d.Type().IsRegular() || !named && filepath.Ext(path) != "" {
			return nil
		}
		text, err := os.ReadFile(path)
		if !named && !shebang.Match(text) {
			return err
		}
		scripts++
		n := 0
		for line := range strings.Lines(string(text)) {
			if n++; readsErrorsOfGo(line) {
				t.Errorf("%s:%d: this may depend on what the go command says on standard error", path, n)
			}
		}
		return err
	})
	if err != nil || scripts < 9 {
		t.Errorf("%d scripts, %v", scripts, err)
	}
}

// shebang begins a script for a shell, which may have no extension, as .ci/run has none.
var shebang = regexp.MustCompile(`^#!.*sh\n`)

func readsErrorsOfGo(line string) bool {
	return goInShell.MatchString(line) && joined.MatchString(unread.ReplaceAllString(line, ""))
}
