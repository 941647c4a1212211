package searchapi

import (
	"fmt"
	"strings"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Bytes is a size for people: 1.4 MB. Units are powers of 1000.
func Bytes(n uint64) string {
	units := []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}
	v, u := float64(n), 0
	for v >= 999.5 && u < len(units)-1 {
		v /= 1000
		u++
	}
	if u == 0 || v >= 99.5 {
		return fmt.Sprintf("%.0f %s", v, units[u])
	}
	return fmt.Sprintf("%.1f %s", v, units[u])
}

// State is the state of a repo in a word for people, such as published.
func State(s ingestv1.State) string { return EnumWords(s.String(), "STATE_") }

// SkipReason says in words why content is not searchable.
func SkipReason(r searchv1.SkipReason) string { return EnumWords(r.String(), "SKIP_REASON_") }

// EnumWords is the name of a value of a proto in words, without the prefix that all values of its type have.
func EnumWords(name, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", " ")
}
