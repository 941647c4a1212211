package config

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
)

// leaves are the types that a setting can have, with the word for each and the form
// of its text, which completes a sentence that starts with "want".
var leaves = map[reflect.Type]struct{ word, want string }{
	reflect.TypeFor[string]():        {"string", "a string (in YAML: in quotes)"},
	reflect.TypeFor[bool]():          {"bool", "true or false"},
	reflect.TypeFor[int]():           {"int", "a whole number"},
	reflect.TypeFor[int32]():         {"int", "a whole number"},
	reflect.TypeFor[int64]():         {"int", "a whole number"},
	reflect.TypeFor[uint]():          {"uint", "a whole number, not negative"},
	reflect.TypeFor[uint32]():        {"uint", "a whole number, not negative"},
	reflect.TypeFor[uint64]():        {"uint", "a whole number, not negative"},
	reflect.TypeFor[float64]():       {"float", "a number"},
	reflect.TypeFor[time.Duration](): {"duration", "a duration with its unit, such as 1m30s"},
	reflect.TypeFor[Bytes]():         {"bytes", "a number of bytes, such as 65536, 64KiB or 2GiB"},
	reflect.TypeFor[[]string]():      {"list", "a list of strings, separated by commas"},
}

func isLeaf(t reflect.Type) bool {
	_, ok := leaves[t]
	return ok
}

func typeName(t reflect.Type) string { return leaves[t].word }

// parse sets dst, of a type in leaves, from text or from a YAML value. The error
// completes a sentence that starts with "want".
func parse(dst reflect.Value, raw any) error {
	if list, ok := raw.([]any); ok && dst.Kind() == reflect.Slice {
		return parseList(dst, list)
	}
	text, err := textOf(dst.Type(), raw)
	if err != nil {
		return err
	}
	err = parseText(dst, text)
	var own *wantError
	if err != nil && !errors.As(err, &own) {
		return &wantError{leaves[dst.Type()].want}
	}
	return err
}

// wantError is an error that already completes "want …".
type wantError struct{ want string }

func (e *wantError) Error() string { return e.want }

// textOf converts a YAML scalar to the form of variables and flags. It refuses a
// number in place of a string, since YAML would have turned 0012 into 10, and a null,
// which would silently differ from the default.
func textOf(t reflect.Type, raw any) (string, error) {
	if s, ok := raw.(string); ok {
		return s, nil
	}
	switch raw.(type) {
	case bool, int, int64, uint64, float64:
		if k := t.Kind(); k != reflect.String && k != reflect.Slice {
			return fmt.Sprint(raw), nil
		}
	}
	return "", &wantError{leaves[t].want}
}

func parseList(dst reflect.Value, list []any) error {
	out := make([]string, len(list))
	for i, item := range list {
		s, ok := item.(string)
		if !ok {
			return &wantError{leaves[dst.Type()].want}
		}
		out[i] = s
	}
	dst.Set(reflect.ValueOf(out))
	return nil
}

func parseText(dst reflect.Value, text string) error {
	switch p := dst.Addr().Interface().(type) {
	case *time.Duration:
		d, err := time.ParseDuration(text)
		*p = d
		return err
	case *Bytes:
		return p.UnmarshalText([]byte(text))
	case *[]string:
		*p = splitList(text)
		return nil
	}
	return parseBasic(dst, text)
}

func parseBasic(dst reflect.Value, text string) (err error) {
	bits := func() int { return dst.Type().Bits() }
	switch dst.Kind() {
	case reflect.String:
		dst.SetString(text)
	case reflect.Bool:
		var b bool
		b, err = strconv.ParseBool(text)
		dst.SetBool(b)
	case reflect.Int, reflect.Int32, reflect.Int64:
		var n int64
		n, err = strconv.ParseInt(text, 10, bits())
		dst.SetInt(n)
	case reflect.Uint, reflect.Uint32, reflect.Uint64:
		var n uint64
		n, err = strconv.ParseUint(text, 10, bits())
		dst.SetUint(n)
	case reflect.Float64:
		var x float64
		x, err = strconv.ParseFloat(text, 64)
		dst.SetFloat(x)
	}
	return err
}

// splitList splits at commas; spaces around an item and an empty text do not
// count.
func splitList(text string) []string {
	var out []string
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return out
}

// format is the inverse of parse.
func format(v reflect.Value) string {
	if list, ok := reflect.TypeAssert[[]string](v); ok {
		return strings.Join(list, ",")
	}
	return fmt.Sprint(v.Interface())
}
