package charttest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReadmeIsCurrent: the chart's README is what helm-docs makes of values.yaml.
func TestReadmeIsCurrent(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), tool(t, "helm-docs"), "--chart-search-root", chartDir, "--dry-run", "--log-level", "error")
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || errs.Len() > 0 {
		t.Fatalf("helm-docs: %v\n%s", err, errs.String())
	}
	want := append(bytes.TrimSpace(out.Bytes()), '\n')
	path := filepath.Join(chartDir, "README.md")
	if *update {
		if err := os.WriteFile(path, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs in line %d; `make charts` writes it anew", path, firstDifference(got, want))
	}
}

// TestEveryValueIsDocumented: every value has a comment above it.
func TestEveryValueIsDocumented(t *testing.T) {
	content, err := os.ReadFile(filepath.Join(chartDir, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for line := range strings.Lines(string(content)) {
		if cells := strings.Split(line, "|"); len(cells) > 4 && strings.Contains(cells[3], "`") {
			rows++
			if strings.TrimSpace(cells[4]) == "" {
				t.Errorf("nothing is said of %s", cells[1])
			}
		}
	}
	if rows < 50 {
		t.Errorf("only %d values were found", rows)
	}
}

// TestFixtureIsARepository: git finds the commit, and the phrase that the self-test
// searches for.
func TestFixtureIsARepository(t *testing.T) {
	repo, err := filepath.Abs(filepath.Join(chartDir, "selftest/trawl-selftest.git"))
	if err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"fsck", "--strict"}, {"show", "main:README.md"}} {
		cmd := exec.Command("git", append([]string{"-c", "safe.directory=*", "--git-dir", repo}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil || args[0] == "show" && !strings.Contains(string(out), "a needle of Trawl") {
			t.Errorf("git %v: %v\n%s", args, err, out)
		}
	}
	if pod := renderedAs(t, "evaluation", usual).files["trawl/templates/selftest.yaml"]; !strings.Contains(pod, "--find=a needle of Trawl") {
		t.Error("the self-test looks for something else")
	}
}
