package config

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// Reference writes a Markdown table of the settings of a role with their defaults: key, flag,
// environment variable, default and doc. Settings that others govern are left out.
func Reference(w io.Writer, role string, settings Settings) error {
	settings.SetDefaults()
	host, err := os.Hostname()
	if err != nil {
		return fmt.Errorf("describe the settings of %s: %w", role, err)
	}
	fields, err := fieldsOf(role, settings)
	if err != nil {
		return fmt.Errorf("describe the settings of %s: %w", role, err)
	}
	var b strings.Builder
	b.WriteString("| setting, flag, variable | default | what it does |\n|---|---|---|\n")
	for _, f := range fields {
		if f.governedBy != "" {
			continue
		}
		initial := "`" + cell(f.initial) + "`"
		switch f.initial {
		case "":
			initial = "–"
		case host:
			initial = "the name of the host"
		}
		fmt.Fprintf(&b, "| `%s`<br>`--%s`<br>`%s` | %s | %s (%s) |\n", f.key, f.flag, f.env, initial, cell(f.doc), typeName(f.value.Type()))
	}
	_, err = io.WriteString(w, b.String())
	return err
}

// cell is a text in one cell of a table.
func cell(text string) string { return strings.NewReplacer("|", `\|`, "\n", " ").Replace(text) }
