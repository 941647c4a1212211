package cli

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// TestCommandsOfThePagesExist: the commands and flags that a page names exist, so that nobody
// learns in an emergency that a runbook is wrong.
func TestCommandsOfThePagesExist(t *testing.T) {
	pages, err := filepath.Glob("../../../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	root := newRoot(Process{})
	root.InitDefaultCompletionCmd()
	known := map[string]bool{}
	for all := []*cobra.Command{root}; len(all) > 0; all = append(all[1:], all[0].Commands()...) {
		all[0].Flags().VisitAll(func(f *pflag.Flag) { known[f.Name] = true })
	}
	commands := 0
	for _, page := range append(pages, "../../../../README.md", "../../../../UPGRADING.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile("(?m)(?:^    (?:\\./|.* -- |)(trawl [a-z].+)$|`(trawl [a-z][^`]+)`)").FindAllStringSubmatch(string(text), -1) {
			commands++
			commandExists(t, root, filepath.Base(page), m[1]+m[2])
		}
	}
	if commands < 90 {
		t.Errorf("only %d commands were looked at", commands)
	}
	runbook, err := os.ReadFile("../../../../docs/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range regexp.MustCompile("`--([^`\\s]+)").FindAllStringSubmatch(string(runbook), -1) {
		if !known[m[1]] {
			t.Errorf("the runbook names `--%s`, which no command has", m[1])
		}
	}
}

// commandExists fails the test unless the command exists and has the flags.
func commandExists(t *testing.T, root *cobra.Command, page, command string) {
	t.Helper()
	command, _, _ = strings.Cut(command, "  ") // what it is for
	found, rest, err := root.Find(strings.Fields(command)[1:])
	if err != nil || found == root {
		t.Errorf("%s names `%s`: %v", page, command, err)
		return
	}
	for _, word := range rest {
		flag, isFlag := strings.CutPrefix(strings.Trim(word, "[]"), "--")
		flag, _, _ = strings.Cut(flag, "=")
		if isFlag && flag != "" && flag != "help" && found.Flags().Lookup(flag) == nil && found.InheritedFlags().Lookup(flag) == nil {
			t.Errorf("%s names `%s`, but %s has no --%s", page, command, found.CommandPath(), flag)
		}
	}
}
