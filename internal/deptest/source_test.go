package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Limits of size. A file or function that exceeds one of them does two things.
const (
	maxFileLines     = 500
	maxFunctionLines = 80
	maxMainLines     = 49
)

func TestEveryPackageHasADoc(t *testing.T) {
	for _, p := range listPackages(t) {
		if generated(p) || len(p.GoFiles) == 0 {
			continue
		}
		want := "Package " + p.Name + " "
		if p.Name == "main" {
			want = "Command " + filepath.Base(p.Dir) + " "
		}
		if !strings.HasPrefix(p.Doc, want) {
			t.Errorf("%s: its doc begins %q, not %q", p.ImportPath, p.Doc, want)
		}
	}
}

// goFiles calls f for each Go file of the repository that people wrote.
func goFiles(t *testing.T, f func(path string, src []byte, set *token.FileSet, file *ast.File)) {
	t.Helper()
	root := repoRoot(t)
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() && (strings.HasPrefix(d.Name(), ".") && path != root || d.Name() == "testdata" || d.Name() == "bin") {
			return fs.SkipDir
		}
		if d.IsDir() || filepath.Ext(path) != ".go" {
			return nil
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		set := token.NewFileSet()
		file, err := parser.ParseFile(set, path, src, parser.ParseComments)
		if err != nil {
			return err
		}
		if !ast.IsGenerated(file) {
			rel, _ := filepath.Rel(root, path)
			f(filepath.ToSlash(rel), src, set, file)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSizes(t *testing.T) {
	goFiles(t, func(path string, src []byte, set *token.FileSet, file *ast.File) {
		lines := strings.Count(string(src), "\n")
		if lines > maxFileLines {
			t.Errorf("%s has %d lines, more than %d", path, lines, maxFileLines)
		}
		if path == "cmd/trawl/main.go" && lines > maxMainLines {
			t.Errorf("%s has %d lines, more than %d: a main only starts things", path, lines, maxMainLines)
		}
		for _, decl := range file.Decls {
			fn, ok := decl.(*ast.FuncDecl)
			if !ok || fn.Body == nil {
				continue
			}
			n := set.Position(fn.End()).Line - set.Position(fn.Pos()).Line + 1
			if n > maxFunctionLines {
				t.Errorf("%s: %s has %d lines, more than %d", path, fn.Name.Name, n, maxFunctionLines)
			}
		}
	})
}

// TestExportedNamesAreDocumented: readers of go doc find a comment on every exported
// name.
func TestExportedNamesAreDocumented(t *testing.T) {
	goFiles(t, func(path string, _ []byte, set *token.FileSet, file *ast.File) {
		if strings.HasSuffix(path, "_test.go") || file.Name.Name == "main" {
			return
		}
		for _, decl := range file.Decls {
			for _, id := range undocumented(decl) {
				t.Errorf("%s:%d: %s is exported and has no comment", path, set.Position(id.Pos()).Line, id.Name)
			}
		}
	})
}

// undocumented lists the exported names that decl declares without a comment.
func undocumented(decl ast.Decl) []*ast.Ident {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Name.IsExported() && d.Doc == nil && (d.Recv == nil || exportedReceiver(d.Recv)) && !obvious(d) {
			return []*ast.Ident{d.Name}
		}
	case *ast.GenDecl:
		var missing []*ast.Ident
		for _, spec := range d.Specs {
			missing = append(missing, undocumentedSpec(d, spec)...)
		}
		return missing
	}
	return nil
}

func undocumentedSpec(d *ast.GenDecl, spec ast.Spec) []*ast.Ident {
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Name.IsExported() && d.Doc == nil && s.Doc == nil {
			return []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		// A comment over a group of constants or variables is for all of them.
		if d.Doc == nil && s.Doc == nil && s.Comment == nil {
			var missing []*ast.Ident
			for _, name := range s.Names {
				if name.IsExported() {
					missing = append(missing, name)
				}
			}
			return missing
		}
	}
	return nil
}

// exportedReceiver reports whether the receiver's type is exported.
func exportedReceiver(recv *ast.FieldList) bool {
	expr := recv.List[0].Type
	for {
		switch e := expr.(type) {
		case *ast.StarExpr:
			expr = e.X
		case *ast.IndexExpr:
			expr = e.X
		case *ast.IndexListExpr:
			expr = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return false
		}
	}
}

// obvious are methods whose contract is that of a well-known interface.
func obvious(d *ast.FuncDecl) bool {
	switch d.Name.Name {
	case "Error", "String", "Unwrap", "Is", "Len", "Less", "Swap":
		return d.Recv != nil
	}
	return false
}

// repoRoot is the folder of go.mod.
func repoRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}
