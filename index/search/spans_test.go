package search

import (
	"testing"

	"pgregory.net/rapid"
)

func TestSettleKeepsEarlierThenLonger(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var spans []span
		for range rapid.IntRange(0, 12).Draw(t, "n") {
			start := rapid.Uint32Range(0, 20).Draw(t, "start")
			spans = append(spans, span{start: start, end: start + rapid.Uint32Range(1, 6).Draw(t, "len")})
		}
		all := append([]span(nil), spans...)
		kept := settle(spans)
		for i := 1; i < len(kept); i++ {
			if kept[i].start < kept[i-1].end {
				t.Fatalf("%v overlap", kept)
			}
		}
		for _, s := range all {
			covered := false
			for _, k := range kept {
				better := k.start < s.start || k.start == s.start && k.end >= s.end
				covered = covered || better && k.end > s.start
			}
			if !covered {
				t.Fatalf("%v was dropped from %v although nothing better overlaps it: %v", s, all, kept)
			}
		}
	})
}

// TestSettleContent: ranges in several lists are settled as if they were in one.
func TestSettleContent(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var g gathered
		var all []span
		for range rapid.IntRange(0, 5).Draw(t, "lists") {
			l := spanList{text: int32(len(g.content))}
			for range rapid.IntRange(1, 12).Draw(t, "n") {
				start := l.end + rapid.OneOf(rapid.Uint32Range(0, 4), rapid.Uint32Range(0, 300)).Draw(t, "gap")
				s := span{start, start + rapid.OneOf(rapid.Uint32Range(1, 6), rapid.Uint32Range(1, 300)).Draw(t, "length")}
				l.add(s)
				all = append(all, s)
			}
			g.content = append(g.content, &l)
		}
		want := settle(all)
		limit := rapid.IntRange(0, 40).Draw(t, "limit")
		shown := g.settleContent(limit, func() bool { return true })
		of := map[int32]int{}
		for _, m := range shown {
			of[m.text]++
			for len(want) > 0 && want[0] != m.span && of[m.text] <= limit { // of a text that has enough
				want = want[1:]
			}
			if len(want) == 0 || of[m.text] > limit {
				t.Fatalf("%v are shown", shown)
			}
			want = want[1:]
		}
		enough := false
		for _, n := range of {
			enough = enough || n == limit
		}
		if len(want) > 0 && !enough && limit > 0 {
			t.Fatalf("%v are shown, and then %v", shown, want)
		}
	})
}
