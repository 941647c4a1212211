package search

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/rank"
	"github.com/trawl-search/trawl/index/symbols"
)

// Of a file with more matches than are shown, the best lines are shown, in their order in the file: those with the most of the query's
// texts, and the ones that are rare in the file above all. Whole words, texts next to each other and definitions count more, comments
// and long lines less. Lines are chosen at the start of the file, from the matches of its first consideredText bytes, or as far as there are more than are
// shown. All of this depends on the file alone, and not on how its matches were found: what other files have must not show.

const (
	consideredText  = 128 << 10
	consideredUnits = consideredText / docstore.SuperblockSize
	// considered and consideredShare bound the matches of a text from which lines are chosen.
	considered, consideredShare = 1024, 4
	// lineReach is how far before and after a match the ends of its line are looked for, and how far after a line the body of what it
	// defines: in C, a function without one is only declared.
	lineReach = 256
	// linesPerLook is how many lines are rated, in some 100 µs, between two looks at the clock.
	linesPerLook = 256
	// nextTo is the most bytes between two texts that stand next to each other.
	nextTo = 3
	// shortText is the length up to which parts of words are not marked in a line with a rarer text.
	shortText = 2
	// rareShare is how soon a text counts less that has more matches than another.
	rareShare = .25
	// nextShare is what texts next to each other add, as a share of the rarer one, definedShare what a definition adds, and commentShare
	// what is left of a comment.
	nextShare, definedShare, commentShare = .5, 1, .75
	// longLine is the length in bytes of a line whose score is halved: in long lines texts meet by chance.
	longLine = 500
)

// qualityShare is how much a match counts by its quality.
var qualityShare = [...]float64{rank.None: 0, rank.Inside: .7, rank.Partial: .85, rank.Word: 1}

// mostUnchosen is the most marks of a content that are shown without choosing lines.
func (o *Options) mostUnchosen() int {
	if o.MaxLinesPerFile > 0 {
		return min(o.MaxMatchesPerFile, o.MaxLinesPerFile)
	}
	return o.MaxMatchesPerFile
}

// mostConsidered returns from how many marks of a text lines are chosen.
func (s *search) mostConsidered() int {
	return min(s.opts.mostUnchosen(), math.MaxInt32)*consideredShare + considered
}

// marksUpTo finds the marks of a hit whose matches were only counted, in the words that start in the first superblocks, up to that number. It may
// find some that begin later.
func (s *search) marksUpTo(h *hit, to uint32) ([]mark, error) {
	s.gathered.reset()
	if err := s.readInWords(h.blob, h.inWords, to); err != nil {
		return nil, err
	}
	return s.gathered.settleContent(s.mostConsidered(), s.goOn), s.ended
}

// firstMarks finds marks of a hit whose matches were only counted, at the start of its content: more than are shown, if there are.
func (s *search) firstMarks(h *hit) ([]mark, error) {
	length, err := s.content.Len(h.blob)
	if err != nil {
		return nil, err
	}
	first, end, err := s.superblocksOf(h.blob)
	if err != nil {
		return nil, err
	}
	all := end - first
	for to := s.firstUnits(h, first, all); ; to = min(2*to, all) {
		marks, err := s.marksUpTo(h, to)
		if err != nil {
			return nil, err
		}
		if marks = s.beginning(marks, uint32(min(uint64(to)*docstore.SuperblockSize, uint64(length)))); len(marks) > s.opts.mostUnchosen() || to == all {
			return marks, nil
		}
	}
}

// firstUnits returns how many superblocks at the start of a content, which has all from first on, have more matches than are shown, as far as it is
// known: a multiple of consideredUnits, or all.
func (s *search) firstUnits(h *hit, first, all uint32) uint32 {
	var places []tally
	for i := range h.inWords {
		places = append(places, h.inWords[i].of(first+all)...)
	}
	slices.SortFunc(places, func(a, b tally) int { return cmp.Compare(a.superblock, b.superblock) })
	n := 0
	for i := range places {
		if n += places[i].matches.all(); n > s.opts.mostUnchosen() {
			return min(((places[i].superblock-first)/consideredUnits+1)*consideredUnits, all)
		}
	}
	return min(consideredUnits, all)
}

// beginning keeps the marks from which lines are chosen, of those before an end.
func (s *search) beginning(marks []mark, end uint32) []mark {
	last := func(end uint32) int {
		n, _ := slices.BinarySearchFunc(marks, end, func(m mark, end uint32) int { return cmp.Compare(m.start, end) })
		return n
	}
	n := last(end)
	if most := s.opts.mostUnchosen(); n > most {
		n = last(min(marks[most].start/consideredText*consideredText+consideredText, end))
	}
	return marks[:n]
}

// line has the marks from the first to the one before end.
type line struct {
	first, end int
	score      float64
	most       float64 // the weight of its rarest text
}

// rated is memory for the lines of a file.
type rated struct {
	lines []line
	// By mark.
	qualities []rank.Quality
	scores    []float32
	chosen    []int
}

