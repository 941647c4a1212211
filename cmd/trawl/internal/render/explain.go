package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// columns is the maximum width of an explanation.
const columns = 100

// methodWords say how a node was answered.
var methodWords = map[searchv1.AnswerMethod]string{
	searchv1.AnswerMethod_ANSWER_METHOD_WORDS:          "words alone",
	searchv1.AnswerMethod_ANSWER_METHOD_WORDS_TEXT:     "words, then text",
	searchv1.AnswerMethod_ANSWER_METHOD_NGRAMS_TEXT:    "n-grams, then text",
	searchv1.AnswerMethod_ANSWER_METHOD_CANDIDATE_TEXT: "text of candidates",
	searchv1.AnswerMethod_ANSWER_METHOD_EVERY_TEXT:     "all text",
	searchv1.AnswerMethod_ANSWER_METHOD_NAMES:          "n-grams, then paths",
	searchv1.AnswerMethod_ANSWER_METHOD_EVERY_NAME:     "all paths",
	searchv1.AnswerMethod_ANSWER_METHOD_CANDIDATE_NAME: "paths of candidates",
	searchv1.AnswerMethod_ANSWER_METHOD_COLUMN:         "a property of each document",
	searchv1.AnswerMethod_ANSWER_METHOD_RANGES:         "ranges of documents, by paths and properties",
	searchv1.AnswerMethod_ANSWER_METHOD_WHOLE_SHARD:    "every document of the shard matches",
	searchv1.AnswerMethod_ANSWER_METHOD_NO_DOCUMENT:    "no document of the shard matches",
	searchv1.AnswerMethod_ANSWER_METHOD_NOT_ASKED:      "not asked: the shard is excluded",
}

// Explanation prints how a query was answered, and how many of its shards were searched.
func (t *Text) Explanation(e *searchv1.Explanation, searched uint64) error {
	var b strings.Builder
	if t.files > 0 {
		b.WriteByte('\n')
	}
	row(&b, "Plan of "+Count(e.GetShards(), "shard", "shards"), "estimate", "checked", "matched", "time")
	for _, n := range e.GetNodes() {
		explainNode(&b, n, e.GetShards())
	}
	if n := e.GetNodesLeftOut(); n > 0 {
		b.WriteString("  … and " + Count(n, "more node", "more nodes") + "\n")
	}
	wrap(&b, 0, "Documents: ", documents(e))
	wrap(&b, 0, "Read for no node alone, and to show files: ", readParts(e.GetOther()))
	wrap(&b, 0, "Time in shards: ", phaseParts(e.GetPhases()))
	for _, s := range e.GetSlowestShards() {
		fmt.Fprintf(&b, "Slow shard: %x, %s, of %s\n", s.GetDigest()[:min(6, len(s.GetDigest()))], Duration(s.GetTime().AsDuration()), reposOf(s))
	}
	wrap(&b, 0, "Time in the router: ", phaseParts(e.GetRouterPhases()))
	for _, c := range e.GetSlowestCalls() {
		fmt.Fprintf(&b, "Slow call, of %d: %s, %s for %s, %s of it searching\n", e.GetCalls(), Safe([]byte(c.GetSearcher())),
			Duration(c.GetTime().AsDuration()), Count(c.GetShards(), "shard", "shards"), Duration(c.GetSearching().AsDuration()))
	}
	if searched > e.GetShards() {
		b.WriteString(Count(searched-e.GetShards(), "shard is", "shards are") + " not explained: deleted repos, or repos that you may not see, are there too\n")
	}
	_, err := io.WriteString(t.w, b.String())
	return err
}

// row prints a line of the table.
func row(b *strings.Builder, text string, cells ...string) {
	room := columns - 2 - 11*len(cells)
	if utf8.RuneCountInString(text) > room {
		text = string([]rune(text)[:room-1]) + "…"
	}
	b.WriteString(text + strings.Repeat(" ", room-utf8.RuneCountInString(text)))
	for _, c := range cells {
		fmt.Fprintf(b, " %10s", c)
	}
	b.WriteByte('\n')
}

