package eliasfano

import (
	"bytes"
	"errors"
	"testing"

	"github.com/trawl-search/trawl/index/format"
)

// shard makes a shard of one section.
func shard(t *testing.T, data []byte) *format.File {
	t.Helper()
	var buf bytes.Buffer
	w := format.NewWriter(&buf)
	_ = w.WriteSection(format.TagLines, format.Required, data) // errors stay
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := format.NewFile("test.trawl", buf.Bytes())
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestColumn(t *testing.T) {
	data, err := Append(nil, []uint64{3, 7, 7}, 9)
	if err != nil {
		t.Fatal(err)
	}
	var good Column
	if err := good.Open(shard(t, data), format.TagLines, 3, 9); err != nil {
		t.Fatal(err)
	}
	list, err := good.List()
	if err != nil || list.At(1) != 7 {
		t.Fatalf("%v %v", list, err)
	}
	for name, c := range map[string]struct {
		data     []byte
		n        int
		universe uint64
	}{
		"other length":   {data, 4, 9},
		"other universe": {data, 3, 10},
		"cut":            {data[:len(data)-1], 3, 9},
		"longer":         {append(bytes.Clone(data), 0), 3, 9},
		"empty":          {nil, 3, 9},
	} {
		t.Run(name, func(t *testing.T) {
			var bad Column
			if err := bad.Open(shard(t, c.data), format.TagLines, c.n, c.universe); err != nil {
				t.Fatal(err)
			}
			for range 2 { // the error stays
				var corrupt *format.CorruptError
				if _, err := bad.List(); !errors.As(err, &corrupt) || corrupt.Section != "LINE" || corrupt.File != "test.trawl" {
					t.Fatalf("error %v", err)
				}
			}
		})
	}
}
