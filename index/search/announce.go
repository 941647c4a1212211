package search

import (
	"cmp"
	"maps"
	"slices"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/index/heap"
	"github.com/trawl-search/trawl/index/ngram"
	"github.com/trawl-search/trawl/index/query"
	"github.com/trawl-search/trawl/index/regex"
)

// A search reads scattered parts of a shard, and waits for each that comes from a bucket or a disk. So
// it announces what it is about to read, and all of it is loaded at the same time. In a local shard that
// seems to be in memory, announcing does nothing; see format.Section.Announces.

// announceQuery announces what looking up the texts of the query reads: the tables into which nearly every search of contents looks, then the
// parts of the dictionary with the words of the texts, and the lists of n-grams and of parts of words, then the lists of the words.
func (s *search) announceQuery() error {
	if !s.query.inContent || !s.content.Announces() {
		return nil
	}
	s.content.Announce()
	s.docs.AnnounceNames()
	s.shardText.Announce()
	s.words.Announce()
	texts := slices.SortedFunc(maps.Values(s.query.texts), func(a, b *matching) int { return cmp.Compare(a.number, b.number) })
	var words []regex.Literal
	for _, m := range append(texts, s.query.compound...) {
		if m.scope == query.FileName {
			continue
		}
		for l := range regex.Literals(m.needs) {
			found, err := s.announceLiteral(m, l)
			if err != nil {
				return err
			}
			words = append(words, found...)
		}
	}
	for _, l := range words {
		if err := s.words.AnnounceSpellings(l.Text); err != nil {
			return err
		}
	}
	var lists []uint32
	for _, l := range words {
		in, err := s.spelledAs(l, l.Text)
		if err != nil {
			return err
		}
		for word := in.from; word < in.to; word++ {
			lists = append(lists, word)
		}
	}
	slices.Sort(lists)
	if err := s.words.AnnounceLists(slices.Values(slices.Compact(lists))); err != nil {
		return err
	}
	return s.announceOpaque(texts)
}

// announceOpaque announces the opaque superblocks of texts within a word, which looking them up reads after the lists.
func (s *search) announceOpaque(texts []*matching) error {
	opaque, err := s.words.Opaque()
	if err != nil || opaque.Len() == 0 {
		return err
	}
	for _, m := range texts {
		l, ok := m.needs.(regex.Literal)
		if !ok || m.scope == query.FileName {
			continue
		}
		if _, ok := wordText(l); !ok {
			continue
		}
		candidates, some, err := s.opaqueCandidates(&opaque, l)
		if err != nil {
			return err
		}
		if !some || len(candidates) > mostOpaqueAhead && len(texts) > 1 {
			continue
		}
		if err := s.announceRuns(opaqueRuns(&opaque, candidates, m.most)); err != nil {
			return err
		}
	}
	return nil
}

// mostOpaqueAhead is how many opaque superblocks of a text are announced before it is known which of them are read: some other text may
// leave most of them out.
const mostOpaqueAhead = 64

// announceLiteral announces the lists of n-grams and parts that are read to look up a literal of an expression. It returns the whole words whose
// lists may be read.
func (s *search) announceLiteral(m *matching, l regex.Literal) (words []regex.Literal, err error) {
	text, isWord := wordText(l)
	windows := s.literalWindows(l)
	if !isWord {
		for _, p := range piecesOf(l.Text) {
			words = append(words, regex.Literal{Text: p.text, CaseSensitive: l.CaseSensitive})
			if p.ends {
				if err := s.words.AnnounceHolding(p.text); err != nil {
					return nil, err
				}
			}
		}
		return words, s.shardText.AnnounceLiteral(slices.DeleteFunc(windows, func(w ngram.Window) bool { return w.OfWords }))
	}
	part, listed, err := s.listedPart(m)
	if err != nil {
		return nil, err
	}
	if !listed {
		err = s.words.AnnounceHolding(text)
	} else {
		err = s.words.AnnounceLists(slices.Values(slices.DeleteFunc([]uint32{part.Ends, part.Inside}, func(list uint32) bool { return list == 0 })))
	}
	opaque, err2 := s.words.Opaque()
	if err = cmp.Or(err, err2); err == nil && opaque.Len() > 0 {
		err = s.shardText.AnnounceLiteral(windows)
	}
	return append(words, regex.Literal{Text: text, CaseSensitive: l.CaseSensitive}), err
}

// announceLists announces that the lists of words will be read.
func (s *search) announceLists(found []wordMatch) error {
	return s.words.AnnounceLists(func(yield func(uint32) bool) {
		for i := range found {
			if !yield(found[i].word) {
				return
			}
		}
	})
}