func explainNode(b *strings.Builder, n *searchv1.ExplainedNode, shards uint64) {
	indent := 2 + 2*min(int(n.GetDepth()), 16)
	number := func(v uint64) string { return strconv.FormatUint(v, 10) }
	row(b, strings.Repeat(" ", indent)+Safe([]byte(n.GetQuery())),
		number(n.GetEstimate()), number(n.GetChecked()), number(n.GetMatched()), Duration(n.GetReads().GetTime().AsDuration()))
	var parts []string
	for _, m := range n.GetMethods() {
		words := methodWords[m.GetMethod()]
		switch {
		case words == "":
			continue
		case m.GetShards() < shards:
			words += fmt.Sprintf(" (%s)", Count(m.GetShards(), "shard", "shards"))
		}
		parts = append(parts, words)
	}
	methods := strings.Join(parts, " + ")
	reads := readParts(n.GetReads())
	if methods != "" && len(reads) > 0 {
		methods += ": "
	}
	if methods != "" || len(reads) > 0 {
		wrap(b, indent+4, methods, reads)
	}
}

// readParts lists the amounts that were read, without zeros.
func readParts(r *searchv1.Reads) (parts []string) {
	for _, p := range []struct {
		n         uint64
		one, many string
	}{
		{r.GetLexiconBlocks(), "lexicon block", "lexicon blocks"}, {r.GetWords(), "word", "words"},
		{r.GetPostingLists(), "list", "lists"}, {r.GetPostings(), "posting", "postings"},
	} {
		if p.n > 0 {
			parts = append(parts, Count(p.n, p.one, p.many))
		}
	}
	if n := r.GetBytesDecoded(); n > 0 {
		parts = append(parts, Bytes(n)+" of text in "+Count(r.GetUnitsDecoded(), "unit", "units"))
	}
	return parts
}

// documents describes how documents were found and counted.
func documents(e *searchv1.Explanation) []string {
	parts := []string{
		Count(e.GetCandidates(), "candidate content looked at", "candidate contents looked at"),
		strconv.FormatUint(e.GetCountedInBulk(), 10) + " counted in bulk",
	}
	for _, p := range []struct {
		n    uint64
		what string
	}{
		{e.GetStoppedByOwnFiles(), "stopped early for better files of its own in "},
		{e.GetStoppedByOtherShards(), "stopped early for better files of others in "},
		{e.GetWholeWords(), "whole words decided in "},
	} {
		if p.n > 0 {
			parts = append(parts, p.what+Count(p.n, "shard", "shards"))
		}
	}
	return parts
}

func phaseParts(phases []*searchv1.ExplainedPhase) (parts []string) {
	for _, p := range phases {
		parts = append(parts, Safe([]byte(p.GetName()))+" "+Duration(p.GetTime().AsDuration()))
	}
	return parts
}

func reposOf(s *searchv1.ExplainedShard) string {
	name := Safe([]byte(s.GetRepo()))
	if s.GetRepos() > 1 {
		name += " and " + Count(s.GetRepos()-1, "more repo", "more repos")
	}
	return name
}

// wrap prints a list in lines of at most columns; nothing if there is nothing to print.
func wrap(b *strings.Builder, indent int, head string, parts []string) {
	if len(parts) == 0 && (indent == 0 || head == "") {
		return
	}
	line := strings.Repeat(" ", indent) + head
	for i, p := range parts {
		if i > 0 {
			line += ", "
		}
		if i > 0 && utf8.RuneCountInString(line+p) > columns {
			b.WriteString(strings.TrimRight(line, " ") + "\n")
			line = strings.Repeat(" ", indent+2)
		}
		line += p
	}
	b.WriteString(line + "\n")
}

// Explanation prints it as it is in the API.
func (j *JSON) Explanation(e *searchv1.Explanation, _ uint64) error {
	text, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(e)
	if err != nil {
		return err
	}
	return j.enc.Encode(struct {
		Type        string          `json:"type"` // explanation
		Explanation json.RawMessage `json:"explanation"`
	}{"explanation", text})
}
