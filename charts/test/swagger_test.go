package charttest

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// kubernetes is the version whose API the chart is compared with. One data file of
// its module is used; none of its code is compiled.
const kubernetes = "v1.34.4"

// apiOf returns the definitions of all kinds of that version.
func apiOf() (map[string]any, error) {
	out, err := exec.Command("go", "mod", "download", "-json", "k8s.io/kubernetes@"+kubernetes).Output()
	if err != nil {
		return nil, fmt.Errorf("download the API of Kubernetes: %w: %s", err, out)
	}
	var module struct{ Dir string }
	if err := json.Unmarshal(out, &module); err != nil {
		return nil, err
	}
	content, err := os.ReadFile(filepath.Join(module.Dir, "api/openapi-spec/swagger.json"))
	if err != nil {
		return nil, err
	}
	var api struct{ Definitions map[string]any }
	return api.Definitions, json.Unmarshal(content, &api)
}

// writeSchemas writes a JSON schema for each kind to dir, named as kubeconform
// looks for them. They refuse fields that the kind does not have.
func writeSchemas(dir string) error {
	definitions, err := apiOf()
	if err != nil {
		return err
	}
	for name, definition := range definitions {
		closed(definition.(map[string]any))
		if strings.HasSuffix(name, ".IntOrString") || strings.HasSuffix(name, ".Quantity") {
			definitions[name] = map[string]any{"type": []string{"string", "number"}}
		}
	}
	for name, definition := range definitions {
		kinds, _ := definition.(map[string]any)["x-kubernetes-group-version-kind"].([]any)
		if len(kinds) != 1 {
			continue
		}
		if err := writeSchema(dir, kinds[0].(map[string]any), name, definitions); err != nil {
			return err
		}
	}
	return nil
}

// closed makes a definition refuse unknown fields.
func closed(definition map[string]any) {
	if definition["properties"] != nil {
		definition["additionalProperties"] = false
	}
}

func writeSchema(dir string, kind map[string]any, name string, definitions map[string]any) error {
	needed := map[string]any{}
	gather(definitions[name], definitions, needed)
	needed[name] = definitions[name]
	content, err := json.Marshal(map[string]any{"$ref": "#/definitions/" + name, "definitions": needed})
	if err != nil {
		return err
	}
	group, _, _ := strings.Cut(kind["group"].(string), ".")
	file := strings.ToLower(strings.Trim(fmt.Sprintf("%s-%s-%s", kind["kind"], group, kind["version"]), "-"))
	return os.WriteFile(filepath.Join(dir, strings.ReplaceAll(file, "--", "-")+".json"), content, 0o600)
}

// gather finds all definitions that a definition refers to.
func gather(at any, definitions, needed map[string]any) {
	switch is := at.(type) {
	case map[string]any:
		if ref, ok := is["$ref"].(string); ok {
			name := strings.TrimPrefix(ref, "#/definitions/")
			if _, known := needed[name]; !known {
				needed[name] = definitions[name]
				gather(definitions[name], definitions, needed)
			}
		}
		for _, value := range is {
			gather(value, definitions, needed)
		}
	case []any:
		for _, value := range is {
			gather(value, definitions, needed)
		}
	}
}
