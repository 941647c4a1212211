package zoekt

import (
	"bytes"
	"encoding/json"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/trawl-search/trawl/internal/testrun"
)

// TestReplyIsThatOfEncodingJSON: replies with random values in all fields are written as encoding/json writes them.
func TestReplyIsThatOfEncodingJSON(t *testing.T) {
	rng := testrun.Rand(t)
	for range testrun.Rounds(300, 3000) {
		var r searchReply
		fill(rng, reflect.ValueOf(&r).Elem(), 0)
		var want bytes.Buffer
		if err := json.NewEncoder(&want).Encode(&r); err != nil {
			t.Fatal(err)
		}
		got, err := r.appendJSON(nil)
		if err != nil || !bytes.Equal(got, want.Bytes()) {
			t.Fatalf("%v\n got %s\nwant %s", err, got, want.Bytes())
		}
	}
}

var texts = []string{"", "a", "pkg/file_test.go", "<b>&amp;", "\"\\", "\x00\x1f\n\t", "\x7f", "é☃", "\xff\xfe", "\u2028", "~ !"}

// fill gives a value, and all that is in it, random contents.
func fill(rng *rand.Rand, v reflect.Value, depth int) {
	switch v.Kind() {
	case reflect.Struct:
		for _, f := range v.Fields() {
			if f.CanSet() {
				fill(rng, f, depth)
			} else {
				fill(rng, reflect.NewAt(f.Type(), f.Addr().UnsafePointer()).Elem(), depth)
			}
		}
	case reflect.String:
		v.SetString(texts[rng.IntN(len(texts))] + texts[rng.IntN(len(texts))])
	case reflect.Bool:
		v.SetBool(rng.IntN(2) == 0)
	case reflect.Int, reflect.Int64:
		v.SetInt([]int64{0, 1, -1, 77, math.MaxInt64, math.MinInt64}[rng.IntN(6)])
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(rng.Uint64() >> (64 - rng.IntN(v.Type().Bits()+1)))
	case reflect.Float64:
		v.SetFloat([]float64{0, 1, -7.25, 1e-7, -1e-6, 1e20, 1e21, 123456789.123, math.Copysign(0, -1), math.MaxFloat64, math.SmallestNonzeroFloat64}[rng.IntN(11)])
	case reflect.Slice:
		n := rng.IntN(4) - 1
		if n < 0 || depth > 6 {
			return // nil
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			fill(rng, v.Index(i), depth+1)
		}
	case reflect.Map:
		if n := rng.IntN(4); n > 0 {
			v.Set(reflect.MakeMap(v.Type()))
			for range n - 1 {
				v.SetMapIndex(reflect.ValueOf(texts[rng.IntN(len(texts))]), reflect.ValueOf(texts[rng.IntN(len(texts))]))
			}
		}
	case reflect.Pointer:
		if rng.IntN(3) > 0 {
			v.Set(reflect.New(v.Type().Elem()))
			fill(rng, v.Elem(), depth+1)
		}
	default:
		panic(v.Kind())
	}
}
