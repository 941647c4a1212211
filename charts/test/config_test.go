package charttest

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// trawl runs the real program.
func trawl(t *testing.T, env []string, args ...string) (stdout string, err error) {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env, cmd.Stdout, cmd.Stderr = env, &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("trawl %v: %w\n%s", args, err, errs.String())
	}
	return out.String(), nil
}

// settings keeps the results of effective.
var settings = map[string]map[string]any{}

// effective returns the settings that the real program takes from the pod of a role:
// from its file, its environment and the image's environment.
func (r rendered) effective(t *testing.T, p podOf) map[string]any {
	t.Helper()
	role := p.component()
	key := r.set + " " + r.release + " " + role
	if known, ok := settings[key]; ok {
		return known
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, []byte(r.configOf(t, p)), 0o600); err != nil {
		t.Fatal(err)
	}
	c := p.spec.Containers[0]
	args := append([]string{role, "--config", file, "--print-config"}, c.Args[3:]...) // after the role and its file
	out, err := trawl(t, append(imageEnv(t, role), envOf(c)...), args...)
	if err != nil {
		t.Fatal(err)
	}
	taken := map[string]any{}
	if err := yaml.Unmarshal([]byte(out), &taken); err != nil {
		t.Fatal(err)
	}
	settings[key] = taken
	return taken
}

// configOf returns the settings file of a role's pod.
func (r rendered) configOf(t *testing.T, p podOf) string {
	t.Helper()
	for _, o := range r.objects {
		if m, ok := o.typed.(*corev1.ConfigMap); ok && m.Name == p.name {
			return m.Data["config.yaml"]
		}
	}
	t.Fatalf("%s has no settings", p)
	return ""
}

// envOf returns the environment of a container, with a placeholder for values
// from elsewhere.
func envOf(c corev1.Container) (env []string) {
	for _, e := range c.Env {
		value := e.Value
		if e.ValueFrom != nil {
			value = "from-elsewhere"
		}
		env = append(env, e.Name+"="+value)
	}
	return env
}

// imageEnv returns the environment variables that a role's image sets.
func imageEnv(t *testing.T, role string) []string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, "tools", "images", "Dockerfile"))
	if err != nil {
		t.Fatal(err)
	}
	target := "serving"
	if role == "indexer" {
		target = "indexing"
	}
	_, stage, ok := strings.Cut(string(content), " AS "+target+"\n")
	if !ok {
		t.Fatalf("there is no target %s", target)
	}
	stage, _, _ = strings.Cut(stage, "\nFROM ")
	for line := range strings.Lines(stage) {
		if env, ok := strings.CutPrefix(strings.TrimSpace(line), "ENV "); ok {
			return strings.Fields(env)
		}
	}
	return nil
}

// TestRolesTakeTheirSettings: the real program understands every file, listens
// on the ports that the pod names, on every interface, and identifies callers.
func TestRolesTakeTheirSettings(t *testing.T) {
	eachUsual(t, func(t *testing.T, r rendered) {
		asked := 0
		for _, p := range r.pods() {
			if role := p.component(); role != "router" && role != "searcher" && role != "indexer" && role != "canary" {
				continue
			}
			asked++
			s := r.effective(t, p)
			for _, port := range p.spec.Containers[0].Ports {
				if got := fmt.Sprint(s[port.Name]); !strings.HasSuffix(got, fmt.Sprintf(":%d", port.ContainerPort)) || strings.HasPrefix(got, "127.") {
					t.Errorf("%s: listens on %s for the port %s, %d", p, got, port.Name, port.ContainerPort)
				}
			}
			want := "tokens"
			if r.set == "evaluation-all" || r.set == "customized" {
				want = "insecure"
			}
			if access, ok := s["access"].(map[string]any); (p.component() == "router" || p.component() == "searcher") && (!ok || access["mode"] != want) {
				t.Errorf("%s: access %v, want %s", p, s["access"], want)
			}
		}
		if asked != r.roles() {
			t.Errorf("%d roles", asked)
		}
	})
}

// TestRoutersKnowTheirNames: if routers require no tokens, they accept requests under all names
// that the chart gives them, and no others; otherwise the chart gives them none.
func TestRoutersKnowTheirNames(t *testing.T) {
	want := []any{}
	for _, service := range []string{"trawl-router", "trawl-router-pods"} {
		for _, suffix := range []string{"", ".search", ".search.svc", ".search.svc.cluster.local"} {
			want = append(want, service+suffix)
		}
	}
	outside := map[string][]any{
		"evaluation-all": {"trawl.localdomain", "search.corp"},
		"customized":     {"grpc.example.com", "trawl.example.com"},
	}
	eachUsual(t, func(t *testing.T, r rendered) {
		names := []any{}
		if outside[r.set] != nil {
			names = slices.Concat(want, outside[r.set])
		}
		for _, p := range r.pods() {
			if p.component() != "router" {
				continue
			}
			if got, _ := r.effective(t, p)["access"].(map[string]any)["hosts"].([]any); !slices.Equal(got, names) {
				t.Errorf("%s: hosts %v, want %v", p, got, names)
			}
		}
	})
}

