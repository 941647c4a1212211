//go:build race

package testrun

// Race says that the race detector is on. Then pools drop some of what they keep, so that more is allocated.
const Race = true
