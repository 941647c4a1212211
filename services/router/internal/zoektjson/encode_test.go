package zoektjson

import (
	"bytes"
	"encoding/json"
	"math"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// drawReply draws a reply with any value in any of its fields, those that are added
// later included.
func drawReply(t *rapid.T) *searchReply {
	var r searchReply
	fill(t, reflect.ValueOf(&r).Elem())
	return &r
}

func fill(t *rapid.T, v reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for _, field := range v.Fields() {
			fill(t, field)
		}
	case reflect.Slice:
		n := rapid.IntRange(-1, 3).Draw(t, "length")
		if n < 0 {
			return // nil
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(t, v.Index(i))
		}
	case reflect.Map:
		if rapid.Bool().Draw(t, "map") {
			v.Set(reflect.ValueOf(map[string]string{"<name>": "&"}))
		}
	case reflect.String:
		v.SetString(rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"", "plain", "<&>\"\\\n\x7f", "\xff\xfe", "\u2028 é 漢"})).Draw(t, "text"))
	case reflect.Bool:
		v.SetBool(rapid.Bool().Draw(t, "truth"))
	case reflect.Float64:
		v.SetFloat(rapid.OneOf(rapid.Float64(), rapid.SampledFrom([]float64{0, math.Copysign(0, -1), 1, 1e21, 1e-7, 1.5e-9, math.MaxFloat64})).Draw(t, "float"))
	case reflect.Int, reflect.Int64:
		v.SetInt(rapid.Int64().Draw(t, "int"))
	case reflect.Pointer: // always null
	default:
		v.SetUint(rapid.Uint64().Draw(t, "uint") >> (64 - v.Type().Bits()))
	}
}

// TestEncode: a reply is written as encoding/json writes it, byte for byte.
func TestEncode(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := drawReply(t)
		var want bytes.Buffer
		if err := json.NewEncoder(&want).Encode(r); err != nil {
			t.Fatal(err)
		}
		got, err := appendReply([]byte("before"), r)
		if err != nil {
			t.Fatal(err)
		}
		if got = bytes.TrimPrefix(got, []byte("before")); !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("got\n%s\nwant\n%s", got, want.Bytes())
		}
	})
}

// TestEncodeRefuses: what has no form in JSON is an error and not a broken answer.
func TestEncodeRefuses(t *testing.T) {
	r := &searchReply{Result: searchResult{Files: []fileMatch{{Score: math.NaN()}}}}
	if _, err := appendReply(nil, r); err == nil {
		t.Fatal("a score that is no number was encoded")
	}
}
