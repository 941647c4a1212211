package codehost

import (
	"bytes"
	"encoding/json"
	"errors"
)

// entries are the repos of a page. They decode from an array only, since a page without one is not a page without repos: null is an error, and
// a field that is not there leaves them nil. A page has space for far more empty entries than memory has for what they decode to, so no more are
// decoded than a source can have.
type entries[T any] []T

// UnmarshalJSON implements json.Unmarshaler.
func (e *entries[T]) UnmarshalJSON(data []byte) error {
	*e = entries[T]{}
	return each(data, '[', func(d *json.Decoder) error {
		var one T
		err := d.Decode(&one)
		*e = append(*e, one)
		return err
	})
}

// errNoList is the error for a page without a list. It is not shown.
var errNoList = errors.New("the page has no list")

// each calls decode for each element of an array or an object, whichever open begins. The data must be valid JSON.
func each(data []byte, open json.Delim, decode func(*json.Decoder) error) error {
	d := json.NewDecoder(bytes.NewReader(data))
	if first, err := d.Token(); err != nil || first != open {
		return errNoList
	}
	for n := 0; d.More(); n++ {
		if n == maxRepos {
			return tooLong("%d repos", maxRepos)
		}
		if err := decode(d); err != nil {
			return err
		}
	}
	return nil
}
