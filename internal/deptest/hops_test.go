package deptest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// hopName is a function, a method, or a type, as the tables of services name them.
var hopName = regexp.MustCompile("`([A-Za-z]\\w*(?:\\.[A-Za-z]\\w*)?)`")

// TestHopsAreInTheCode: the tables in the READMEs of services follow a query or a
// document from function to function. The files in a row must declare the names in that
// row.
func TestHopsAreInTheCode(t *testing.T) {
	pages, err := filepath.Glob(filepath.Join(repoRoot(t), "services", "*", "README.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("no READMEs of services: %v", err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		hops := 0
		for line := range strings.Lines(string(text)) {
			links := markdownLink.FindAllStringSubmatch(line, -1)
			names := hopName.FindAllStringSubmatch(line, -1)
			if !strings.HasPrefix(line, "|") || len(links) == 0 || len(names) == 0 {
				continue
			}
			declared := map[string]bool{}
			for _, link := range links {
				declare(t, filepath.Join(filepath.Dir(page), link[1]), declared)
			}
			for _, name := range names {
				hops++
				if !declared[name[1]] {
					t.Errorf("%s: %s is in none of the files of its row", page, name[1])
				}
			}
		}
		if hops < 9 {
			t.Errorf("%s: only %d names were found in its tables", page, hops)
		}
	}
}

// declare adds the declarations of a file, or of the files of a folder: functions and types,
// with and without their package, and methods after their types.
func declare(t *testing.T, path string, to map[string]bool) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(path, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Ext(path) == ".go" {
		files = []string{path}
	}
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range file.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				name := d.Name.Name
				if d.Recv != nil {
					name = receiver(d.Recv.List[0].Type) + "." + name
				}
				to[name], to[file.Name.Name+"."+name] = true, true
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if s, ok := spec.(*ast.TypeSpec); ok {
						to[s.Name.Name] = true
					}
				}
			}
		}
	}
}

// receiver is the name of a receiver's type, without pointer and type parameters.
func receiver(of ast.Expr) string {
	switch of := of.(type) {
	case *ast.StarExpr:
		return receiver(of.X)
	case *ast.IndexExpr:
		return receiver(of.X)
	case *ast.Ident:
		return of.Name
	}
	return ""
}
