// Command openapi joins the descriptions that protoc-gen-openapiv3 makes from each proto. It finds
// them below the folder in its first argument and writes the file in its second.
//
// It also adds what the protos cannot express: that a stream is server-sent events, that all paths
// take a timeout and a token, how parameters are written, and that plans are not for callers.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// object is a JSON object.
type object = map[string]any

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: openapi FOLDER FILE")
		os.Exit(2)
	}
	if err := run(os.Args[1], os.Args[2]); err != nil {
		fmt.Fprintln(os.Stderr, "openapi:", err)
		os.Exit(1)
	}
}

func run(folder, file string) error {
	paths, schemas := object{}, object{}
	tags := []any{}
	err := filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		var doc struct {
			Paths      object
			Tags       []any
			Components struct{ Schemas object }
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			return fmt.Errorf("read %s: %w", path, err)
		}
		maps.Copy(paths, doc.Paths)
		maps.Copy(schemas, doc.Components.Schemas)
		tags = append(tags, doc.Tags...)
		return nil
	})
	if err != nil {
		return err
	}
	for _, verbs := range paths {
		for _, operation := range verbs.(object) {
			describe(operation.(object))
		}
	}
	for _, schema := range schemas {
		withoutPlan(schema.(object))
	}
	return write(file, object{
		"openapi": "3.1.0",
		"info": object{
			"title": "Trawl", "version": "1",
			"description": "Code search. docs/api.md describes errors, bytes and streams.",
			"license":     object{"name": "See LICENSE"},
		},
		"paths": paths, "tags": tags,
		"components": object{
			"schemas":         reachable(paths, schemas),
			"securitySchemes": object{"token": object{"type": "http", "scheme": "bearer"}},
		},
		"security": []any{object{}, object{"token": []any{}}},
	})
}

// describe completes the operation of a path.
func describe(operation object) {
	if body, ok := operation["requestBody"].(object); ok {
		withoutPlan(schemaOf(body))
	}
	ok := operation["responses"].(object)["200"].(object)
	stream := false
	if result, is := schemaOf(ok)["properties"].(object); is && result["result"] != nil {
		stream = true
		ok["description"] = "Server-sent events: result has this message as its data, as has end, which is the last one of a search or a list; " +
			"error has a google.rpc.Status."
		ok["content"] = object{"text/event-stream": object{"schema": result["result"]}}
	}
	parameters := []any{}
	given, _ := operation["parameters"].([]any)
	for _, p := range given {
		parameter := p.(object)
		name := parameter["name"].(string)
		if stream { // the parameters of a stream describe its messages
			for _, wrapper := range []string{"search.", "list."} {
				name = strings.TrimPrefix(name, wrapper)
			}
		}
		if strings.HasPrefix(name, "plan.") {
			continue
		}
		parameter["name"] = name
		if name == "path" || name == "from.path" { // text in a URL
			parameter["schema"] = object{"type": "string"}
		}
		parameters = append(parameters, parameter)
		if name == "query" {
			parameters = append(parameters, object{"name": "q", "in": "query", "schema": object{"type": "string"}, "description": "Short for query."})
		}
	}
	operation["parameters"] = append(parameters, object{
		"name": "timeout", "in": "query", "schema": object{"type": "string"},
		"description": "Most time of the call, such as 500ms or 5s.",
	})
}

// schemaOf returns the JSON schema of a body or an answer.
func schemaOf(o object) object {
	return o["content"].(object)["application/json"].(object)["schema"].(object)
}

// withoutPlan removes the field that only routers may send from a request.
func withoutPlan(schema object) {
	if properties, ok := schema["properties"].(object); ok {
		delete(properties, "plan")
	}
}

// reachable returns the schemas that paths refer to, directly or through other schemas.
func reachable(from any, schemas object) object {
	found := object{}
	var visit func(any)
	visit = func(value any) {
		switch value := value.(type) {
		case object:
			if ref, ok := value["$ref"].(string); ok {
				name := strings.TrimPrefix(ref, "#/components/schemas/")
				if _, known := found[name]; !known {
					found[name] = schemas[name]
					visit(schemas[name])
				}
			}
			for _, key := range slices.Sorted(maps.Keys(value)) {
				visit(value[key])
			}
		case []any:
			for _, v := range value {
				visit(v)
			}
		}
	}
	visit(from)
	return found
}

func write(file string, doc object) error {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetEscapeHTML(false)
	to.SetIndent("", "  ")
	if err := to.Encode(doc); err != nil {
		return err
	}
	return os.WriteFile(file, text.Bytes(), 0o644)
}
