package eliasfano

import (
	"bytes"
	"math"
	"slices"
	"sort"
	"testing"

	"pgregory.net/rapid"
)

// drawValues draws ascending values of very different shapes: dense, sparse,
// clustered, all the same.
func drawValues(t *rapid.T) (values []uint64, universe uint64) {
	universe = rapid.OneOf(
		rapid.Uint64Range(1, 20),
		rapid.Uint64Range(1, 5000),
		rapid.Uint64Range(1, math.MaxUint32),
		rapid.Just(uint64(math.MaxUint64)),
	).Draw(t, "universe")
	n := rapid.OneOf(rapid.IntRange(0, 10), rapid.IntRange(0, 4000)).Draw(t, "n")
	seed := rapid.Uint64().Draw(t, "seed")
	cluster := rapid.SampledFrom([]uint64{1, 3, 1 << 10, math.MaxUint64}).Draw(t, "cluster")
	for range n {
		seed = seed*6364136223846793005 + 1442695040888963407
		v := (seed >> 7) % min(universe, cluster)
		if cluster != math.MaxUint64 && seed>>60 == 0 {
			v = universe - 1 - v
		}
		values = append(values, v)
	}
	slices.Sort(values)
	return values, universe
}

func encode(t *rapid.T, values []uint64, universe uint64) List {
	data, err := Append([]byte("before"), values, universe)
	if err != nil {
		t.Fatal(err)
	}
	list, used, err := Open(append(data, "after"...)[6:])
	if err != nil {
		t.Fatal(err)
	}
	if used != len(data)-6 {
		t.Fatalf("used %d of %d bytes", used, len(data)-6)
	}
	return list
}

func TestListIsTheSlice(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values, universe := drawValues(t)
		list := encode(t, values, universe)
		if list.Len() != len(values) || list.Universe() != universe {
			t.Fatalf("%d values below %d, want %d below %d", list.Len(), list.Universe(), len(values), universe)
		}
		start := rapid.IntRange(0, len(values)).Draw(t, "start")
		it := list.From(start)
		for i, v := range values {
			if got := list.At(i); got != v {
				t.Fatalf("At(%d) = %d, want %d", i, got, v)
			}
			var next uint64
			if i+1 < len(values) {
				next = values[i+1]
			}
			if a, b := list.At2(i); a != v || b != next {
				t.Fatalf("At2(%d) = %d, %d, want %d, %d", i, a, b, v, next)
			}
			if i >= start {
				if got, ok := it.Next(); !ok || got != v {
					t.Fatalf("value %d from the iterator: %d %v, want %d", i, got, ok, v)
				}
			}
		}
		if v, ok := it.Next(); ok {
			t.Fatalf("iterator goes on to %d", v)
		}
		if list.At(-1) != 0 || list.At(len(values)) != 0 {
			t.Fatal("values where there are none")
		}
	})
}

func TestSearchIsBinarySearch(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values, universe := drawValues(t)
		list := encode(t, values, universe)
		probes := rapid.SliceOfN(rapid.Uint64Range(0, universe), 1, 20).Draw(t, "probes")
		for _, v := range values {
			probes = append(probes, v-1, v, v+1) // wraps around at the ends, which is fine
		}
		for _, x := range probes {
			want := sort.Search(len(values), func(i int) bool { return values[i] >= x })
			if got := list.Search(x); got != want {
				t.Fatalf("Search(%d) = %d, want %d", x, got, want)
			}
			equal := want < len(values) && values[want] == x
			if i, e := list.Find(x); i != want || e != equal {
				t.Fatalf("Find(%d) = %d %v, want %d %v", x, i, e, want, equal)
			}
			last := sort.Search(len(values), func(i int) bool { return values[i] > x }) - 1
			if got := list.Last(x); got != last {
				t.Fatalf("Last(%d) = %d, want %d", x, got, last)
			}
		}
	})
}

func TestSelectInWord(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := rapid.Uint64().Draw(t, "word")
		var k uint
		for pos := range 64 {
			if w>>pos&1 == 1 {
				if got := selectInWord(w, k); got != pos {
					t.Fatalf("one %d of %x is at %d, want %d", k, w, got, pos)
				}
				k++
			}
		}
	})
}

// TestLong has enough values for every part of the directory to matter.
func TestLong(t *testing.T) {
	const n = 300_000
	values := make([]uint64, n)
	v := uint64(0)
	for i := range values {
		if i%70_000 == 1 {
			v += 1 << 30 // a gap that leaves whole blocks without a one
		}
		values[i] = v
		if i/1000%3 != 0 { // and runs of one value that leave them without a zero
			v += uint64(i % 1400)
		}
	}
	data, err := Append(nil, values, v+1)
	if err != nil {
		t.Fatal(err)
	}
	list, _, err := Open(data)
	if err != nil {
		t.Fatal(err)
	}
	it := list.From(0)
	for i, want := range values {
		if got, ok := it.Next(); !ok || got != want || list.At(i) != want {
			t.Fatalf("value %d: %d by iterator, %d by At, want %d", i, got, list.At(i), want)
		}
		if j := list.Search(want); values[j] != want || j > 0 && values[j-1] == want {
			t.Fatalf("Search(%d) = %d", want, j)
		}
	}
	bound := float64(n) * (2.5 + math.Log2(float64(v)/n)) / 8
	if float64(len(data)) > bound {
		t.Errorf("%d bytes, want at most %.0f", len(data), bound)
	}
}

func TestBuilderRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		n        int
		universe uint64
		values   []uint64
	}{
		"descending":   {2, 10, []uint64{5, 4}},
		"too large":    {1, 10, []uint64{10}},
		"too many":     {1, 10, []uint64{1, 2}},
		"too few":      {3, 10, []uint64{1, 2}},
		"no universe":  {1, 0, []uint64{0}},
		"far too many": {MaxLen + 1, 10, nil},
		"negative":     {-1, 10, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b := NewBuilder(c.n, c.universe)
			for _, v := range c.values {
				_ = b.Add(v) // the error stays
			}
			if data, err := b.AppendTo(nil); err == nil {
				t.Errorf("gives %x", data)
			}
			if _, err := b.WriteTo(new(bytes.Buffer)); err == nil {
				t.Error("is written")
			}
		})
	}
}

// exercise calls every method. It fails if a value is not below the universe.
func exercise(t *testing.T, list *List) {
	n := list.Len()
	checkValue := func(v uint64) {
		if n > 0 && v >= list.Universe() {
			t.Fatalf("value %d is not below %d", v, list.Universe())
		}
	}
	for _, i := range []int{-1, 0, 1, 7, n / 2, n - 2, n - 1, n} {
		checkValue(list.At(i))
		a, b := list.At2(i)
		checkValue(a)
		checkValue(b)
		it := list.From(i)
		for range 100 {
			v, ok := it.Next()
			if !ok {
				break
			}
			checkValue(v)
		}
	}
	for _, x := range []uint64{0, 1, 100, list.Universe() / 2, list.Universe() - 1, list.Universe(), math.MaxUint64} {
		if i := list.Search(x); i < 0 || i > n {
			t.Fatalf("Search(%d) = %d of %d", x, i, n)
		}
		if i := list.Last(x); i < -1 || i >= n {
			t.Fatalf("Last(%d) = %d of %d", x, i, n)
		}
	}
}

func FuzzOpen(f *testing.F) {
	for _, n := range []int{0, 1, 5, 700} {
		values := make([]uint64, n)
		for i := range values {
			values[i] = uint64(i * i)
		}
		data, err := Append(nil, values, uint64(n*n+1))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add([]byte{1, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		list, used, err := Open(data)
		if err != nil {
			return
		}
		if used > len(data) {
			t.Fatalf("uses %d of %d bytes", used, len(data))
		}
		exercise(t, &list)
	})
}

// TestHostile flips every byte, and truncates everywhere.
func TestHostile(t *testing.T) {
	values := make([]uint64, 900)
	for i := range values {
		values[i] = uint64(i * 37)
	}
	data, err := Append(nil, values, 40_000)
	if err != nil {
		t.Fatal(err)
	}
	for cut := range data {
		if _, _, err := Open(data[:cut]); err == nil {
			t.Fatalf("opens when cut at %d of %d", cut, len(data))
		}
	}
	for i := range data {
		for _, flip := range []byte{0x01, 0x80, 0xff} {
			bad := slices.Clone(data)
			bad[i] ^= flip
			if list, _, err := Open(bad); err == nil {
				exercise(t, &list)
			}
		}
	}
}

func TestReadsAllocateNothing(t *testing.T) {
	data, err := Append(nil, []uint64{1, 5, 900, 70_000}, 100_000)
	if err != nil {
		t.Fatal(err)
	}
	list, _, _ := Open(data)
	var sum uint64
	if n := testing.AllocsPerRun(100, func() {
		a, b := list.At2(1)
		it := list.From(0)
		v, _ := it.Next()
		sum += list.At(2) + a + b + v + uint64(list.Search(77))
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkAt(b *testing.B) { benchmark(b, func(l *List, i int) uint64 { return l.At(i) }) }
func BenchmarkAt2(b *testing.B) {
	benchmark(b, func(l *List, i int) uint64 { x, y := l.At2(i); return x + y })
}
func BenchmarkSearch(b *testing.B) {
	benchmark(b, func(l *List, i int) uint64 { return uint64(l.Search(uint64(i) * 1000)) })
}

func benchmark(b *testing.B, read func(*List, int) uint64) {
	const n = 1 << 18
	values := make([]uint64, n)
	for i := range values {
		values[i] = uint64(i)*1000 + uint64(i*7919%1000)
	}
	data, err := Append(nil, values, n*1000)
	if err != nil {
		b.Fatal(err)
	}
	list, _, _ := Open(data)
	var sum uint64
	i := 0
	for b.Loop() {
		i = (i + 7919*31) & (n - 1)
		sum += read(&list, i)
	}
	_ = sum
	b.ReportMetric(float64(len(data)*8)/n, "bits/value")
}
