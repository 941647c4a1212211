// Package deptest holds the tests of the architecture: which packages may depend on
// which, that every package has a doc, and how long files and functions may be. It
// has no code of its own.
package deptest
