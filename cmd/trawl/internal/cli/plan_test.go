package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/trawl-search/trawl/internal/testrun"
)

var (
	someTime  = regexp.MustCompile(` *\b[0-9.]+(ns|µs|ms|s)\b`)
	timeAlone = regexp.MustCompile(`(?m)^\d+ match.*\n`)
	continued = regexp.MustCompile(`,\n +`)
)

// withoutTimes replaces each time in the text of a plan by a word. How long times are decides where a line continues, so it undoes that.
func withoutTimes(text string) string {
	return someTime.ReplaceAllString(continued.ReplaceAllString(timeAlone.ReplaceAllString(text, ""), ", "), " TIME")
}

// explainPond returns the plan of a query over the shard of the pond.
func explainPond(t *testing.T, shard string, flags ...string) string {
	t.Helper()
	exit, out, errs := run(t, nil, append([]string{"shard", "search", shard, "--explain"}, flags...)...)
	if exit != 0 {
		t.Fatalf("%s: exit %d: %s", flags, exit, errs)
	}
	_, plan, ok := strings.Cut(out, "Plan of ")
	if !ok {
		t.Fatalf("%s: no plan in\n%s", flags, out)
	}
	for line := range strings.Lines(plan) {
		if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > 100 {
			t.Errorf("%s: %d columns: %s", flags, n, line)
		}
	}
	return withoutTimes("Plan of " + plan)
}

// TestPlans holds the plans of queries of each kind to testdata/plans.txt.
func TestPlans(t *testing.T) {
	shard := buildPond(t)
	var b strings.Builder
	for _, query := range []string{
		"fish", "c:fish", "case:yes Fish lang:go", "f:net", "c:.", `c:"return fish"`, `c:\bha\w+`, "fish -haul", "(fish or haul) f:py$",
		"type:file fish", "r:sea fish", "r:pond b:HEAD", "type:repo haul", "lang:cobol fish", "nothing_like_it", "",
	} {
		b.WriteString("## " + query + "\n" + explainPond(t, shard, "--", query) + "\n")
	}
	b.WriteString("## --top fish\n" + explainPond(t, shard, "--top", "--max-files", "1", "--", "fish"))
	testrun.Golden(t, filepath.Join("testdata", "plans.txt"), []byte(b.String()))
}

// TestPlanInTheReference runs the example of docs/query.md.
func TestPlanInTheReference(t *testing.T) {
	reference, err := os.ReadFile("../../../../docs/query.md")
	if err != nil {
		t.Fatal(err)
	}
	const begin = "```explain\n$ trawl shard search pond.trawl --explain '"
	_, example, ok := strings.Cut(string(reference), begin)
	example, _, ended := strings.Cut(example, "\n```")
	query, plan, cut := strings.Cut(example, "'\n")
	if !ok || !ended || !cut {
		t.Fatalf("docs/query.md has no example that begins with %q", begin)
	}
	if got := explainPond(t, buildPond(t), "--", query); strings.TrimSpace(got) != strings.TrimSpace(withoutTimes(plan)) {
		t.Errorf("%s is answered so:\n%s\nthe reference has\n%s", query, got, plan)
	}
}

// TestPlanAsJSON prints the explanation before the summary.
func TestPlanAsJSON(t *testing.T) {
	exit, out, errs := run(t, nil, "shard", "search", buildPond(t), "--json", "--explain", "fish")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	if n := len(lines); exit != 0 || n < 3 || !strings.HasPrefix(lines[n-2], `{"type":"explanation","explanation":{"shards":"1","nodes":[{"query":`) {
		t.Errorf("exit %d: %s%s", exit, out, errs)
	}
}
