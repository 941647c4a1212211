package charttest

import (
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/common"
	"helm.sh/helm/v4/pkg/chart/common/util"
	chart "helm.sh/helm/v4/pkg/chart/v2"
	"helm.sh/helm/v4/pkg/chart/v2/loader"
	"helm.sh/helm/v4/pkg/engine"
)

// renderBelow renders the chart as a dependency of another, which passes globals.
func renderBelow(t *testing.T, set string, globals map[string]any) []object {
	t.Helper()
	c, err := loader.Load(chartDir)
	if err != nil {
		t.Fatal(err)
	}
	parent := &chart.Chart{Metadata: &chart.Metadata{APIVersion: "v2", Name: "platform", Version: "1.0.0"}}
	parent.AddDependency(c)
	values := map[string]any{"trawl": valuesOf(t, set), "global": globals}
	at, err := util.ToRenderValues(parent, values, common.ReleaseOptions{Name: usual, Namespace: "search", IsInstall: true}, nil)
	if err != nil {
		t.Fatal(err)
	}
	files, err := engine.Render(parent, at)
	if err != nil {
		t.Fatal(err)
	}
	return objects(t, files)
}

// TestSubchart: as a dependency of another chart it makes the same objects, whatever
// globals its sibling charts know.
func TestSubchart(t *testing.T) {
	eachUsual(t, func(t *testing.T, r rendered) {
		below := renderBelow(t, r.set, map[string]any{"storageClass": "fast", "team": map[string]any{"name": "x"}})
		if len(below) != len(r.objects) {
			t.Fatalf("%d objects, alone %d", len(below), len(r.objects))
		}
		for i, o := range below {
			if o.kind != "Secret" && string(o.raw) != string(r.objects[i].raw) {
				t.Errorf("%s differs from that of the chart alone", o)
			}
		}
	})
}

// TestGlobalRegistry: all images come from the registry of all charts, under the names
// that they have elsewhere.
func TestGlobalRegistry(t *testing.T) {
	for _, set := range []string{"evaluation", "restricted"} {
		for _, o := range renderBelow(t, set, map[string]any{"imageRegistry": "mirror.example.com:5000/all"}) {
			for _, p := range (rendered{objects: []object{o}}).pods() {
				for _, c := range p.spec.Containers {
					rest, ok := strings.CutPrefix(c.Image, "mirror.example.com:5000/all/")
					if first, _, _ := strings.Cut(rest, "/"); !ok || strings.ContainsAny(first, ".:") && strings.Contains(rest, "/") {
						t.Errorf("%s has the image %s", p, c.Image)
					}
				}
			}
		}
	}
}

// TestAuthoritiesAreAdded: private authorities are added to the public ones of the
// images, which SSL_CERT_FILE would replace.
func TestAuthoritiesAreAdded(t *testing.T) {
	for _, p := range renderedAs(t, "tls", usual).pods() {
		var dir string
		for _, e := range p.spec.Containers[0].Env {
			if e.Name == "SSL_CERT_FILE" {
				t.Errorf("%s trusts %s alone", p, e.Value)
			}
			if e.Name == "SSL_CERT_DIR" {
				dir = e.Value
			}
		}
		mounted := false
		for _, m := range p.spec.Containers[0].VolumeMounts {
			mounted = mounted || m.Name == "ca" && m.MountPath == dir && m.ReadOnly && m.SubPath == ""
		}
		if !mounted {
			t.Errorf("%s: the authorities of %q are not mounted there", p, dir)
		}
	}
}
