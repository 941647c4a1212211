package resolve

import (
	"path"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/symbols"
)

// family are languages that declare and import in the same way.
type family struct {
	// style says how values are declared.
	style style
	// implicit says that a name alone may be a member of the type around it.
	implicit bool
	// keyed says that members are named before a colon in braces.
	keyed bool
	// self are the names of the value whose method the place is in.
	self []string
	// imports finds the imports of a file.
	imports func(p *Place) []imported
	// byFolder says that an import names a folder rather than a file.
	byFolder bool
	// packaged says that a module is not defined anywhere: each of its files names it.
	packaged bool
	systems  bool // files have operating systems and processors in their names
}

// style is where the type of a value stands in its declaration.
type style uint8

const (
	noTypes    style = iota
	typeAfter        // Go: name T, name := T{}
	afterColon       // name: T, fn name() -> T
	typeBefore       // T name
)

var (
	unknown = &family{}

	golang     = &family{style: typeAfter, keyed: true, imports: goImports, byFolder: true, systems: true}
	javascript = &family{style: afterColon, keyed: true, self: []string{"this", "super"}, imports: scriptImports}
	python     = &family{style: afterColon, self: []string{"self", "cls"}, imports: pythonImports}
	rust       = &family{style: afterColon, keyed: true, self: []string{"self", "Self"}, imports: rustImports}
	jvm        = &family{packaged: true, style: typeBefore, implicit: true, self: []string{"this", "super"}, imports: dottedImports}
	kotlin     = &family{packaged: true, style: afterColon, implicit: true, self: []string{"this", "super"}, imports: dottedImports}
	swift      = &family{style: afterColon, implicit: true, self: []string{"self", "super"}}
	csharp     = &family{packaged: true, style: typeBefore, implicit: true, self: []string{"this", "base"}, imports: dottedImports, byFolder: true}
	cfamily    = &family{style: typeBefore, implicit: true, keyed: true, self: []string{"this"}, imports: includes}
	ruby       = &family{implicit: true, self: []string{"self"}, imports: rubyImports}
	php        = &family{packaged: true, self: []string{"this", "self", "static", "parent"}, imports: phpImports}
)

var families = map[string]*family{
	"Go": golang, "JavaScript": javascript, "JSX": javascript, "TypeScript": javascript, "TSX": javascript, "Vue": javascript,
	"Python": python, "Cython": python, "Rust": rust, "Java": jvm, "Groovy": jvm, "Kotlin": kotlin, "Scala": kotlin, "Swift": swift, "C#": csharp,
	"C": cfamily, "C++": cfamily, "CUDA": cfamily, "Objective-C": cfamily, "Objective-C++": cfamily, "Ruby": ruby, "PHP": php,
}

// familyOf is the family of a language by its linguist name.
func familyOf(language string) *family {
	if f := families[language]; f != nil {
		return f
	}
	return unknown
}

func isMember(d *Definition) bool { return d.Kind == symbols.Method || d.Kind == symbols.Field }

// fits reports whether what a use says permits a kind of definition.
func (f *family) fits(u *use, d *Definition) bool {
	member := isMember(d)
	switch {
	case f.packaged && d.Kind == symbols.Module:
		return false
	case f == unknown || u.at < 0:
		return true
	case u.key:
		return member
	case len(u.of) > 0 && len(u.from) == 0:
		return member || d.Scope != "" || f != golang && f != rust
	case len(u.of) > 0:
		return !member || f != golang
	}
	return !member || f.implicit
}

// Operating systems and processors in the names of Go's files, besides the commonest ones.
var systems = setOf("aix android darwin dragonfly freebsd hurd illumos ios js nacl netbsd openbsd plan9 solaris wasip1 windows zos bsd bsds " +
	"386 arm arm64 armbe arm64be loong64 mips mipsle mips64 mips64le mips64x mipsx ppc ppc64 ppc64le ppc64x riscv riscv64 s390 s390x sparc sparc64 wasm " +
	"other others stub stubs fallback noasm generic nocgo purego no")

func setOf(words string) map[string]bool {
	set := map[string]bool{}
	for name := range strings.FieldsSeq(words) {
		set[name] = true
	}
	return set
}

// otherSystem reports whether a file is for another operating system or processor than one that is most common, and than that of another file.
func (f *family) otherSystem(file, than string) bool {
	if !f.systems {
		return false
	}
	words := func(p string) []string {
		base := path.Base(p)
		return strings.Split(strings.TrimSuffix(strings.TrimSuffix(base, path.Ext(base)), "_test"), "_")[1:]
	}
	own := words(than)
	return slices.ContainsFunc(words(file), func(w string) bool { return systems[w] && !slices.Contains(own, w) })
}
