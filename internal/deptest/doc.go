// Package deptest holds the tests of the architecture: which package may
// depend on which, that every package says what it is for, and how long files
// and functions may be. It has no code of its own.
package deptest