// chooseLines returns the marks of the best lines, as many lines and marks as are shown, and the scores of their lines, which are valid until the
// next call. It returns all marks if all may be shown.
func (s *search) chooseLines(h *hit, marks []mark) ([]mark, []float32, error) {
	r, err := s.rateLines(h, marks)
	if err != nil || len(marks) <= s.opts.mostUnchosen() {
		return marks, r.scores, err
	}
	lines, chosen := r.lines, r.chosen[:0]
	slices.SortFunc(lines, func(a, b line) int { return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(a.first, b.first)) })
	if most := s.opts.MaxLinesPerFile; most > 0 && len(lines) > most {
		lines = lines[:most]
	}
	for _, l := range lines {
		for i := l.first; i < l.end && len(chosen) < s.opts.MaxMatchesPerFile; i++ {
			if r.says(&l, &marks[i], r.qualities[i]) {
				chosen = append(chosen, i)
			}
		}
	}
	slices.Sort(chosen)
	shown := make([]mark, len(chosen))
	for at, i := range chosen {
		shown[at], r.scores[at] = marks[i], r.scores[i] // i is not before at
	}
	s.rated.chosen = chosen
	return shown, r.scores[:len(chosen)], nil
}

// rateLines rates all lines with marks.
func (s *search) rateLines(h *hit, marks []mark) (*lineRater, error) {
	var matches []int
	for _, m := range marks {
		for len(matches) <= int(m.text) {
			matches = append(matches, 0)
		}
		matches[m.text]++
	}
	weights, least := make([]float64, len(matches)), math.MaxInt
	for _, n := range matches {
		if n > 0 {
			least = min(least, n)
		}
	}
	for i, n := range matches {
		if n > 0 { // 1 for the text with the fewest matches, and less for each time that another has twice as many
			weights[i] = 1 / (1 + rareShare*math.Log2(float64(n)/float64(least)))
		}
	}
	r := &lineRater{
		s: s, h: h, weights: weights, best: make([]rank.Quality, len(matches)), next: make([]float64, len(matches)), rated: s.rated,
		defines: slices.ContainsFunc(h.features.Terms, func(t rank.Term) bool { return t.Defined }),
	}
	r.lines, r.qualities, r.scores = r.lines[:0], r.qualities[:0], r.scores[:0]
	var err error
	if r.length, err = s.content.Len(h.blob); err != nil {
		return r, err
	}
	if r.rules, err = s.rulesOf(h.doc); err != nil {
		return r, err
	}
	for first := 0; first < len(marks); {
		l, err := r.rate(marks, first)
		if err != nil {
			return r, err
		}
		r.lines = append(r.lines, l)
		for ; first < l.end; first++ {
			r.scores = append(r.scores, float32(l.score))
		}
		if len(r.lines)%linesPerLook == 0 {
			if err := s.look(); err != nil {
				return r, err
			}
		}
	}
	s.rated = r.rated
	return r, nil
}

// lineRater rates the lines of a content.
type lineRater struct {
	rated
	s       *search
	h       *hit
	length  uint32            // of the content
	weights []float64         // by text
	rules   *symbols.Language // of definitions; nil if the language has none
	defines bool              // the content defines a text
	best    []rank.Quality    // of the current line, by text
	next    []float64         // to a text, what one that is before it in the query adds by standing next to it in the current line
	defined []symbols.Symbol  // in the current line
	// text is a part of the content that begins at base.
	text []byte
	base uint32
}

// rate rates the line of a mark, the first one in it.
func (r *lineRater) rate(marks []mark, first int) (line, error) {
	begin, end, most, err := r.ends(marks[first])
	if err != nil {
		return line{}, err
	}
	l, text := line{first: first, end: first}, r.text[begin-r.base:end-r.base]
	place := func(at uint32) int { return int(min(at, end) - begin) }
	clear(r.best)
	clear(r.next)
	last := uint32(0)
	for ; l.end == first || l.end < len(marks) && marks[l.end].start < end; l.end++ {
		m := marks[l.end]
		quality := rank.Of(text, place(m.start), place(m.end))
		r.qualities = append(r.qualities, quality)
		r.best[m.text] = max(r.best[m.text], quality)
		if l.end > first && m.text != marks[l.end-1].text && m.start-last <= nextTo {
			before := marks[l.end-1].text
			later := &r.next[max(before, m.text)]
			*later = max(*later, nextShare*min(r.weights[before], r.weights[m.text]))
		}
		last = m.end
	}
	for _, n := range r.next {
		l.score += n
	}
	length, comment := len(text), isComment(text) // finding definitions may read other text
	defined, err := r.definition(marks[first:l.end], begin, min(end+lineReach, most))
	if err != nil {
		return line{}, err
	}
	l.score += definedShare * defined
	for i, quality := range r.best {
		if l.score += r.weights[i] * qualityShare[quality]; quality > rank.None {
			l.most = max(l.most, r.weights[i])
		}
	}
	l.score /= 1 + float64(length)/longLine
	if comment {
		l.score *= commentShare
	}
	return l, nil
}

