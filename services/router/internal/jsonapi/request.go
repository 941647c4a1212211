package jsonapi

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/trawl-search/trawl/internal/lazyregexp"
	"github.com/trawl-search/trawl/internal/searchapi"
	"github.com/trawl-search/trawl/internal/server"
)

// read makes the request of a call from the body of a POST or the parameters of a GET.
func (h *Handler) read(w http.ResponseWriter, r *http.Request, route *route) (proto.Message, error) {
	req := route.in.New().Interface()
	part := route.part(req)
	parameters, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, invalid("the parameters cannot be read: %v", err)
	}
	delete(parameters, timeoutParameter)
	body, err := h.readBody(w, r)
	if err != nil {
		return nil, err
	}
	switch {
	case r.Method != http.MethodPost:
		if body, err = fromParameters(part.ProtoReflect().Descriptor(), parameters); err != nil {
			return nil, err
		}
	case len(parameters) > 0:
		return nil, invalid("a POST takes its fields from the body, and only the parameter timeout")
	case len(bytes.TrimSpace(body)) == 0:
		return nil, invalid("the body is empty: send a JSON object")
	}
	if err := protojson.Unmarshal(body, part); err != nil {
		return nil, invalid("read the request: %s", plain(r.Method, body, err))
	}
	if route.stream == nil {
		if err := checkSize(req); err != nil {
			return nil, err
		}
	}
	return req, server.Validate(req)
}

// place is where an error of protojson is in the JSON that it read.
var place = lazyregexp.New(`^\(line \d+:\d+\): `)

// plain is the text of an error of protojson, without its name and its varying spaces, and without a place in JSON that the caller has not
// written. It says how a path is written in a body.
func plain(method string, body []byte, err error) string {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ")
	// The only escapes that encoding/json knows and protojson refuses. It looks for the other half beyond the end.
	if (strings.Contains(text, `): invalid escape code "`) || strings.HasSuffix(text, io.ErrUnexpectedEOF.Error())) && json.Valid(body) {
		return `a \u escape is one half of a character, without the other`
	}
	text = strings.TrimPrefix(text, "proto: ")
	if method != http.MethodPost {
		text = place().ReplaceAllString(text, "")
	}
	if strings.Contains(text, "invalid value for bytes field path: ") {
		text += pathsInBodies
	}
	return text
}

// shortQuery is a shorter name for the parameter query.
const shortQuery = "q"

// fromParameters writes parameters as the JSON of a message. A name is a field, or a path
// of fields with dots between them, in the spelling of JSON or of the proto.
func fromParameters(d protoreflect.MessageDescriptor, parameters url.Values) ([]byte, error) {
	object := make(map[string]any)
	for name, values := range parameters {
		if name == shortQuery {
			name = "query"
		}
		into, in := object, d
		fields := strings.Split(name, ".")
		for i, part := range fields {
			field := fieldOf(in, part)
			last := i == len(fields)-1
			if field == nil || last != isValue(field) {
				return nil, noParameter(d, name)
			}
			key := field.JSONName()
			if !last {
				child, ok := into[key].(map[string]any)
				if !ok {
					child = make(map[string]any)
					into[key] = child
				}
				into, in = child, field.Message()
				continue
			}
			if _, twice := into[key]; twice || (len(values) > 1 && !field.IsList()) {
				return nil, invalid("the parameter %q is there more than once", name)
			}
			var err error
			if into[key], err = valueOf(name, field, values); err != nil {
				return nil, err
			}
		}
	}
	return json.Marshal(object)
}

// noParameter is the error about a parameter that does not exist. It names those whose last part has this name, in the spelling of JSON or of the
// proto and in any case, or else those that are spelled like it.
func noParameter(d protoreflect.MessageDescriptor, name string) error {
	all := parametersOf(d, "")
	last := strings.ReplaceAll(name, "_", "")
	near := slices.DeleteFunc(slices.Clone(all), func(p string) bool { return !strings.EqualFold(p[strings.LastIndexByte(p, '.')+1:], last) })
	if len(near) == 0 {
		near = searchapi.SpelledLike(name, all)
	}
	text := ""
	if len(near) > 0 {
		text = "; the nearest: " + strings.Join(near, ", ")
	}
	return invalid("there is no parameter %q%s; /api/openapi.json lists all", name, text)
}

// parametersOf are the values of a message, and of the messages in it that are no values. Prefix is before each.
func parametersOf(d protoreflect.MessageDescriptor, prefix string) (names []string) {
	for i := range d.Fields().Len() {
		switch f := d.Fields().Get(i); {
		case isValue(f):
			names = append(names, prefix+f.JSONName())
		case !f.IsList() && !f.IsMap() && prefix == "":
			names = append(names, parametersOf(f.Message(), f.JSONName()+".")...)
		}
	}
	return names
}

func fieldOf(d protoreflect.MessageDescriptor, name string) protoreflect.FieldDescriptor {
	if f := d.Fields().ByJSONName(name); f != nil {
		return f
	}
	return d.Fields().ByName(protoreflect.Name(name))
}

// isValue reports whether a field can be a parameter by itself. Times have a text of their own.
func isValue(field protoreflect.FieldDescriptor) bool {
	return field.Message() == nil || field.Message().FullName().Parent() == "google.protobuf"
}

// valueOf is the JSON of a parameter. Numbers may be strings in the JSON of a proto, but
// booleans may not. A path is text in a URL, where bytes can be written as %FF.
func valueOf(name string, field protoreflect.FieldDescriptor, texts []string) (any, error) {
	list := make([]any, len(texts))
	for i, text := range texts {
		list[i] = text
		switch {
		case field.Kind() == protoreflect.BytesKind && field.Name() == "path":
			list[i] = base64.StdEncoding.EncodeToString([]byte(text))
		case !utf8.ValidString(text):
			return nil, invalid("the parameter %q is not UTF-8", name)
		case field.Kind() == protoreflect.EnumKind && field.Enum().Values().ByName(protoreflect.Name(text)) == nil:
			return nil, invalid("the parameter %q is %q: want %s", name, text, valuesOf(field.Enum()))
		case field.Kind() == protoreflect.BytesKind: // a + of base64 is a space in a URL
			list[i] = strings.ReplaceAll(text, " ", "+")
		case field.Kind() == protoreflect.BoolKind && (text == "true" || text == "false"):
			list[i] = text == "true"
		}
	}
	if field.IsList() {
		return list, nil
	}
	return list[0], nil
}

// valuesOf lists the names of the values of an enum.
func valuesOf(enum protoreflect.EnumDescriptor) string {
	names := make([]string, enum.Values().Len())
	for i := range names {
		names[i] = string(enum.Values().Get(i).Name())
	}
	return strings.Join(names, ", ")
}
