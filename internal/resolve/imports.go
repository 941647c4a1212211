package resolve

import (
	"bytes"
	"path"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// imported is an import of a file.
type imported struct {
	// names are what the file calls it, or parts of it. None: everything in it.
	names []string
	// elements of the path of the folder or the file, without an extension.
	elements []string
	// rooted says that the path begins at the root of the repo of the place.
	rooted bool
	repo   string
}

// headBytes is how much of a file is read for its imports.
const headBytes = 64 << 10

// readImports bounds the imports of a file: each file with a definition is compared with all of them.
const readImports = 500

// importsOf are the imports of a file.
func importsOf(p *Place, f *family) []imported {
	if f.imports == nil {
		return nil
	}
	head := *p
	head.Text = head.Text[:min(len(head.Text), headBytes)]
	found := f.imports(&head)
	for i := range found {
		found[i].repo = p.Repo
	}
	found = slices.DeleteFunc(found, func(i imported) bool { return len(i.elements) == 0 })
	return found[:min(len(found), readImports)]
}

// importsNamed are the imports that a name may stand for.
func (r *resolver) importsNamed(name string) (found []*imported) {
	for i := range r.imports {
		if slices.Contains(r.imports[i].names, name) {
			found = append(found, &r.imports[i])
		}
	}
	return found
}

// query is a query for the files of an import.
func (i *imported) query(f *family) string {
	e := i.elements
	if f.byFolder {
		return inFolder(e)
	}
	repo := ""
	if i.rooted {
		repo = "r:" + query.Quote("^"+query.Literal(i.repo)+"$") + " "
	}
	last := query.Literal(e[len(e)-1])
	files := last + `(\.[^/]*|/[^/]*)$`
	if len(e) > 1 {
		files = "(" + files + "|" + query.Literal(e[len(e)-2]) + `(\.[^/]*|/[^/]*)$)` // it may be a name within a file
	}
	return "(" + repo + "f:" + query.Quote("(^|/)"+files) + ")"
}

// has reports whether a file is of an import.
func (i *imported) has(f *family, repo, file string) bool {
	if i.rooted && repo != i.repo {
		return false
	}
	if f.byFolder {
		return hasSuffix(elements(repo+"/"+dirOf(file)), i.elements)
	}
	name := strings.TrimSuffix(file, path.Ext(file))
	if base := path.Base(name); base == "index" || base == "__init__" || base == "mod" || base == "lib" {
		name = path.Dir(name)
	}
	all := elements(name)
	if i.rooted {
		return len(all) >= len(i.elements) && slices.Equal(all[:len(i.elements)], i.elements) // what it exports may be of a file below it
	}
	n := len(i.elements)
	return hasSuffix(all, i.elements) || n > 1 && hasSuffix(all, i.elements[:n-1])
}

// takesImport reports whether a definition only takes the name from another file.
func takesImport(d *Definition) bool {
	line, _, _ := bytes.Cut(bytes.TrimLeft(d.Text, " \t"), newline)
	return bytes.Contains(line, []byte("require(")) || bytes.HasPrefix(line, []byte("import ")) || bytes.HasPrefix(line, []byte("from ")) || bytes.HasPrefix(line, []byte("using "))
}

var (
	goDeclaration = lazyregexp.New(`(?m)^(func|type|var|const)\b`)
	goImport      = lazyregexp.New("(?m)^[ \\t]*(?:import\\s+)?([\\w.]+\\s+)?[\"`]([^\"`\\n]+)[\"`]")
	goVersion     = lazyregexp.New(`^v\d+$`)
)

func goImports(p *Place) (found []imported) {
	head := p.Text
	if end := goDeclaration().FindIndex(head); end != nil {
		head = head[:end[0]]
	}
	for _, m := range goImport().FindAllSubmatch(head, -1) {
		e := elements(string(m[2]))
		i := imported{elements: e}
		n := len(e) - 1
		if n > 0 && goVersion().MatchString(e[n]) {
			n--
		}
		switch name := string(bytes.TrimSpace(m[1])); name {
		case ".", "_":
		case "":
			last := e[n]
			if at := strings.Index(last, ".v"); at > 0 {
				last = last[:at]
			}
			i.names = []string{last, strings.TrimPrefix(last, "go-"), strings.TrimSuffix(last, "-go"), strings.ReplaceAll(last, "-", "_")}
		default:
			i.names = []string{name}
		}
		found = append(found, i)
		if slices.ContainsFunc(e, goVersion().MatchString) { // the folder may be without its version
			i.elements = slices.DeleteFunc(slices.Clone(e), goVersion().MatchString)
			found = append(found, i)
		}
	}
	return found
}

var (
	scriptFrom    = lazyregexp.New(`(?s)\b(?:import|export)\s+([\w$\s{},*]+?)\s*\bfrom\s*['"]([^'"\n]+)['"]`)
	scriptRequire = lazyregexp.New(`(?:const|let|var)\s+([\w$]+|\{[\w$\s,:]*\})\s*=\s*require\(\s*['"]([^'"\n]+)['"]`)
	word          = lazyregexp.New(`[A-Za-z_$][\w$]*`)
)

func scriptImports(p *Place) (found []imported) {
	for _, m := range append(scriptFrom().FindAllSubmatch(p.Text, -1), scriptRequire().FindAllSubmatch(p.Text, -1)...) {
		i := imported{}
		for _, w := range word().FindAll(m[1], -1) {
			if name := string(w); name != "as" && name != "type" {
				i.names = append(i.names, name)
			}
		}
		from := string(m[2])
		if i.rooted = strings.HasPrefix(from, "."); i.rooted {
			from = path.Join(dirOf(p.Path), from)
		}
		from = strings.TrimPrefix(from, "@/")
		switch ext := path.Ext(from); ext {
		case ".js", ".ts", ".mjs", ".cjs", ".jsx", ".tsx", ".vue":
			from = strings.TrimSuffix(from, ext)
		}
		i.elements = elements(from)
		if n := len(i.elements); n > 1 && i.elements[n-1] == "index" {
			i.elements = i.elements[:n-1]
		}
		found = append(found, i)
	}
	return found
}

var (
	pythonFrom   = lazyregexp.New(`(?m)^[ \t]*from\s+(\.*)([\w.]*)\s+import\s+(\([^)]*\)|[^\n(]+)`)
	pythonImport = lazyregexp.New(`(?m)^[ \t]*import\s+([\w., \t]+)`)
)

func pythonImports(p *Place) (found []imported) {
	for _, m := range pythonFrom().FindAllSubmatch(p.Text, -1) {
		i, from := imported{rooted: len(m[1]) > 0}, strings.ReplaceAll(string(m[2]), ".", "/")
		if i.rooted {
			from = path.Join(dirOf(p.Path), strings.Repeat("../", len(m[1])-1), from)
		}
		for _, w := range word().FindAll(m[3], -1) {
			if string(w) != "as" {
				i.names = append(i.names, string(w))
			}
		}
		i.elements = elements(from)
		found = append(found, i)
		for _, name := range i.names { // each may be a file
			found = append(found, imported{names: []string{name}, elements: append(elements(from), name), rooted: i.rooted})
		}
	}
	for _, m := range pythonImport().FindAllSubmatch(p.Text, -1) {
		for part := range bytes.SplitSeq(m[1], []byte(",")) {
			words := strings.Fields(string(part))
			if len(words) == 0 {
				continue
			}
			e := strings.Split(words[0], ".")
			found = append(found, imported{names: []string{words[len(words)-1], e[len(e)-1], e[0]}, elements: e})
		}
	}
	return found
}

var (
	rustUse = lazyregexp.New(`(?m)^[ \t]*(?:pub(?:\([^)]*\))?\s+)?use\s+([^;]+);`)
	rustMod = lazyregexp.New(`(?m)^[ \t]*(?:pub(?:\([^)]*\))?\s+)?mod\s+(\w+)\s*;`)
)

func rustImports(p *Place) (found []imported) {
	for _, m := range rustUse().FindAllSubmatch(p.Text, -1) {
		prefix, names, _ := strings.Cut(string(m[1]), "{")
		prefix, as, _ := strings.Cut(prefix, " as ")
		parts := slices.DeleteFunc(strings.Split(strings.Join(strings.Fields(prefix), ""), "::"), func(s string) bool { return s == "" || s == "*" || s == "crate" || s == "self" || s == "super" })
		i := imported{}
		i.names = append(i.names, word().FindAllString(names, -1)...)
		if len(parts) > 0 && names == "" {
			i.names = append(i.names, parts[len(parts)-1])
			if as = strings.TrimSpace(as); as != "" {
				i.names = append(i.names, as)
			}
			if len(parts) > 1 && !strings.HasSuffix(prefix, "*") {
				found = append(found, imported{names: i.names, elements: parts})
				parts = parts[:len(parts)-1]
			}
		}
		i.elements = parts
		found = append(found, i)
	}
	for _, m := range rustMod().FindAllSubmatch(p.Text, -1) {
		found = append(found, imported{names: []string{string(m[1])}, elements: append(elements(dirOf(p.Path)), string(m[1])), rooted: true})
	}
	return found
}

var dottedImport = lazyregexp.New(`(?m)^[ \t]*(?:import|using)\s+(?:static\s+)?([\w.]+)(\.\*|\.\{[^}]*\})?`)

// dottedImports are those of Java, Kotlin, Scala and C#.
func dottedImports(p *Place) (found []imported) {
	for _, m := range dottedImport().FindAllSubmatch(p.Text, -1) {
		e := strings.Split(string(m[1]), ".")
		i := imported{elements: e, names: []string{e[len(e)-1]}}
		i.names = append(i.names, word().FindAllString(string(m[2]), -1)...)
		found = append(found, i)
	}
	return found
}

var include = lazyregexp.New(`(?m)^[ \t]*#[ \t]*(?:include|import)[ \t]*["<]([^">\n]+)[">]`)

func includes(p *Place) (found []imported) {
	for _, m := range include().FindAllSubmatch(p.Text, -1) {
		file := path.Clean(string(m[1]))
		e := elements(strings.TrimSuffix(file, path.Ext(file)))
		for len(e) > 0 && e[0] == ".." {
			e = e[1:]
		}
		found = append(found, imported{elements: e})
	}
	return found
}

var rubyRequire = lazyregexp.New(`(?m)^[ \t]*require(_relative)?[ (]+['"]([^'"\n]+)['"]`)

func rubyImports(p *Place) (found []imported) {
	for _, m := range rubyRequire().FindAllSubmatch(p.Text, -1) {
		i, from := imported{rooted: len(m[1]) > 0}, string(m[2])
		if i.rooted {
			from = path.Join(dirOf(p.Path), from)
		}
		i.elements = elements(strings.TrimSuffix(from, ".rb"))
		found = append(found, i)
	}
	return found
}

var phpUse = lazyregexp.New(`(?m)^[ \t]*use\s+(?:function\s+|const\s+)?\\?([\w\\]+)(?:\s+as\s+(\w+))?`)

func phpImports(p *Place) (found []imported) {
	for _, m := range phpUse().FindAllSubmatch(p.Text, -1) {
		e := strings.Split(string(m[1]), `\`)
		i := imported{elements: e[max(0, len(e)-2):], names: []string{e[len(e)-1]}}
		if len(m[2]) > 0 {
			i.names = append(i.names, string(m[2]))
		}
		found = append(found, i)
	}
	return found
}