// TestSourcesAreTheIndexers: the indexer reads all sources from its file, which the
// real program understands; changing them makes no new pods.
func TestSourcesAreTheIndexers(t *testing.T) {
	eachUsual(t, func(t *testing.T, r rendered) {
		text, found := "", false
		for _, o := range r.objects {
			if m, ok := o.typed.(*corev1.ConfigMap); ok && m.Data["sources.yaml"] != "" {
				text, found = m.Data["sources.yaml"], true
			}
		}
		_, wanted := r.values["sources"]
		if found != wanted {
			t.Fatalf("sources: %v, wanted: %v", found, wanted)
		}
		for _, p := range r.pods() {
			if p.component() != "indexer" {
				continue
			}
			path := fmt.Sprint(r.effective(t, p)["sources"])
			mounted := slices.ContainsFunc(p.spec.Containers[0].VolumeMounts, func(m corev1.VolumeMount) bool {
				return m.Name == "sources" && m.SubPath == "" && filepath.Dir(path) == m.MountPath // a SubPath would never change
			})
			if mounted != wanted {
				t.Errorf("the indexer reads %q, mounted: %v", path, mounted)
			}
		}
		if !wanted {
			return
		}
		file := filepath.Join(t.TempDir(), "sources.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var exit *exec.ExitError
		_, err := trawl(t, nil, "sources", "apply", "-f", file, "--addr", "127.0.0.1:1")
		if !errors.As(err, &exit) || exit.ExitCode() == 2 {
			t.Errorf("%s\n%v: want a file that is good, and no router", text, err)
		}
		changed := maps.Clone(r.values)
		changed["sources"] = []any{map[string]any{"name": "new", "kind": "github", "owner": "x"}}
		again, err := render(usual, changed)
		if err != nil {
			t.Fatal(err)
		}
		const pods = "trawl/templates/indexer.yaml"
		if r.files[pods] == "" || r.files[pods] != again[pods] {
			t.Error("other sources make new pods")
		}
	})
}

// TestSelfTestTakesItsSettings: the real program understands the arguments of
// the pod that helm test starts.
func TestSelfTestTakesItsSettings(t *testing.T) {
	eachUsual(t, func(t *testing.T, r rendered) {
		found := false
		for _, p := range r.pods() {
			if p.kind != "Pod" {
				continue
			}
			found = true
			c := p.spec.Containers[0]
			if _, err := trawl(t, envOf(c), append(append(c.Command[1:len(c.Command):len(c.Command)], c.Args...), "--print-config")...); err != nil {
				t.Errorf("%s: %v", p, err)
			}
		}
		if off := r.values["selfTest"] == false; found == off {
			t.Errorf("a self-test: %v, switched off: %v", found, off)
		}
	})
}

// TestNotesAreRight: the real program understands the commands of the notes.
func TestNotesAreRight(t *testing.T) {
	eachUsual(t, func(t *testing.T, r rendered) {
		commands := 0
		for line := range strings.Lines(r.files["trawl/templates/NOTES.txt"]) {
			_, command, ok := strings.Cut(line, "-- /trawl ")
			if !ok {
				if command, ok = strings.CutPrefix(line, "  trawl "); !ok {
					continue
				}
			}
			commands++
			command, _, _ = strings.Cut(strings.TrimSpace(command), " > ")
			command, _, _ = strings.Cut(command, " < ")
			args := strings.Fields(strings.NewReplacer("'func main'", "main", "'", "").Replace(command))
			last := "--help"
			if args[0] == "tokens" {
				last = "--print-config"
			}
			if _, err := trawl(t, nil, append(args, last)...); err != nil {
				t.Error(err)
			}
		}
		if commands < 2 {
			t.Errorf("%d commands in the notes:\n%s", commands, r.files["trawl/templates/NOTES.txt"])
		}
	})
}

// TestNotesSayWhatReplicationLacks: too few searchers for the replication that the values ask for install, and the notes say so.
func TestNotesSayWhatReplicationLacks(t *testing.T) {
	for want, add := range map[string]map[string]any{
		"":                   {},
		"held by 1 of the 3": {"replication": 3},
		"held by 2 of the 3": {"replication": 3, "searcher": map[string]any{"autoscaling": map[string]any{"enabled": true, "minReplicas": 2}}},
	} {
		values := valuesOf(t, "minimal")
		maps.Copy(values, add)
		files, err := render(usual, values)
		if err != nil {
			t.Fatal(err)
		}
		notes := files["trawl/templates/NOTES.txt"]
		if !strings.Contains(notes, want) || want == "" && strings.Contains(notes, "held by") {
			t.Errorf("%v: no %q in\n%s", add, want, notes)
		}
	}
}
