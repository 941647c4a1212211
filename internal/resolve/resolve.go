// Package resolve guesses which definition of a name a place in a file means.
//
// No compiler takes part. The text around the place says what the name is of: a package, a value, or nothing. Imports say where packages
// are. The type of a value is read from its declaration, which may be in another file and is looked up like any name. Definitions of
// the name are then ordered by what is known of them: of that type, in that package, in this file, in this folder, and so on.
package resolve

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/symbols"
)

// Place is a use of a name in a file.
type Place struct {
	Repo, Path string
	// Language is the linguist name of the file's language.
	Language string
	// Text is the whole file, or its beginning.
	Text []byte
	Name string
	// Offset is where the name begins in the text; -1 if it is not known.
	Offset int
}

// Find returns the offset of a whole name on a line, from 1: the one at the column in bytes, from 1, or the first of the line if there
// is none. It returns -1 if the name is not on the line.
func Find(text []byte, name string, line, column uint32) int {
	start := 0
	for ; line > 1; line-- {
		n := bytes.IndexByte(text[start:], '\n')
		if n < 0 {
			return -1
		}
		start += n + 1
	}
	first := -1
	for at := start; ; {
		end := len(text)
		if n := bytes.IndexByte(text[start:], '\n'); n >= 0 {
			end = start + n
		}
		n := bytes.Index(text[at:end], []byte(name))
		if n < 0 || name == "" {
			return first
		}
		at += n
		if whole(text, at, at+len(name)) {
			if first < 0 {
				first = at
			}
			if column := int(column) - 1; column >= at-start && column < at-start+len(name) {
				return at
			}
		}
		at++
	}
}

