// Package lazyregexp compiles regular expressions when they are first used. The packages of all roles are in one binary, so what a package
// does when it is initialised costs every command time, those that never use the package too.
package lazyregexp

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled source. The source is compiled in the first call, which panics if it is no regular
// expression. The function is safe for concurrent use.
func New(source string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(source) })
}
