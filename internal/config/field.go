package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/spf13/pflag"

	"github.com/trawl-search/trawl/internal/lazyregexp"
)

// field is one setting.
type field struct {
	key, flag, env string
	doc            string
	governedBy     string        // the key that decides instead; else empty
	value          reflect.Value // addressable
	initial        string        // the default as text
}

// keyPart matches a valid tag: one part of a key.
var keyPart = lazyregexp.New(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

// serviceLink matches the variables that Kubernetes sets in a container for the
// services in its namespace. With a service named trawl-searcher they look like
// settings of the searcher, so no setting may have such a name.
var serviceLink = lazyregexp.New(`_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// fieldsOf lists the settings of a struct in the order of their declaration.
func fieldsOf(role string, settings Settings) ([]*field, error) {
	v := reflect.ValueOf(settings)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return nil, fmt.Errorf("%T is not a pointer to a struct", settings)
	}
	fields, err := walk(nil, "", v.Elem())
	if err != nil {
		return nil, err
	}
	var governed map[string]string
	if g, ok := settings.(Governed); ok {
		governed = g.GovernedBy()
	}
	seen := map[string]string{envName(role, fileFlag): "--" + fileFlag, envName(role, printFlag): "--" + printFlag}
	for _, f := range fields {
		f.flag = strings.ReplaceAll(f.key, ".", "-")
		f.env = envName(role, f.key)
		f.initial = format(f.value)
		f.governedBy = governor(governed, f.key)
		if other, ok := seen[f.env]; ok {
			return nil, fmt.Errorf("%s and %s share the variable %s", f.key, other, f.env)
		}
		if serviceLink().MatchString(f.env) {
			return nil, fmt.Errorf("%s: the variable %s can be taken for one that Kubernetes sets", f.key, f.env)
		}
		seen[f.env] = f.key
	}
	return fields, nil
}

// governor returns the key that governs a key: the key's own governor, or that of a
// group above it.
func governor(governed map[string]string, key string) string {
	for {
		if by, ok := governed[key]; ok {
			return by
		}
		last := strings.LastIndexByte(key, '.')
		if last < 0 {
			return ""
		}
		key = key[:last]
	}
}

// walk appends the settings below one struct.
func walk(fields []*field, prefix string, v reflect.Value) ([]*field, error) {
	for i := range v.NumField() {
		t := v.Type().Field(i)
		tag, tagged := t.Tag.Lookup("config")
		if !t.IsExported() && !t.Anonymous || tag == "-" {
			continue
		}
		nested := t.Type.Kind() == reflect.Struct && !isLeaf(t.Type)
		var err error
		switch {
		case t.Anonymous && !tagged && nested:
			fields, err = walk(fields, prefix, v.Field(i))
		case !keyPart().MatchString(tag):
			err = fmt.Errorf("field %s%s has no usable config tag: %q", prefix, t.Name, tag)
		case nested:
			fields, err = walk(fields, prefix+tag+".", v.Field(i))
		case !isLeaf(t.Type):
			err = fmt.Errorf("%s%s: a setting cannot be a %s", prefix, tag, t.Type)
		case t.Tag.Get("doc") == "":
			err = fmt.Errorf("%s%s has no doc tag", prefix, tag)
		default:
			fields = append(fields, &field{key: prefix + tag, doc: t.Tag.Get("doc"), value: v.Field(i)})
		}
		if err != nil {
			return nil, err
		}
	}
	return fields, nil
}

// set parses a raw value into the setting.
func (f *field) set(raw any) error {
	parsed := reflect.New(f.value.Type())
	if err := parse(parsed.Elem(), raw); err != nil {
		return err
	}
	f.value.Set(parsed.Elem())
	return nil
}

// declare adds the setting's flag.
func (f *field) declare(flags *pflag.FlagSet) {
	fl := flags.VarPF(&flagValue{field: f, text: f.initial}, f.flag, "", f.doc)
	if f.value.Kind() == reflect.Bool {
		fl.NoOptDefVal = "true"
	}
	fl.Hidden = f.governedBy != ""
}

// flagValue keeps a flag's text until Load decides which source wins.
type flagValue struct {
	field *field
	text  string
	given bool
}

// String implements pflag.Value.
func (v *flagValue) String() string { return v.text }

// Set implements pflag.Value. The flag of a list may be repeated: a second one that replaced the first would, of
// --deny, allow what the first denies. Load checks the text together with all other sources, so that it reports
// every mistake at once and in one form.
func (v *flagValue) Set(text string) error {
	if v.given && v.field.value.Kind() == reflect.Slice {
		text = v.text + "," + text
	}
	v.text, v.given = text, true
	return nil
}

// Type implements pflag.Value. It is the word for a value in the help.
func (v *flagValue) Type() string { return typeName(v.field.value.Type()) }
