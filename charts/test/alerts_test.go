package charttest

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

type alertRule struct {
	Alert  string            `json:"alert"`
	Expr   string            `json:"expr"`
	For    string            `json:"for"`
	Labels map[string]string `json:"labels"`
}

// alertsIn returns the alerts of groups by name.
func alertsIn(t *testing.T, groups []byte) map[string]alertRule {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []alertRule `json:"rules"`
		} `json:"groups"`
	}
	if err := yaml.Unmarshal(groups, &file); err != nil {
		t.Fatal(err)
	}
	all := map[string]alertRule{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			all[rule.Alert] = rule
		}
	}
	return all
}

// TestAlertsAreAdjusted: an operator changes what one alert needs, and all others stay as they are.
func TestAlertsAreAdjusted(t *testing.T) {
	source, err := os.ReadFile(filepath.Join(chartDir, "alerts", "alerts.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	want := alertsIn(t, source)
	slow := want["TrawlSearchesSlow"]
	slow.Expr, slow.For = strings.Replace(slow.Expr, "> 5", "> 2.5", 1), "30m"
	want[slow.Alert] = slow
	leader := want["TrawlNoLeader"]
	leader.Labels = map[string]string{"severity": "critical"}
	want[leader.Alert] = leader
	behind := want["TrawlIndexingBehind"]
	behind.Expr = strings.Replace(behind.Expr, "> 3600", "> 7200", 1)
	want[behind.Alert] = behind
	delete(want, "TrawlPanics")

	values := func(alerts map[string]any) map[string]any {
		v := valuesOf(t, "ha")
		v["monitoring"] = map[string]any{"prometheusRule": true, "alerts": alerts}
		return v
	}
	files, err := render(usual, values(map[string]any{
		"TrawlSearchesSlow":   map[string]any{"threshold": 2.5, "for": "30m"},
		"TrawlNoLeader":       map[string]any{"severity": "critical"},
		"TrawlIndexingBehind": map[string]any{"threshold": 7200},
		"TrawlPanics":         map[string]any{"enabled": false},
	}))
	if err != nil {
		t.Fatal(err)
	}
	var rule struct {
		Spec map[string]any `json:"spec"`
	}
	for name, content := range files {
		if strings.HasSuffix(name, "/monitoring.yaml") {
			if err := yaml.Unmarshal([]byte(content), &rule); err != nil {
				t.Fatal(err)
			}
		}
	}
	spec, err := yaml.Marshal(rule.Spec)
	if err != nil {
		t.Fatal(err)
	}
	got := alertsIn(t, spec)
	if names := slices.Sorted(maps.Keys(got)); !slices.Equal(names, slices.Sorted(maps.Keys(want))) {
		t.Errorf("alerts %v", names)
	}
	for name, w := range want {
		if g := got[name]; g.Expr != w.Expr || g.For != w.For || !maps.Equal(g.Labels, w.Labels) {
			t.Errorf("%s:\n%+v, want\n%+v", name, g, w)
		}
	}
	for name, c := range map[string]struct {
		change map[string]any
		want   string
	}{
		"no such alert":       {map[string]any{"TrawlNothing": map[string]any{"for": "1h"}}, "no such alert"},
		"no single threshold": {map[string]any{"TrawlSearchErrorBudgetBurns": map[string]any{"threshold": 1}}, "no single threshold"},
		"no such setting":     {map[string]any{"TrawlPanics": map[string]any{"treshold": 1}}, "treshold"},
	} {
		if _, err := render(usual, values(c.change)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
