package cli

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/testrun"
)

// preface begins the reference of settings.
const preface = `# Settings

Made from the code by ` + "`make generate`" + `. Each setting of a role is a key of its YAML file (` + "`--config FILE`" + `), an environment
variable and a flag; what comes later wins: default, file, variable, flag. Secrets are in files
that settings name. An unknown key is an error. ` + "`trawl ROLE --print-config`" + ` prints what is in force. On Kubernetes the [chart](../charts/trawl/README.md)
sets them. Sizes are written like 64MiB, times like 1m30s, lists with commas, or with a flag for each value. Flags of commands for callers are in their ` + "`--help`" + `.
`

// TestSettingsReference: docs/settings.md matches the code.
func TestSettingsReference(t *testing.T) {
	var want bytes.Buffer
	want.WriteString(preface)
	for _, section := range []struct {
		title, role string
		settings    config.Settings
	}{
		{"Router", roleRouter, &routerSettings{}},
		{"Searcher", roleSearcher, &searcherSettings{}},
		{"Indexer", roleIndexer, &indexerSettings{}},
		{"Canary", roleCanary, &canarySettings{}},
		{"trawl up", "up", &upSettings{}},
		{"trawl tokens create", tokensRole, &createSettings{}},
		{"trawl gc", "gc", &gcSettings{}},
		{"trawl restore", "restore", &restoreSettings{}},
		{"trawl selftest", "selftest", &selfTestSettings{}},
	} {
		var table bytes.Buffer
		if err := config.Reference(&table, section.role, section.settings); err != nil {
			t.Fatal(err)
		}
		text := table.String()
		if section.role == "up" {
			text = regexp.MustCompile("(?m)^\\| `(indexer|searcher|router)\\..*\n").ReplaceAllString(text, "") +
				"\nBeside these it takes those of each role, with the role before the key: `searcher.disk-budget`, `--searcher-disk-budget`. Some have other defaults:\n`trawl up --print-config` shows them.\n"
		}
		fmt.Fprintf(&want, "\n## %s\n\n%s", section.title, text)
	}
	testrun.Golden(t, "../../../../docs/settings.md", want.Bytes())
	if n := strings.Count(want.String(), "<br>"); n < 300 {
		t.Errorf("only %d settings are in it", n/2)
	}
}
