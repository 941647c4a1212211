package main

import (
	"errors"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// sources are the files of a package without the bodies of functions, by their base names.
type sources map[string]*ast.File

// TestEveryMutationCompiles: the file of each mutation has its lines exactly once, and is valid Go
// after the change, with all its types. `make mutate` would find only after an hour where it is not.
func TestEveryMutationCompiles(t *testing.T) {
	all, err := choose("")
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	packages := map[string]sources{}
	list := []string{"list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Export}}"}
	for _, m := range all {
		if dir := path.Dir(m.file); packages[dir] == nil {
			packages[dir] = parsePackage(t, set, dir)
			list = append(list, "./"+dir)
		}
	}
	cmd := exec.CommandContext(t.Context(), "go", list...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as other tests, so that little is compiled
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports := map[string]string{}
	for line := range strings.Lines(string(out)) {
		pkg, file, _ := strings.Cut(strings.TrimSpace(line), " ")
		exports[pkg] = file
	}
	imports := importer.ForCompiler(set, "gc", func(pkg string) (io.ReadCloser, error) { return os.Open(exports[pkg]) })
	for _, m := range all {
		if err := m.checkTypes(set, imports, packages[path.Dir(m.file)]); err != nil {
			t.Errorf("%d: %s: %v", m.promise, m.what, err)
		}
	}
}

func parsePackage(t *testing.T, set *token.FileSet, dir string) sources {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	parsed := sources{}
	for _, name := range files {
		if fits, err := build.Default.MatchFile(filepath.Split(name)); err != nil || !fits || strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			if fn, ok := decl.(*ast.FuncDecl); ok {
				fn.Body = nil
			}
		}
		parsed[filepath.Base(name)] = file
	}
	return parsed
}

// checkTypes returns the first error in the mutated file. In others the lack of bodies makes some.
func (m mutation) checkTypes(set *token.FileSet, imports types.Importer, pkg sources) (first error) {
	source, err := os.ReadFile(filepath.Join(root, m.file))
	if err != nil {
		return err
	}
	mutated, err := m.apply(string(source))
	if err != nil {
		return err
	}
	file, err := parser.ParseFile(set, m.file, mutated, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	files := []*ast.File{file}
	for name, other := range pkg {
		if name != path.Base(m.file) {
			files = append(files, other)
		}
	}
	conf := types.Config{Importer: imports, Error: func(err error) {
		if e, ok := errors.AsType[types.Error](err); ok && first == nil && file.FileStart <= e.Pos && e.Pos <= file.FileEnd {
			first = e
		}
	}}
	_, _ = conf.Check(path.Dir(m.file), set, files, nil) // Error has seen each error
	return first
}
