// Package sizes holds the test that shards, section by section, and what an open one keeps
// on the heap do not grow unnoticed. It has no code of its own.
package sizes
