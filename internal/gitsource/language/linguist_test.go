package language

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	enry "github.com/go-enry/go-enry/v2"
	"github.com/go-enry/go-enry/v2/data"

	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/internal/testrun"
)

// MarshalText writes an expression, which only this test does.
func (e expression) MarshalText() ([]byte, error) { return []byte(e.compiled().String()), nil }

// TestLinguistTables compares the tables with those of go-enry.
func TestLinguistTables(t *testing.T) {
	want := tables{
		Filenames: data.LanguagesByFilename, Extensions: data.LanguagesByExtension, Interpreters: data.LanguagesByInterpreter,
		Aliases: data.LanguageByAliasMap, Rules: map[string][]rule{},
	}
	for ext, rules := range data.ContentHeuristics {
		if ext == ".h" || len(data.LanguagesByExtension[ext]) < 2 {
			continue // their rules are never used
		}
		for _, heuristic := range *rules {
			var r rule
			if !collect(t, &r, reflect.ValueOf(heuristic)) {
				continue
			}
			for _, alias := range heuristic.Languages() {
				if name, ok := data.LanguageByAlias(alias); ok {
					r.Languages = append(r.Languages, name)
				}
			}
			want.Rules[ext] = append(want.Rules[ext], r)
		}
	}
	text, err := json.MarshalIndent(want, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	testrun.Golden(t, "linguist.json", append(text, '\n'))
}

// collect adds the conditions of go-enry's rule to r, and reports whether it can hold at all.
// Expressions that Go does not support are nil: for go-enry they are false where one of several has
// to match, and are left out elsewhere.
func collect(t *testing.T, r *rule, v reflect.Value) bool {
	for v.Kind() == reflect.Interface {
		v = v.Elem()
	}
	add := func(to *[]expression, v reflect.Value) bool {
		for v.Kind() == reflect.Interface {
			v = v.Elem()
		}
		if v.IsNil() {
			return false
		}
		var e expression
		if err := e.UnmarshalText([]byte(v.Elem().FieldByName("expr").String())); err != nil {
			t.Fatal(err)
		}
		*to = append(*to, e)
		return true
	}
	switch v.Type().Name() {
	case "always":
		return true
	case "or":
		return add(&r.Matches, v.FieldByName("pattern"))
	case "and":
		for i := range v.FieldByName("patterns").Len() {
			part := v.FieldByName("patterns").Index(i).Elem()
			if part.Type() == reflect.TypeFor[*regexp.Regexp]() {
				add(&r.Matches, part)
			} else if !collect(t, r, part) {
				return false
			}
		}
		return true
	case "not":
		for i := range v.FieldByName("Patterns").Len() {
			add(&r.Lacks, v.FieldByName("Patterns").Index(i))
		}
		return true
	}
	t.Fatalf("a rule of go-enry has the new type %s", v.Type())
	return false
}

// detect is what Detect returns, by the functions of go-enry.
func detect(d *Detector, name string, content []byte) string {
	if languages := enry.GetLanguagesByFilename(name, nil, nil); len(languages) == 1 {
		return languages[0]
	}
	candidates := enry.GetLanguagesByExtension(name, nil, nil)
	if p, ok := preferred[strings.ToLower(filepath.Ext(name))]; ok && slices.Contains(candidates, p) {
		return p
	}
	first := func(found []string) string {
		if len(found) > 0 {
			return found[0]
		}
		return ""
	}
	switch {
	case len(candidates) == 0:
		return first(enry.GetLanguagesByShebang(name, content[:min(len(content), 512)], nil))
	case len(candidates) == 1:
		return candidates[0]
	case slices.Contains(candidates, "C++") && slices.Contains(candidates, "Objective-C"):
		return header(content)
	}
	if found := enry.GetLanguagesByContent(name, content[:min(len(content), sample)], candidates); len(found) > 0 {
		return found[0]
	}
	return candidates[0]
}

// TestAsGoEnry compares the languages of the files of a real tree with go-enry's. The tree is Go's,
// unless TRAWL_TEST_TREE names another.
func TestAsGoEnry(t *testing.T) {
	root := os.Getenv("TRAWL_TEST_TREE")
	if root == "" {
		goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
		if err != nil {
			t.Fatal(err)
		}
		root = strings.TrimSpace(string(goroot))
	}
	names, most := 0, 3000
	if os.Getenv("TRAWL_TEST_TREE") != "" {
		most = 1 << 30
	}
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() || names == most {
			return err
		}
		names++
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var d Detector
		if got, want := d.Detect([]byte(path), content), detect(&d, e.Name(), content); got != want {
			t.Errorf("%s: got %q, want %q", path, got, want)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestContentsAsGoEnry shows the texts of all rules, as they are written, to all rules of all extensions.
func TestContentsAsGoEnry(t *testing.T) {
	var contents []string
	for _, rules := range linguist().Rules {
		for _, r := range rules {
			for _, e := range slices.Concat(r.Matches, r.Lacks) {
				plain := strings.NewReplacer(`(?m)`, "", `\s+`, " ", `\s*`, "", `^`, "", `\b`, "", `\`, "", `(?:`, "", `)`, "", `+`, "", `?`, "", `*`, "").Replace(e.compiled().String())
				contents = append(contents, strings.Split(plain, "|")...)
			}
		}
	}
	slices.Sort(contents)
	contents = slices.Compact(contents)
	for _, ext := range slices.Sorted(maps.Keys(data.ContentHeuristics)) {
		if candidates := data.LanguagesByExtension[ext]; len(candidates) < 2 || ext == ".h" {
			continue
		}
		for _, content := range contents {
			got, want := linguist().byContent(ext, []byte(content)), enry.GetLanguagesByContent("x"+ext, []byte(content), nil)
			if !slices.Equal(got, want) {
				t.Fatalf("%s, %q: got %q, want %q", ext, content, got, want)
			}
		}
	}
}

func TestInterpretersAsGoEnry(t *testing.T) {
	for _, line := range []string{
		"", "#!", "#! ", "#!/bin/sh", "#! /bin/bash -e", "#!/usr/bin/env", "#!/usr/bin/env python3", "#!/usr/bin/env -S deno run", "#!/usr/bin/env -i A=b perl -w",
		"#!/usr/bin/env A=b", "#!/usr/bin/python2.7", "#!/usr/bin/python3.12 -u", "#!/usr/bin/osascript -l JavaScript", "#!/usr/bin/osascript", "#!ruby\r\n",
		"#!/bin/sh\n#\nexec tclsh \"$0\" \"$@\"\n", "#!/bin/sh\n\n\n\n\n\nexec tclsh \"$0\" \"$@\"\n", "#!/usr/bin/env --split-string=node --x\n", "no", " #!/bin/sh",
		"#!/usr/bin/", "#!/usr/bin/env rdmd\n", "#!/usr/bin/make -f",
	} {
		var want string
		if found := enry.GetLanguagesByShebang("x", []byte(line), nil); len(found) > 0 {
			want = found[0]
		}
		if got := byShebang([]byte(line)); got != want {
			t.Errorf("%q: got %q, want %q", line, got, want)
		}
	}
}

// TestVendoredFolders: the folders that go-enry takes for vendored code have low priority, except
// those that are as often folders of one's own code.
func TestVendoredFolders(t *testing.T) {
	own := []string{"cache/", "env/", "gradle/wrapper/", ".mvn/wrapper/", "inst/extdata/", ".github/", ".gitpod/", ".obsidian/", ".teamcity/", ".vscode/"}
	folder := regexp.MustCompile(`^\(\^\|/\)((?:[\w-]|\\\.|/)+/)(?:\.\*.*)?$`)
	found := 0
	for _, m := range data.VendorMatchers {
		if parts := folder.FindStringSubmatch(m.String()); parts != nil && !slices.Contains(own, strings.ReplaceAll(parts[1], `\`, "")) {
			found++
			path := "a/" + strings.ReplaceAll(parts[1], `\`, "") + "b.c"
			if !rank.LowPriority([]byte(path)) {
				t.Errorf("%s has no low priority", path)
			}
		}
	}
	for _, path := range []string{"a/3rd-party/b.c", "a/ThirdParty/b.c", "a/vendors/b.c", "a/Vendor/b.c", "a/externals/b.c", "a/Extern/b.c"} {
		if !enry.IsVendor(path) || !rank.LowPriority([]byte(path)) {
			t.Errorf("%s: go-enry says %v, want that and low priority", path, enry.IsVendor(path))
		}
	}
	if found < 20 {
		t.Errorf("only %d folders were read from go-enry", found)
	}
}