// whole reports whether no letter or digit continues the name at text[start:end].
func whole(text []byte, start, end int) bool {
	return !(start > 0 && isWord(text[start-1]) && isWord(text[start])) && !(end < len(text) && isWord(text[end]) && isWord(text[end-1]))
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// Definition is a definition of a name.
type Definition struct {
	Repo, Path, Language string
	Kind                 symbols.Kind
	// Scope is the name of the definition around it, such as the type of a method.
	Scope string
	// Text is its line and some lines after it, and At where the name begins there.
	Text []byte
	At   int
	// Number of the line, from 1.
	Number uint32
	// Of is for the caller: where the definition is in its own answer.
	Of any
}

// Index knows definitions.
type Index interface {
	// Definitions returns definitions of a whole name, those in the best files first, of at most that many files. Within is a query of
	// syntax version 2 for these files; an empty one matches all.
	Definitions(ctx context.Context, name, within string, most int) ([]Definition, error)
}

// Bounds of one Resolve.
const (
	// mostLookups bounds the questions to the index.
	mostLookups = 12
	// deepest bounds how many types are looked up for the type of another.
	deepest = 4
	// nearFiles is the most files of one lookup of near definitions.
	nearFiles = 100
)

// Resolve returns definitions of the name of a place, the likeliest first: at least want of them, if there are that many. One says that
// the first is nearer than all others.
func Resolve(ctx context.Context, index Index, place Place, want int) (found []Definition, one bool, err error) {
	r := &resolver{ctx: ctx, index: index, place: &place, family: familyOf(place.Language), asked: map[string][]Definition{}}
	r.symbols = symbols.For(place.Language).Append(nil, place.Text)
	r.imports = importsOf(&place, r.family)
	u := use{name: place.Name, at: place.Offset}
	if place.Offset >= 0 {
		u = r.useAt(place.Name, place.Offset)
	}
	ordered, err := r.resolve(u, max(want, 2), 0)
	for _, d := range ordered {
		found = append(found, d.Definition)
	}
	if len(ordered) > 0 && ordered[0].mayBeMeant() && ordered[0].distance[near] < elsewhere {
		one = len(ordered) == 1 || ordered[0].distance != ordered[1].distance
	}
	return found, one, err
}

type resolver struct {
	ctx     context.Context
	index   Index
	place   *Place
	family  *family
	symbols []symbols.Symbol
	imports []imported
	lookups int
	asked   map[string][]Definition // by name and query
}

// use is how a name is used.
type use struct {
	name string
	at   int // -1: not known
	// of is what the name is a member of, if it is one.
	of []link
	// key says that the name is before a colon in braces, as the names of fields are. types are those of what the braces make.
	key   bool
	types []typ
	// scope is the definition around it whose members a name alone may be; empty if it may be none.
	scope string
	// from are the imports that it may be of.
	from []*imported
}

// link is a part of an expression such as a.b().c[0].
type link struct {
	name string
	call bool
	// result is which of the results of the call is meant.
	result int
	// element says that one of the elements is taken.
	element bool
	// asserted says that name is a type.
	asserted bool
}

// typ is a type of a value.
type typ struct {
	name string
	// dir are the elements of the folder that defines it, those of its repo first; nil if it is not known.
	dir []string
}

// ranked is a definition, and how far it is from what the place means.
type ranked struct {
	Definition
	distance
	depth int // of its folder
}

// resolve orders the definitions of a name by how far they are from what its use means.
func (r *resolver) resolve(u use, want, depth int) ([]ranked, error) {
	if len(u.of) == 1 && !u.of[0].call && !u.of[0].element {
		if u.from = r.importsNamed(u.of[0].name); len(u.from) > 0 {
			if _, ok := r.declaration(u.of[0].name, u.at); ok { // in this function it is something else
				u.from = nil
			}
		}
	} else if len(u.of) == 0 && !u.key && !(r.family.implicit && r.isMemberHere(u)) {
		u.from = r.importsNamed(u.name)
	}
	if len(u.of) == 0 && r.family.implicit {
		u.scope = r.scopeAt(u.at)
	}
	if len(u.of) > 0 && len(u.from) == 0 {
		var err error
		if u.types, err = r.typesOf(u.of, u.at, depth+1); err != nil {
			return nil, err
		}
	}
	var found []ranked
	seen, imported := map[string]bool{}, map[string]bool{}
	add := func(within string, most int) error {
		more, err := r.ask(u.name, within, most)
		for _, d := range more {
			file := d.Repo + "\x00" + d.Path
			if _, ok := imported[file]; !ok {
				imported[file] = r.imported(&u, &d)
			}
			if key := fmt.Sprintf("%s\x00%d %d", file, d.Number, d.At); !seen[key] {
				seen[key] = true
				found = append(found, ranked{d, r.distance(&u, &d, imported[file]), strings.Count(d.Path, "/")})
			}
		}
		return err
	}
	meant := func(d ranked) bool { return d.mayBeMeant() }
	for _, within := range r.stages(&u) {
		if err := add(within, nearFiles); err != nil {
			return nil, err
		}
		if slices.ContainsFunc(found, meant) { // all others are farther
			break
		}
	}
	if len(found) < want {
		if err := add("", want); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(found, func(a, b ranked) int {
		return cmp.Or(bytes.Compare(a.distance[:], b.distance[:]), cmp.Compare(a.depth, b.depth))
	})
	return found, nil
}

// ask asks the index, each question once. After mostLookups it finds nothing.
func (r *resolver) ask(name, within string, most int) ([]Definition, error) {
	key := fmt.Sprintf("%s\x00%s\x00%d", name, within, most)
	if known, ok := r.asked[key]; ok {
		return known, nil
	}
	if r.lookups++; r.lookups > mostLookups {
		return nil, nil
	}
	found, err := r.index.Definitions(r.ctx, name, within, most)
	r.asked[key] = found
	return found, err
}

// stages are queries for files with definitions of a name, the nearest first.
func (r *resolver) stages(u *use) (queries []string) {
	repo := "r:" + query.Quote("^"+query.Literal(r.place.Repo)+"$")
	for _, t := range u.types {
		word := "-(-(case:yes content:" + query.Quote(`\b`+query.Literal(t.name)+`\b`) + "))"
		if own := elements(r.place.Repo); len(t.dir) >= len(own) && slices.Equal(t.dir[:len(own)], own) {
			dir := strings.Join(append(slices.Clone(t.dir[len(own):]), ""), "/")
			queries = append(queries, word+" "+inRepo(r.place.Repo, dir))
		} else if t.dir != nil {
			queries = append(queries, word+" "+inFolder(t.dir))
		}
		queries = append(queries, word+" "+repo, word)
	}
	near := []string{inRepo(r.place.Repo, dirOf(r.place.Path))}
	for _, i := range u.from {
		near = append(near, i.query(r.family))
	}
	if len(u.of) > 0 && len(u.from) == 0 { // a value of a type of any import
		for i := range r.imports[:min(len(r.imports), mostImports)] {
			near = append(near, r.imports[i].query(r.family))
		}
	}
	return append(queries, "("+strings.Join(near, " or ")+")", repo)
}

// mostImports is the most imports that are looked through for a member whose type is not known.
const mostImports = 32

// distance says how far a definition is from what a use means. The first byte that differs decides; 0 is the nearest.
type distance [parts]byte

// Parts of a distance.
const (
	wrong        = iota // by its kind or its language
	otherType           // than that of the value
	otherFolder         // than that of the type or the package
	onlyImported        // the definition takes the name from elsewhere
	near                // sameFile and so on
	apart               // folders between
	lowPriority         // as rank.LowPriority has it
	otherSystem         // for another operating system or processor
	parts
)

// mayBeMeant reports whether nothing speaks against a definition.
func (d distance) mayBeMeant() bool {
	return bytes.Equal(d[:onlyImported], make([]byte, onlyImported))
}

// nearness of a file.
const (
	sameFile byte = iota
	sameFolder
	importedFile
	sameRepo
	sameRepoOtherLanguage
	elsewhere
	elsewhereOtherLanguage
)

// distance compares a definition with a use; imported says that it is in a file that the place imports and that may be meant.
func (r *resolver) distance(u *use, d *Definition, imported bool) (is distance) {
	p := r.place
	if d.Repo == p.Repo && d.Path == p.Path && u.at >= 0 && u.at == bytes.LastIndexByte(p.Text[:u.at], '\n')+1+d.At && int(d.Number) == 1+bytes.Count(p.Text[:u.at], newline) {
		return is // the place is a definition
	}
	sameLanguage := d.Language == p.Language || familyOf(d.Language) == r.family || r.family == unknown
	switch {
	case d.Repo == p.Repo && d.Path == p.Path:
		is[near] = sameFile
	case d.Repo == p.Repo && dirOf(d.Path) == dirOf(p.Path):
		is[near] = sameFolder
	case imported:
		is[near] = importedFile
	case d.Repo == p.Repo:
		is[near] = sameRepo
	default:
		is[near] = elsewhere
	}
	if !sameLanguage && is[near] >= sameRepo {
		is[near]++
	}
	if d.Repo == p.Repo && is[near] > sameFolder {
		is[apart] = byte(min(foldersApart(p.Path, d.Path), 255))
	}
	is.set(lowPriority, rank.LowPriority([]byte(d.Path)) && !rank.LowPriority([]byte(p.Path)))
	is.set(otherSystem, r.family.otherSystem(d.Path, p.Path))
	is.set(onlyImported, takesImport(d))
	is.set(otherFolder, len(u.from) > 0 && !imported)
	if len(u.types) > 0 {
		of := slices.IndexFunc(u.types, func(t typ) bool { return t.name == d.Scope })
		is.set(otherType, of < 0)
		if of >= 0 && u.types[of].dir != nil {
			is.set(otherFolder, !inDir(d, u.types[of].dir))
		}
	} else if r.family.implicit && len(u.of) == 0 && d.Scope != "" && isMember(d) {
		is.set(otherType, d.Scope != u.scope && !(len(u.from) > 0 && imported)) // a static import names a member
	}
	is.set(wrong, !r.family.fits(u, d) || !sameLanguage && is[near] < sameRepo)
	return is
}

func (d *distance) set(part int, is bool) {
	if d[part] = 0; is {
		d[part] = 1
	}
}

// imported reports whether a definition is in a file that the place imports and that may be meant.
func (r *resolver) imported(u *use, d *Definition) bool {
	if len(u.from) > 0 {
		return slices.ContainsFunc(u.from, func(i *imported) bool { return i.has(r.family, d.Repo, d.Path) })
	}
	return slices.ContainsFunc(r.imports, func(i imported) bool { return i.has(r.family, d.Repo, d.Path) })
}

// scopeAt is the name of the innermost definition around a place that has members.
func (r *resolver) scopeAt(at int) string {
	w := symbols.NewWithin(r.symbols)
	if at < 0 {
		return ""
	}
	i := w.At(uint32(at))
	if i < 0 {
		return ""
	}
	s := r.symbols[i]
	if s.Kind == symbols.Type && int(s.Start) != at {
		return string(r.place.Text[s.Start:s.End])
	}
	return string(r.place.Text[s.Scope.Start:s.Scope.End])
}

// isMemberHere reports whether the file has a method of a name that is called, or a field of one that is not: it hides what is imported by
// that name.
func (r *resolver) isMemberHere(u use) bool {
	if u.at < 0 {
		return false
	}
	text := r.place.Text
	kind := symbols.Field
	if bytes.HasPrefix(bytes.TrimLeft(text[u.at+len(u.name):], " \t"), []byte("(")) {
		kind = symbols.Method
	}
	return slices.ContainsFunc(r.symbols, func(s symbols.Symbol) bool {
		return s.Kind == kind && string(text[s.Start:s.End]) == u.name
	})
}

// foldersApart is how many folders are between two files.
func foldersApart(a, b string) int {
	x, y := strings.Split(dirOf(a), "/"), strings.Split(dirOf(b), "/")
	n := 0
	for n < len(x) && n < len(y) && x[n] == y[n] {
		n++
	}
	return len(x) + len(y) - 2*n
}

// dirOf is the folder of a path, with a slash at its end unless it is the root.
func dirOf(p string) string {
	return p[:strings.LastIndexByte(p, '/')+1]
}

// elements are the folders of a path, and its last part.
func elements(p string) []string {
	return strings.FieldsFunc(p, func(r rune) bool { return r == '/' })
}

// inDir reports whether a definition is in the folder with these last elements.
func inDir(d *Definition, dir []string) bool {
	return hasSuffix(elements(d.Repo+"/"+dirOf(d.Path)), dir)
}

func hasSuffix(all, end []string) bool {
	return len(end) > 0 && len(all) >= len(end) && slices.Equal(all[len(all)-len(end):], end)
}

var newline = []byte("\n")
