package render

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/reflect/protoreflect"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// columns is the maximum width of an explanation.
const columns = 100

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
		b.WriteString("  … and " + Count(uint64(n), "more node", "more nodes") + "\n")
	}
	wrap(&b, 0, "In all: ", numbers(e.ProtoReflect()))
	wrap(&b, 0, "Read for no node alone, and to show files: ", numbers(e.GetOther().ProtoReflect()))
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
	var methods []string
	for _, m := range n.GetMethods() {
		how := Safe([]byte(m.GetName()))
		if m.GetShards() < shards {
			how += " (" + Count(m.GetShards(), "shard", "shards") + ")"
		}
		methods = append(methods, how)
	}
	how, read := strings.Join(methods, " + "), numbers(n.GetReads().ProtoReflect())
	if how != "" && len(read) > 0 {
		how += ": "
	}
	wrap(b, indent+4, how, read)
}

// numbers lists the counts of a message that are not 0, after their names.
func numbers(m protoreflect.Message) (parts []string) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		if f := fields.Get(i); f.Kind() == protoreflect.Uint64Kind && m.Has(f) {
			parts = append(parts, strings.ReplaceAll(string(f.Name()), "_", " ")+" "+m.Get(f).String())
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
