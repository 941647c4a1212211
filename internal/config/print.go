package config

import (
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes the settings as a YAML file that Load accepts, with the doc of each
// above it.
func Print(w io.Writer, settings Settings) error {
	fields, err := fieldsOf("", settings)
	if err != nil {
		return fmt.Errorf("print the settings: %w", err)
	}
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, f := range fields {
		if f.governedBy != "" {
			continue
		}
		steps := strings.Split(f.key, ".")
		parent := root
		for _, step := range steps[:len(steps)-1] {
			parent = child(parent, step)
		}
		value, err := node(f)
		if err != nil {
			return fmt.Errorf("print %s: %w", f.key, err)
		}
		name := &yaml.Node{Kind: yaml.ScalarNode, Value: steps[len(steps)-1], HeadComment: f.doc}
		parent.Content = append(parent.Content, name, value)
	}
	enc := yaml.NewEncoder(w)
	enc.SetIndent(2)
	if err := enc.Encode(root); err != nil {
		return fmt.Errorf("print the settings: %w", err)
	}
	return enc.Close()
}

// child finds or makes the mapping below a name.
func child(parent *yaml.Node, name string) *yaml.Node {
	for i := 0; i < len(parent.Content); i += 2 {
		if parent.Content[i].Value == name {
			return parent.Content[i+1]
		}
	}
	made := &yaml.Node{Kind: yaml.MappingNode}
	parent.Content = append(parent.Content, &yaml.Node{Kind: yaml.ScalarNode, Value: name}, made)
	return made
}

// node is a setting's value in YAML: numbers and booleans as they are, all else
// as text.
func node(f *field) (*yaml.Node, error) {
	n := &yaml.Node{}
	var value any = f.value.Interface()
	if _, isText := value.(fmt.Stringer); isText {
		value = format(f.value)
	}
	if list, ok := value.([]string); ok && list == nil {
		value = []string{}
	}
	return n, n.Encode(value)
}
