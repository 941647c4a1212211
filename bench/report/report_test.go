package report

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func TestPercentile(t *testing.T) {
	ten := []int{10, 1, 9, 2, 8, 3, 7, 4, 6, 5}
	for _, c := range []struct {
		values []int
		p      float64
		want   int
	}{
		{ten, 50, 5}, {ten, 51, 6}, {ten, 99, 10}, {ten, 100, 10}, {ten, 1, 1}, {ten, 90, 9},
		{[]int{7}, 50, 7}, {[]int{7}, 99, 7}, {nil, 50, 0}, {[]int{2, 1}, 50, 1},
	} {
		if got := Percentile(c.values, c.p); got != c.want {
			t.Errorf("percentile %g of %v is %d, not %d", c.p, c.values, got, c.want)
		}
	}
	if ten[0] != 10 {
		t.Error("Percentile sorted its argument")
	}
}

func TestGeometricMean(t *testing.T) {
	if got := GeometricMean([]float64{1, 4, 16}); math.Abs(got-4) > 1e-9 {
		t.Errorf("the mean of 1, 4, 16 is %g, not 4", got)
	}
	if got := GeometricMean(nil); got != 0 {
		t.Errorf("the mean of nothing is %g", got)
	}
}

func TestMilliseconds(t *testing.T) {
	for d, want := range map[time.Duration]string{
		123 * time.Microsecond: "0.123", 12340 * time.Microsecond: "12.34", 1234 * time.Millisecond: "1234",
	} {
		if got := Milliseconds(d); got != want {
			t.Errorf("%s is written %s, not %s", d, got, want)
		}
	}
}

func TestBarDoubles(t *testing.T) {
	short, long := Bar(time.Millisecond), Bar(4*time.Millisecond)
	if got := utf8.RuneCountInString(long) - utf8.RuneCountInString(short); got != 4 {
		t.Errorf("four times as long is %d characters more, not 4", got)
	}
}

func TestTableAligns(t *testing.T) {
	var table Table
	table.Row("", "n")
	table.Row("é", "10")
	table.Row("long", "9")
	var b strings.Builder
	table.Write(&b)
	if want := "         n\n  é     10\n  long   9\n"; b.String() != want {
		t.Errorf("got\n%swant\n%s", b.String(), want)
	}
}
