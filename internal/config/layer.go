package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"
)

// maxFile bounds the YAML file, in bytes.
const maxFile = 1 << 20

// layer holds the values of one source, by key.
type layer struct {
	values map[string]any
	source func(key string) string
}

func (l layer) keys() []string { return slices.Sorted(maps.Keys(l.values)) }

// layers reads the three sources, the weakest first.
func (s *Set) layers(environ []string) ([]layer, error) {
	path := s.file
	if path == "" {
		path = lookup(environ, envName(s.role, fileFlag))
	}
	file, err := fileLayer(path)
	if err != nil {
		return nil, err
	}
	variables, err := s.envLayer(environ)
	if err != nil {
		return nil, err
	}
	flags, err := s.flagLayer()
	if err != nil {
		return nil, err
	}
	return []layer{file, variables, flags}, nil
}

func lookup(environ []string, name string) string {
	for _, line := range environ {
		if value, ok := strings.CutPrefix(line, name+"="); ok {
			return value
		}
	}
	return ""
}

// fileLayer reads the YAML file. Without a path the layer is empty.
func fileLayer(path string) (layer, error) {
	l := layer{source: func(string) string { return path }}
	if path == "" {
		return l, nil
	}
	content, err := ReadFile(path, maxFile)
	if err != nil {
		return l, fmt.Errorf("read the settings file: %w", err)
	}
	l.values, err = flat(document(content), yaml.Parser())
	if err != nil {
		return l, fmt.Errorf("parse %s: %w", path, err)
	}
	return l, nil
}

// envLayer selects the role's variables. A variable with the role's prefix that is no
// setting stays in, under its own name, and is reported as unknown, unless Kubernetes
// set it.
func (s *Set) envLayer(environ []string) (layer, error) {
	keys := map[string]string{envName(s.role, fileFlag): ""} // read by layers
	for _, f := range s.fields {
		keys[f.env] = f.key
	}
	rename := func(name, value string) (string, any) {
		if key, ok := keys[name]; ok {
			return key, value
		}
		if serviceLink().MatchString(name) {
			return "", nil
		}
		return name, value
	}
	values, err := flat(env.Provider(".", env.Opt{
		Prefix:        envName(s.role, ""),
		TransformFunc: rename,
		EnvironFunc:   func() []string { return environ },
	}), nil)
	if err != nil {
		return layer{}, fmt.Errorf("read the environment: %w", err)
	}
	source := func(key string) string {
		if f := s.field(key); f != nil {
			return "$" + f.env
		}
		return "$" + key // an unknown variable
	}
	return layer{values: values, source: source}, nil
}

// flagLayer selects the flags that were given.
func (s *Set) flagLayer() (layer, error) {
	pick := func(f *pflag.Flag) (string, any) {
		v, ok := f.Value.(*flagValue)
		if !ok || !f.Changed || !slices.Contains(s.fields, v.field) {
			return "", nil
		}
		return v.field.key, v.text
	}
	values, err := flat(posflag.ProviderWithFlag(s.flags, ".", nil, pick), nil)
	if err != nil {
		return layer{}, fmt.Errorf("read the flags: %w", err)
	}
	source := func(key string) string { return "--" + strings.ReplaceAll(key, ".", "-") }
	return layer{values: values, source: source}, nil
}

// flat loads one source into koanf and returns its leaves by their full key.
func flat(p koanf.Provider, parser koanf.Parser) (map[string]any, error) {
	k := koanf.New(".")
	if err := k.Load(p, parser); err != nil {
		return nil, err
	}
	return k.All(), nil
}

// document is a koanf.Provider of bytes in memory.
type document []byte

// ReadBytes implements koanf.Provider.
func (d document) ReadBytes() ([]byte, error) { return d, nil }

// Read implements koanf.Provider. It is not called if there is a parser.
func (d document) Read() (map[string]any, error) {
	return nil, fmt.Errorf("read %d bytes without a parser", len(d))
}