// definition returns the weights of the texts that are the words of a name that the line defines, which begins at from; what follows it is looked
// at up to to. A name may be one text, or several with nothing but underscores in between.
func (r *lineRater) definition(marks []mark, from, to uint32) (best float64, err error) {
	if r.rules == nil {
		return 0, nil
	}
	r.defined = r.defined[:0]
	for first := 0; first < len(marks); {
		name, n := r.name(marks[first:])
		if n == 0 || n == 1 && !r.defines {
			first++
			continue
		}
		if len(r.defined) == 0 {
			if err := r.cover(from, to); err != nil {
				return 0, err
			}
			if r.defined = r.rules.Append(r.defined, r.text[from-r.base:to-r.base]); len(r.defined) == 0 {
				return 0, nil
			}
		}
		if slices.ContainsFunc(r.defined, func(s symbols.Symbol) bool {
			return s.Start+from == name.start && s.End+from == name.end
		}) {
			best = max(best, r.weigh(marks[first:first+n]))
		}
		first += n
	}
	return best, nil
}

// name returns the name that begins with a mark if marks cover it, and how many they are.
func (r *lineRater) name(marks []mark) (name span, n int) {
	inName := func(at int) bool { return at >= 0 && at < len(r.text) && ngram.IsWord(r.text[at]) }
	first := int(marks[0].start - r.base)
	start, end := first, first
	for start > 0 && r.text[start-1] == '_' {
		start--
	}
	if inName(start - 1) {
		return span{}, 0
	}
	for n < len(marks) && int(marks[n].start-r.base) == end {
		n++
		for end = int(marks[n-1].end - r.base); end < len(r.text) && r.text[end] == '_'; end++ {
		}
	}
	if inName(end) || end > len(r.text) {
		return span{}, 0
	}
	return span{r.base + uint32(start), r.base + uint32(end)}, n
}

// weigh adds the weights of the texts that marks are of, each once.
func (r *lineRater) weigh(marks []mark) (sum float64) {
	for i, m := range marks {
		if !slices.ContainsFunc(marks[:i], func(other mark) bool { return other.text == m.text }) {
			sum += r.weights[m.text]
		}
	}
	return sum
}

// says reports whether a mark says something beside those of its line: letters within a word do not beside a rarer text.
func (r *lineRater) says(l *line, m *mark, quality rank.Quality) bool {
	return quality == rank.Word || m.end-m.start > shortText || r.weights[m.text] == l.most
}

// ends returns where the line of a mark begins and ends, which the text then covers, and where no line that begins in the superblock of the mark
// goes on. The ends are looked for near the mark first: mostly they are there, and reading the rest of the superblock takes longer.
func (r *lineRater) ends(m mark) (begin, end, most uint32, err error) {
	superblock := m.start / docstore.SuperblockSize * docstore.SuperblockSize
	least := superblock - min(superblock, lineReach)
	most = min(superblock+docstore.SuperblockSize+lineReach, r.length)
	from, to := max(superblock, m.start-min(m.start, lineReach)), min(m.end+lineReach, most)
	for {
		if err := r.cover(from, to); err != nil {
			return 0, 0, 0, err
		}
		end = min(m.end, most)
		before, after := r.text[from-r.base:m.start-r.base], r.text[end-r.base:to-r.base]
		newline, next := bytes.LastIndexByte(before, '\n'), bytes.IndexByte(after, '\n')
		switch {
		case newline < 0 && from > superblock:
			from = superblock
		case newline < 0 && from > least:
			from = least
		case next < 0 && to < most:
			to = most
		case next < 0:
			return from + uint32(newline+1), most, most, nil
		default:
			return from + uint32(newline+1), end + uint32(next), most, nil
		}
	}
}

// cover has the bytes [from, to) of the content in the text.
func (r *lineRater) cover(from, to uint32) (err error) {
	if r.base <= from && to <= r.base+uint32(len(r.text)) {
		return nil
	}
	if r.text = r.s.text.part(r.h.blob, from, to-from); r.text == nil {
		r.s.edge, err = r.s.read(r.s.edge[:0], r.h.blob, from, to-from)
		r.text = r.s.edge
	}
	r.base = from
	return err
}

// isComment reports whether a line seems to be a comment, in any language.
func isComment(text []byte) bool {
	text = bytes.TrimLeft(text, " \t")
	if len(text) == 0 || ngram.IsWord(text[0]) {
		return false
	}
	head := string(text[:min(len(text), len("<!--"))]) // no start is longer
	return slices.ContainsFunc(commentStarts, func(start string) bool { return strings.HasPrefix(head, start) })
}

var commentStarts = []string{"//", "/*", "*", "# ", "--", ";", "<!--", `"""`, "%"}
