package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"strconv"
	"strings"
)

// Bytes is a number of bytes, written with an optional unit: 65536, 64KiB, 2GiB
// (powers of 1024: KiB, MiB, GiB, TiB) or 2GB (powers of 1000: kB, MB, GB, TB). A
// parsed one is never negative.
type Bytes int64

// The binary multiples of a byte.
const (
	KiB Bytes = 1 << 10
	MiB Bytes = 1 << 20
	GiB Bytes = 1 << 30
	TiB Bytes = 1 << 40
)

// units lists the units, those that String uses first.
var units = []struct {
	name string
	size Bytes
}{
	{"TiB", TiB}, {"GiB", GiB}, {"MiB", MiB}, {"KiB", KiB},
	{"TB", 1e12}, {"GB", 1e9}, {"MB", 1e6}, {"kB", 1e3}, {"B", 1},
}

var errBytes = errors.New("not a number of bytes")

// String is the shortest exact form: 64KiB, not 65536.
func (b Bytes) String() string {
	for _, u := range units[:4] {
		if b != 0 && b%u.size == 0 {
			return strconv.FormatInt(int64(b/u.size), 10) + u.name
		}
	}
	return strconv.FormatInt(int64(b), 10)
}

// MarshalText implements encoding.TextMarshaler.
func (b Bytes) MarshalText() ([]byte, error) { return []byte(b.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *Bytes) UnmarshalText(text []byte) error {
	number, unit := string(text), Bytes(1)
	for _, u := range units {
		if n, ok := strings.CutSuffix(number, u.name); ok {
			number, unit = strings.TrimSpace(n), u.size
			break
		}
	}
	n, err := strconv.ParseUint(number, 10, 63)
	if err != nil || Bytes(n) > math.MaxInt64/unit {
		return fmt.Errorf("%q: %w", text, errBytes)
	}
	*b = Bytes(n) * unit
	return nil
}

const redacted = "[redacted]"

// Secret is a text that is never shown: formatted, logged or marshalled it is
// "[redacted]" (or empty). Convert it to a string to use it. No setting is a secret:
// settings name the files of secrets, which are read again when they are used.
type Secret string

// String implements fmt.Stringer.
func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return redacted
}

// GoString implements fmt.GoStringer, for %#v.
func (s Secret) GoString() string { return strconv.Quote(s.String()) }

// LogValue implements slog.LogValuer.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText implements encoding.TextMarshaler.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// ReadFile reads a whole file, or fails if it has more than limit bytes. Its errors name the file.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	if int64(len(content)) > limit {
		return nil, fmt.Errorf("%s is larger than %s", path, Bytes(limit))
	}
	return content, nil
}
