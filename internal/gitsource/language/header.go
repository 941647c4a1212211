package language

import "bytes"

// maxHeader is how much of a header file is looked at.
const maxHeader = 16 << 10

// objectiveC and cPlusPlus are starts of lines that occur in only one of the languages
// of ".h" files. Headers are frequent, and linguist's expressions for them take longer
// than indexing them.
var (
	objectiveC = byFirst("@interface", "@protocol", "@class", "@import", "@property", "@end", "#import ")
	cPlusPlus  = byFirst("class ", "namespace ", "template ", "template<", "public:", "private:", "protected:",
		"using namespace ", "using std::", "std::", "constexpr ", "typename ",
		"#include <string>", "#include <vector>", "#include <map>", "#include <memory>", "#include <utility>",
		"#include <functional>", "#include <iostream>", "#include <algorithm>", "#include <unordered_map>",
		"#include <cstdint>", "#include <cstddef>")
)

// starts are starts of lines, by their first byte.
type starts [256][][]byte

func byFirst(list ...string) *starts {
	var s starts
	for _, l := range list {
		s[l[0]] = append(s[l[0]], []byte(l))
	}
	return &s
}

func (s *starts) any(line []byte) bool {
	for _, start := range s[line[0]] {
		if bytes.HasPrefix(line, start) {
			return true
		}
	}
	return false
}

// header distinguishes C, C++ and Objective-C headers by the first line that only one of
// them can have.
func header(content []byte) string {
	content = content[:min(len(content), maxHeader)]
	for line := range bytes.Lines(content) {
		line = bytes.TrimLeft(line, " \t")
		switch {
		case len(line) == 0:
		case objectiveC.any(line):
			return "Objective-C"
		case cPlusPlus.any(line):
			return "C++"
		}
	}
	return "C"
}
