package charttest

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

// canaryOf returns the canary's pod; ok is false if there is none.
func (r rendered) canaryOf() (pod podOf, ok bool) {
	pods := r.pods()
	i := slices.IndexFunc(pods, func(p podOf) bool { return p.component() == "canary" })
	if i < 0 {
		return podOf{}, false
	}
	return pods[i], true
}

// TestCanaryIsOnByDefault: there is one canary, from the image of routers, unless the values switch it off. Routers and
// indexers allow the repository at the address of its pods.
func TestCanaryIsOnByDefault(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		p, ok := r.canaryOf()
		if ok != r.watched() {
			t.Fatalf("there is a canary: %v", ok)
		}
		want := ""
		if ok {
			want = "http://" + at(r.effective(t, p), "advertise") + "/trawl/canary.git"
			host, port, _ := strings.Cut(at(r.effective(t, p), "advertise"), ":")
			if !r.has("Service", host) || port != "7461" || !is(p.replicas, 1) {
				t.Errorf("%v canaries at %s:%s", p.replicas, host, port)
			}
		}
		for _, other := range r.pods() {
			switch other.component() {
			case "router":
				if ok && other.spec.Containers[0].Image != p.spec.Containers[0].Image {
					t.Errorf("%s has another image than routers, %s", p, p.spec.Containers[0].Image)
				}
				fallthrough
			case "indexer":
				if got := at(r.effective(t, other), "source", "canary"); got != want {
					t.Errorf("%s allows %q, want %q", other, got, want)
				}
			}
		}
	})
}

// TestCanaryHasItsTokenOnly: where callers need a token, the canary has one from a Secret, or from a container that runs
// before it. That one makes it for the canary's repo alone. It has the user of etcd for that; the canary has none.
func TestCanaryHasItsTokenOnly(t *testing.T) {
	made := 0
	each(t, func(t *testing.T, r rendered) {
		p, ok := r.canaryOf()
		if !ok {
			return
		}
		file := at(r.effective(t, p), "router", "token-file")
		switch before := p.spec.InitContainers; {
		case r.values["access"] != nil: // the sets that name it choose insecure
			if file != "" || len(before) > 0 {
				t.Errorf("%s has the token %s, and %d containers before it", p, file, len(before))
			}
		case r.set == "external":
			if len(before) > 0 || tokenVolume(t, p, file).Secret.SecretName != "canary-token" {
				t.Errorf("%s reads %s", p, file)
			}
		default:
			made++
			if v := tokenVolume(t, p, file); v.EmptyDir == nil || v.EmptyDir.Medium != corev1.StorageMediumMemory {
				t.Errorf("%s keeps its token in %+v", p, v)
			}
			r.makesToken(t, p, file)
		}
	})
	if made < 8 {
		t.Errorf("only %d canaries make a token", made)
	}
}

// tokenVolume returns the volume that holds a file of the canary's container.
func tokenVolume(t *testing.T, p podOf, file string) corev1.Volume {
	t.Helper()
	for _, m := range p.spec.Containers[0].VolumeMounts {
		for _, v := range p.spec.Volumes {
			if v.Name == m.Name && m.MountPath == filepath.Dir(file) && m.ReadOnly {
				return v
			}
		}
	}
	t.Fatalf("%s does not have %s", p, file)
	return corev1.Volume{}
}

// makesToken checks the container that makes the canary's token, which the real program understands.
func (r rendered) makesToken(t *testing.T, p podOf, file string) {
	t.Helper()
	c := p.spec.InitContainers[0]
	out, err := trawl(t, envOf(c), append(slices.Clone(c.Args), "--print-config")...)
	if err != nil {
		t.Fatal(err)
	}
	taken, used := map[string]any{}, map[string]bool{}
	if err := yaml.Unmarshal([]byte(out), &taken); err != nil {
		t.Fatal(err)
	}
	secretPaths(taken, used)
	repo := at(r.effective(t, p), "advertise") + "/trawl/canary"
	if allow, _ := taken["allow"].([]any); len(allow) != 1 || allow[0] != repo || taken["out"] != file || taken["replace"] != true {
		t.Errorf("%s: %v, want a token for %s at %s", p, taken, repo, file)
	}
	if got, want := slices.Sorted(maps.Keys(secretsIn(t, p, "admin"))), slices.Sorted(maps.Keys(used)); !slices.Equal(got, want) {
		t.Errorf("%s: %s has %v, and uses %v", p, c.Name, got, want)
	}
	for _, m := range p.spec.Containers[0].VolumeMounts {
		if m.Name == "admin" {
			t.Errorf("%s: the canary has the user of etcd", p)
		}
	}
}
