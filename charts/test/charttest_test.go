// Package charttest renders the chart with many values and checks the output:
// whether Kubernetes and Trawl would accept it, and whether it keeps the
// chart's promises.
package charttest

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/yaml"
)

// update writes the rendered files to testdata instead of comparing them.
var update = flag.Bool("update", false, "write the golden files and the chart's README")

// The repository, and the chart in it.
const (
	root     = "../.."
	chartDir = "../trawl"
)

// Names of releases: a usual one, and one of the 53 characters that Helm allows.
const (
	usual       = "trawl"
	longRelease = "a-release-whose-name-is-as-long-as-helm-allows-for-on"
)

var loaded = sync.OnceValues(func() (*chart.Chart, error) { return loader.Load(chartDir) })

// object is one thing that the chart makes.
type object struct {
	kind, name string
	raw        []byte
	// typed is nil where Kubernetes itself does not know the kind.
	typed runtime.Object
	tree  *unstructured.Unstructured
}

func (o object) String() string { return o.kind + "/" + o.name }

// render renders the chart. The error is that of the schema or of a template.
func render(release string, values map[string]any) (files map[string]string, err error) {
	c, err := loaded()
	if err != nil {
		return nil, err
	}
	at, err := util.ToRenderValues(c, values, common.ReleaseOptions{Name: release, Namespace: "search", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(c, at)
}

// strict refuses fields that a kind does not have, and fields that come twice.
var strict = serializer.NewCodecFactory(scheme.Scheme, serializer.EnableStrict).UniversalDeserializer()

// objects returns the objects of the rendered files, in order of file.
func objects(t *testing.T, files map[string]string) (all []object) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasSuffix(name, ".yaml") {
			continue
		}
		for part := range strings.SplitSeq("\n"+files[name], "\n---\n") {
			o := object{raw: []byte(part), tree: &unstructured.Unstructured{}}
			if err := yaml.UnmarshalStrict(o.raw, &o.tree.Object); err != nil {
				t.Fatalf("%s: %v\n%s", name, err, part)
			}
			if len(o.tree.Object) == 0 {
				continue
			}
			o.kind, o.name = o.tree.GetKind(), o.tree.GetName()
			typed, _, err := strict.Decode(o.raw, nil, nil)
			if err != nil && !runtime.IsNotRegisteredError(err) {
				t.Fatalf("%s: %s: %v", name, o, err)
			}
			o.typed = typed
			all = append(all, o)
		}
	}
	return all
}

// valuesOf reads a set of values.
func valuesOf(t *testing.T, set string) map[string]any {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("values", set+".yaml"))
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]any{}
	if err := yaml.UnmarshalStrict(content, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// sets are the names of all sets of values.
func sets(t *testing.T) (names []string) {
	t.Helper()
	paths, err := filepath.Glob("values/*.yaml")
	if err != nil || len(paths) < 8 {
		t.Fatalf("%d sets of values, %v", len(paths), err)
	}
	for _, path := range paths {
		names = append(names, strings.TrimSuffix(filepath.Base(path), ".yaml"))
	}
	return names
}

// rendered is the chart with one set of values under one release name.
type rendered struct {
	set, release string
	values       map[string]any
	files        map[string]string
	objects      []object
}

// watched reports whether the values leave the canary on.
func (r rendered) watched() bool {
	canary, _ := r.values["canary"].(map[string]any)
	return canary["enabled"] != false
}

// roles is how many roles there are, with the canary.
func (r rendered) roles() int {
	if r.watched() {
		return 4
	}
	return 3
}

// memo keeps rendered charts, since many checks use the same one.
var memo = map[string]rendered{}

// renderedAs renders a set of values under a release's name, once.
func renderedAs(t *testing.T, set, release string) rendered {
	t.Helper()
	if r, ok := memo[set+"/"+release]; ok {
		return r
	}
	r := rendered{set: set, release: release, values: valuesOf(t, set)}
	var err error
	if r.files, err = render(release, r.values); err != nil {
		t.Fatal(err)
	}
	r.objects = objects(t, r.files)
	memo[set+"/"+release] = r
	return r
}

// each runs a check on every set of values, under a usual and a long name.
func each(t *testing.T, check func(t *testing.T, r rendered)) {
	t.Helper()
	for _, set := range sets(t) {
		for _, release := range []string{usual, longRelease} {
			t.Run(fmt.Sprintf("%s/%d", set, len(release)), func(t *testing.T) { check(t, renderedAs(t, set, release)) })
		}
	}
}

// eachUsual is each under the usual name only.
func eachUsual(t *testing.T, check func(t *testing.T, r rendered)) {
	t.Helper()
	for _, set := range sets(t) {
		t.Run(set, func(t *testing.T) { check(t, renderedAs(t, set, usual)) })
	}
}
