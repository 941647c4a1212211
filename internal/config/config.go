// Package config loads the settings of one role of Trawl.
//
// A component declares its settings as a struct with one tagged field for each,
// defaults in SetDefaults and limits in Validate:
//
//	type Config struct {
//		GRPC  server.Config `config:"grpc"`
//		Cache config.Bytes  `config:"cache-size" doc:"disk space for shards"`
//	}
//
// Each field yields one YAML key (grpc.addr), one environment variable
// (TRAWL_SEARCHER_GRPC_ADDR) and one flag (--grpc-addr). Later sources win: default,
// YAML file, environment, flag. A key that no field declares is an error. Every error
// names the setting, the value, its source and what is allowed.
//
// Field types: string, bool, signed and unsigned integers, float64,
// time.Duration, Bytes and []string. The YAML of []string is a list or
// one comma-separated string. Nested structs nest the keys; an embedded struct
// adds its keys to those of its parent; the tag "-" hides a field.
package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agnivade/levenshtein"
	"github.com/spf13/pflag"
)

// Settings is the configuration struct of a component, by pointer.
type Settings interface {
	// SetDefaults gives every setting its default. It calls SetDefaults of
	// nested configurations.
	SetDefaults()
	// Validate reports every setting that is out of its limits, best with a Check.
	Validate() error
}

// Governed is implemented by the settings of several roles in one process, some of which
// must agree.
type Governed interface {
	// GovernedBy maps a key, or a group of keys, to the key that decides in its place.
	// A governed setting cannot be set, and neither help nor Print lists it.
	GovernedBy() map[string]string
}

const (
	// fileFlag is the flag and the key of the YAML file's path.
	fileFlag = "config"
	// printFlag is the flag that prints the effective settings.
	printFlag = "print-config"
)

// Set binds the settings of one role to their sources. It is for one goroutine.
type Set struct {
	role     string
	settings Settings
	fields   []*field
	flags    *pflag.FlagSet
	file     string
	print    bool
	sources  map[string]string // key → source of its value
}

// Bind sets the defaults of settings and declares a flag for each of them, and
// --config and --print-config. The role ("searcher") is part of the environment
// variables' names. An error means that the struct itself is wrong: a field without
// tag or doc, a type without a text form, two settings with one name.
func Bind(flags *pflag.FlagSet, role string, settings Settings) (*Set, error) {
	settings.SetDefaults()
	fields, err := fieldsOf(role, settings)
	if err != nil {
		return nil, fmt.Errorf("declare the settings of %s: %w", role, err)
	}
	s := &Set{role: role, settings: settings, fields: fields, flags: flags, sources: map[string]string{}}
	for _, f := range fields {
		if flags.Lookup(f.flag) != nil {
			return nil, fmt.Errorf("declare the settings of %s: the flag --%s exists already", role, f.flag)
		}
		f.declare(flags)
	}
	flags.StringVar(&s.file, fileFlag, "", "YAML file with settings, or $"+envName(role, fileFlag))
	flags.BoolVar(&s.print, printFlag, false, "print the effective settings as YAML and exit")
	return s, nil
}

// PrintRequested reports whether --print-config was given. The caller should then
// call Print after Load, and exit.
func (s *Set) PrintRequested() bool { return s.print }

// Load fills the settings from the YAML file, the environment (lines of "NAME=value",
// as from os.Environ) and the flags, which must be parsed already, and validates
// them. The error joins everything that is wrong; each part is an *Error.
func (s *Set) Load(environ []string) error {
	layers, err := s.layers(environ)
	if err != nil {
		return fmt.Errorf("load the settings of %s: %w", s.role, err)
	}
	var problems []error
	for _, l := range layers {
		problems = append(problems, s.apply(l)...)
	}
	if len(problems) == 0 {
		problems = s.validate()
	}
	if len(problems) > 0 {
		return fmt.Errorf("load the settings of %s: %w", s.role, errors.Join(problems...))
	}
	return nil
}

// apply sets the values of one layer and returns their errors, in the order of the
// keys.
func (s *Set) apply(l layer) []error {
	var problems []error
	for _, key := range l.keys() {
		source := l.source(key)
		f := s.field(key)
		if f == nil {
			if !s.isGroup(key) || !isEmpty(l.values[key]) {
				problems = append(problems, &Error{Key: key, Source: source, Want: s.unknown(key)})
			}
			continue
		}
		err := f.set(l.values[key])
		if f.governedBy != "" {
			err = fmt.Errorf("nothing here: %s decides for all roles", f.governedBy)
		}
		if err != nil {
			problems = append(problems, &Error{Key: key, Value: fmt.Sprint(l.values[key]), Source: source, Want: "want " + err.Error()})
			continue
		}
		s.sources[key] = source
	}
	return problems
}

// validate calls Validate of the settings and adds the source of the value to each
// complaint.
func (s *Set) validate() []error {
	err := s.settings.Validate()
	if err == nil {
		return nil
	}
	problems := unjoin(err)
	for i, p := range problems {
		if e, ok := errors.AsType[*Error](p); ok {
			located := *e
			if located.Source = s.sources[e.Key]; located.Source == "" {
				located.Source = "the default"
				if f := s.field(e.Key); f != nil && f.governedBy == "" {
					located.Source += "; --" + f.flag + " sets it"
				}
			}
			problems[i] = &located
		}
	}
	return problems
}

// field is the setting with a key; nil if there is none.
func (s *Set) field(key string) *field {
	for _, f := range s.fields {
		if f.key == key {
			return f
		}
	}
	return nil
}

// isGroup reports whether there are settings below the key.
func (s *Set) isGroup(key string) bool {
	return slices.ContainsFunc(s.fields, func(f *field) bool { return strings.HasPrefix(f.key, key+".") })
}

// isEmpty reports whether a group of the YAML file is empty, as when everything below
// it is commented out.
func isEmpty(value any) bool {
	group, isMap := value.(map[string]any)
	return value == nil || isMap && len(group) == 0
}

// unknown describes the error of a key that no setting has, with the setting that may
// have been meant.
func (s *Set) unknown(key string) string {
	if s.isGroup(key) {
		return "this is a group of settings, not a setting"
	}
	best, least := "", 1+len(key)/4
	for _, f := range s.fields {
		if d := levenshtein.ComputeDistance(key, f.key); d <= least {
			best, least = f.key, d-1
		}
	}
	if best == "" {
		return "there is no such setting"
	}
	return "there is no such setting; did you mean " + best + "?"
}

// envName is the environment variable of a key.
func envName(role, key string) string {
	return strings.ToUpper(underscores.Replace("TRAWL_" + role + "_" + key))
}

var underscores = strings.NewReplacer(".", "_", "-", "_")
