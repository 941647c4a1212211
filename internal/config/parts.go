package config

import (
	"iter"
	"reflect"
)

// Defaults sets the defaults of the parts of a struct, by pointer: of its fields, also embedded ones, that are Settings.
func Defaults(of any) {
	for _, part := range partsOf(of) {
		part.SetDefaults()
	}
}

// Validate validates the parts of a struct, by pointer.
func Validate(of any) error {
	var check Check
	check.Parts(of)
	return check.Err()
}

// Parts validates the parts of a struct, by pointer, each as Nested does with the key of its field.
func (c *Check) Parts(of any) {
	for key, part := range partsOf(of) {
		c.Nested(key, part)
	}
}

func partsOf(of any) iter.Seq2[string, Settings] {
	return func(yield func(string, Settings) bool) {
		v := reflect.ValueOf(of).Elem()
		for i := range v.NumField() {
			field := v.Field(i).Addr().UnsafePointer() // an embedded struct may have a name that is not exported
			part, ok := reflect.TypeAssert[Settings](reflect.NewAt(v.Field(i).Type(), field))
			if ok && !yield(v.Type().Field(i).Tag.Get("config"), part) {
				return
			}
		}
	}
}