// announceShown announces the text of the matches that will be shown.
func (s *search) announceShown(hits []Hit) error {
	if !s.content.Announces() {
		return nil
	}
	var text []docstore.Run
	for i := range hits {
		h := &hits[i].hit
		first, end, err := s.superblocksOf(h.blob)
		if err != nil {
			return err
		}
		if h.onPath {
			continue
		}
		for _, m := range unpackMarks(h.marks) {
			text = append(text, around(first+m.start/docstore.SuperblockSize, first, end))
		}
		to := end - first
		if h.matches > s.opts.mostUnchosen() {
			to = s.firstUnits(h, first, to)
		}
		for j := range h.inWords {
			tallies, whole := h.inWords[j].find(first, to)
			if whole {
				text = append(text, docstore.Run{From: first, To: first + min(to+1, end-first)}) // the last match may go on
				continue
			}
			for _, t := range tallies {
				text = append(text, around(t.superblock, first, end))
			}
		}
	}
	return s.announceText(text)
}

// announceText announces runs of superblocks, in any order and with repetitions. It changes the slice.
func (s *search) announceText(text []docstore.Run) error {
	slices.SortFunc(text, func(a, b docstore.Run) int { return cmp.Compare(a.From, b.From) })
	var joined runs
	for _, run := range text {
		joined = joined.add(run.From, run.To)
	}
	return s.content.AnnounceSuperblocks(slices.Values(joined.numbers()))
}

// wholeSuperblocks is how many superblocks of a content are announced that is probably read whole: of few is the rest waited for.
const wholeSuperblocks = 256

// around returns a superblock of a content, which has those of [first, end), and its neighbours: lines, words and matches cross the borders, and
// neighbours are mostly in the same block.
func around(at, first, end uint32) docstore.Run {
	return docstore.Run{From: max(at, first+1) - 1, To: min(at+2, end)}
}

// mostCandidatesAhead and leastCandidatesAhead bound how many of the candidates in the queue are announced before the search takes the first. A search for few
// documents takes few. Later it announces twice as many as it has taken, up to longQueueAhead: one that has taken many without finding the best will take many more.
const (
	mostCandidatesAhead  = 64
	leastCandidatesAhead = 8
	longQueueAhead       = 1024
)

// announceQueue announces the text that the next candidates of the queue may need.
func (s *search) announceQueue() error {
	q, ahead := s.queue, mostCandidatesAhead
	if s.opts.Mode == TopK {
		ahead = min(max(2*s.opts.MaxFiles, leastCandidatesAhead), mostCandidatesAhead)
	}
	if q.taken < q.announceAt || !s.content.Announces() {
		return nil
	}
	ahead = min(max(ahead, 2*q.taken), longQueueAhead)
	q.announceAt = q.taken + ahead/2
	return s.announceCandidates(heap.First(q.waiting, ahead, compareCandidates))
}

// announceCandidates announces the text that candidates may need.
func (s *search) announceCandidates(next []candidate) error {
	byText, err := s.shard.OtherwiseMarked(s.tick)
	if err != nil {
		return err
	}
	whole := slices.ContainsFunc(s.reading, func(a *contentAtom) bool { return a.anchors == nil })
	var text []docstore.Run
	for i := range next {
		blob := next[i].blob
		first, end, err := s.superblocksOf(blob)
		if err != nil {
			return err
		}
		if whole || len(s.defining) > 0 && holds(byText, blob) {
			text = append(text, docstore.Run{From: first, To: first + min(wholeSuperblocks, end-first)})
		}
		for _, a := range s.reading {
			for _, l := range a.anchors {
				for _, t := range l.in(first, end) {
					text = append(text, around(t.superblock, first, end))
				}
			}
		}
		if t := &s.together; t.find(blob) && !t.read[t.at] {
			for _, place := range t.places[t.firsts[t.at]:t.firsts[t.at+1]] {
				text = append(text, around(place, first, end))
			}
		}
	}
	return s.announceText(text)
}

// announceLong announces the bytes [from, to) of a content that are about to be read, if they are more than was announced with its candidate.
func (s *search) announceLong(blob, from, to uint32) error {
	if to <= wholeSuperblocks*docstore.SuperblockSize || !s.content.Announces() {
		return nil
	}
	first, err := s.content.FirstSuperblock(blob)
	if err != nil {
		return err
	}
	return s.announceText([]docstore.Run{{From: first + from/docstore.SuperblockSize, To: first + (to-1)/docstore.SuperblockSize + 1}})
}

// announceRuns announces the opaque superblocks that will be read, and those around them, in which their words may begin and end.
func (s *search) announceRuns(opaque runs) error {
	if !s.content.Announces() {
		return nil
	}
	var text []docstore.Run
	for _, run := range opaque {
		text = append(text, docstore.Run{From: max(run.From, 1) - 1, To: run.To + 1})
	}
	return s.announceText(text)
}

// announce announces the text of all windows of the blob.
func (w *windows) announce(first uint32) error {
	if !w.s.content.Announces() {
		return nil
	}
	var text []docstore.Run
	for _, window := range w.all {
		text = append(text, docstore.Run{From: first + uint32(window.lo/docstore.SuperblockSize), To: first + docstore.SuperblocksOf(uint64(window.hi))})
	}
	return w.s.announceText(text)
}
