package render

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// SkipReason says in words why content is not searchable.
func SkipReason(r searchv1.SkipReason) string {
	return enumWords(r.String(), "SKIP_REASON_")
}

func enumWords(name, prefix string) string {
	return strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(name, prefix)), "_", " ")
}

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

// Duration is a time for people, with three digits or fewer.
func Duration(d time.Duration) string {
	switch {
	case d < time.Millisecond:
		return d.Round(time.Microsecond).String()
	case d < 10*time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	}
	return d.Round(100 * time.Millisecond).String()
}

// Count is a number with its noun.
func Count(n uint64, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.FormatUint(n, 10) + " " + many
}

func clamp(n, low, high int) int { return min(max(n, low), high) }
