package rank

import (
	"bytes"
	"strings"
)

// Words in paths of files that are seldom what people look for: as a part of a folder's name, and of a base name.
var (
	lowFolders = wordSet("test", "tests", "testing", "testdata", "spec", "specs", "example", "examples", "bench", "benches", "benchmark", "benchmarks",
		"mock", "mocks", "fixture", "fixtures", "doc", "docs", "vendor", "deps", "node_modules", "third_party")
	// Folders of vendored code, by their whole names: those of linguist, except names that are as often folders of
	// one's own code, such as cache and env, and those of other package managers.
	vendored = wordSet("3rdparty", "3rdParty", "3rd-party", "3rd_party", "thirdparty", "thirdParty", "ThirdParty", "third-party", "Third_Party",
		"vendors", "Vendor", "Vendors", "extern", "Extern", "external", "External", "externals", "Externals", "dist", "bower_components", "jspm_packages",
		"Godeps", "Pods", "Carthage", "xvba_modules", "site-packages", "flow-typed", "admin_media", "ace-builds", "bootstrap-datepicker", "MathJax",
		"extjs", "tiny_mce", "select2", "puphpet", "Sparkle", "Crashlytics.framework", "Fabric.framework", "BuddyBuildSDK.framework",
		".yarn", ".google_apis")
	lowNames = wordSet("test", "tests", "spec", "example", "examples", "bench", "benchmark", "mock", "mocks", "min", "pb", "generated", "changelog")
	// Names of changelogs without their extensions, in capitals, because in lower case they are also names of code.
	changelogs = wordSet("CHANGES", "HISTORY", "NEWS")
	// Extensions of documentation.
	proseExtensions = wordSet(".md", ".mdx", ".rst", ".adoc")
)

func wordSet(words ...string) map[string]bool {
	set := map[string]bool{}
	for _, w := range words {
		set[w] = true
	}
	return set
}

// AsksForLow reports whether a text of a query names something of low priority, such as tests. Then no document of the answer
// has low priority.
func AsksForLow(text string) bool {
	for part := range strings.FieldsFuncSeq(strings.ToLower(text), func(r rune) bool { return r < 'a' || r > 'z' }) {
		if lowFolders[part] || lowNames[part] {
			return true
		}
	}
	return false
}

// anyPart reports whether the name, or a part of it between punctuation, is in the set.
func anyPart(name []byte, set map[string]bool) bool {
	if set[string(name)] {
		return true
	}
	for start, i := 0, 0; i <= len(name); i++ {
		if i == len(name) || name[i] == '_' || name[i] == '-' || name[i] == '.' {
			if set[string(name[start:i])] {
				return true
			}
			start = i + 1
		}
	}
	return false
}

// LowPriority reports whether the path belongs to a test, an example, documentation, a changelog, or generated or vendored code.
func LowPriority(path []byte) bool {
	base := path
	for slash := bytes.IndexByte(base, '/'); slash >= 0; slash = bytes.IndexByte(base, '/') {
		if folder := base[:slash]; vendored[string(folder)] || anyPart(folder, lowFolders) {
			return true
		}
		base = base[slash+1:]
	}
	stem, extension := base, ""
	if dot := bytes.LastIndexByte(base, '.'); dot > 0 {
		stem, extension = base[:dot], string(base[dot:])
	}
	return anyPart(base, lowNames) || changelogs[string(stem)] || proseExtensions[extension] ||
		bytes.HasPrefix(base, []byte("CHANGELOG")) || bytes.Contains(base, []byte("Test."))
}
