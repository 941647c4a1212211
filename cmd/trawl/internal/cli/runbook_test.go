package cli

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestRunbookCommandsExist: the commands and flags that the runbook tells of are
// there, so that nobody learns in an emergency that they are not.
func TestRunbookCommandsExist(t *testing.T) {
	text, err := os.ReadFile("../../../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot(Process{})
	known := map[string]bool{}
	for all := []*cobra.Command{root}; len(all) > 0; all = append(all[1:], all[0].Commands()...) {
		all[0].Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	commands := 0
	for _, m := range regexp.MustCompile("(?m)(?:^    (trawl .+)$|`([^`]+)`)").FindAllStringSubmatch(string(text), -1) {
		m[1] += m[2]
		words := strings.Fields(m[1])
		switch {
		case words[0] == "trawl" && words[1] != "ROLE":
			commands++
			found, rest, err := root.Find(words[1:])
			if err != nil || found == root {
				t.Errorf("the runbook tells of `%s`: %v", m[1], err)
				continue
			}
			for _, word := range rest {
				flag, isFlag := strings.CutPrefix(word, "--")
				if isFlag && found.Flags().Lookup(flag) == nil {
					t.Errorf("the runbook tells of `%s`, and %s has no --%s", m[1], found.CommandPath(), flag)
				}
			}
		case strings.HasPrefix(words[0], "--") && !known[strings.TrimPrefix(words[0], "--")]:
			t.Errorf("the runbook tells of `%s`, which no command has", words[0])
		}
	}
	if commands < 10 {
		t.Errorf("only %d commands were looked at", commands)
	}
}
