package cli

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/trawl-search/trawl/internal/testrun"
)

// commandsPreface begins the reference of commands.
const commandsPreface = `# Commands

Made from the code by ` + "`make generate`" + `. Name a router with ` + "`--addr`" + ` or ` + "`$TRAWL_ADDR`" + `, and a token with ` + "`--token-file`" + ` or
` + "`$TRAWL_TOKEN`" + `. The exit status is 0, 1 for an error, 2 for a command line that cannot be understood; that of ` + "`trawl search`" + ` is
ripgrep's. ` + "`trawl completion bash`" + ` (zsh, fish) prints a script that completes commands, flags, and names of what is indexed; ` + "`trawl man FOLDER`" + ` writes manual pages.
` + "`list`" + ` is what lists in every group of commands; ` + "`trawl repos`" + ` and ` + "`trawl sources`" + ` list without it, too.
`

// settingsFlags is the number of flags above which a service leaves its flags to docs/settings.md.
const settingsFlags = 30

// TestCommandReference: docs/cli.md matches the code.
func TestCommandReference(t *testing.T) {
	want := bytes.NewBufferString(commandsPreface)
	var describe func(*cobra.Command)
	describe = func(c *cobra.Command) {
		if c.Hidden || c.Name() == "help" || c.Name() == "completion" {
			return
		}
		fmt.Fprintf(want, "\n## %s\n\n", c.CommandPath())
		text := c.Long
		if text == "" {
			text = c.Short + "."
		}
		fmt.Fprintf(want, "```text\n%s\n\n", text)
		switch flags := c.NonInheritedFlags().FlagUsagesWrapped(120); {
		case strings.Count(flags, "\n") > settingsFlags && c.GroupID == "serve":
			fmt.Fprintf(want, "  %s\n```\n\nIts flags are [settings](settings.md).\n", c.UseLine())
		case c.Runnable() && (flags != "" || !c.HasSubCommands()):
			fmt.Fprintf(want, "  %s\n\n%s```\n", c.UseLine(), flags)
		default:
			want.WriteString("```\n")
		}
		for _, sub := range c.Commands() {
			describe(sub)
		}
	}
	for _, c := range newRoot(Process{}).Commands() {
		describe(c)
	}
	testrun.Golden(t, "../../../../docs/cli.md", want.Bytes())
}

// TestRootOfCommand: the command that a command line begins with is there, whichever others are not.
func TestRootOfCommand(t *testing.T) {
	for _, c := range newRoot(Process{}).Commands() {
		if found, _, err := newRoot(Process{}, c.Name()).Find([]string{c.Name()}); err != nil || found.Name() != c.Name() || found.GroupID != c.GroupID {
			t.Errorf("%s: %v", c.Name(), err)
		}
	}
}

// TestGeneratedHelp: completion and manual pages know the commands.
func TestGeneratedHelp(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish"} {
		if exit, out, errs := run(t, nil, "completion", shell); exit != 0 || !strings.Contains(out, "trawl") {
			t.Errorf("%s: exit %d: %s", shell, exit, errs)
		}
	}
	if _, out, _ := run(t, nil, "__complete", "sear"); !strings.Contains(out, "search\tSearch the indexed") {
		t.Errorf("completes %q", out)
	}
	dir := t.TempDir()
	if exit, _, errs := run(t, nil, "man", dir); exit != 0 {
		t.Fatal(errs)
	}
	if page, err := os.ReadFile(filepath.Join(dir, "trawl-def.1")); !strings.Contains(string(page), ".EX\ntrawl def NewReader\ntrawl def NewReader 'r:kubernetes lang:go -f:vendor/'\n.EE\n") {
		t.Errorf("the examples of trawl def are not as they are: %v\n%s", err, page)
	}
	words := 0
	for _, cmd := range allCommands(newRoot(Process{})) {
		page, err := os.ReadFile(filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".1"))
		if err != nil {
			t.Error(err)
			continue
		}
		text := regexp.MustCompile(`\\f[BIR]`).ReplaceAllString(string(page), "")
		text = strings.NewReplacer(`\-`, "-", `\&`, "", `\e`, `\`, `\\`, `\`).Replace(text)
		help := []string{cmd.Short, cmd.Long, cmd.Example}
		cmd.NonInheritedFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				help = append(help, f.Name, strings.ReplaceAll(f.Usage, "`", ""))
			}
		})
		for word := range strings.FieldsSeq(strings.Join(help, " ")) {
			if words++; !strings.Contains(text, word) {
				t.Errorf("the page of %q lacks %q", cmd.CommandPath(), word)
			}
		}
	}
	if words < 2000 {
		t.Errorf("only %d words were looked for", words)
	}
}

// allCommands returns a command and those below it that have pages.
func allCommands(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() && !sub.IsAdditionalHelpTopicCommand() {
			all = append(all, allCommands(sub)...)
		}
	}
	return all
}
