package charttest

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// TestSecretsStayInSecrets: generated secrets are in the chart's Secret and
// nowhere else, and all credentials come from Secrets.
func TestSecretsStayInSecrets(t *testing.T) {
	secretive := regexp.MustCompile(`(?i)(ACCESS_KEY|SECRET|PASSWORD|USERNAME|TOKEN)`)
	harmless := regexp.MustCompile(`^TRAWL_TOKENS_ETCD_(ENDPOINTS|PREFIX)$|_FILE$`) // places
	each(t, func(t *testing.T, r rendered) {
		var made []string
		for _, o := range r.objects {
			if s, ok := o.typed.(*corev1.Secret); ok {
				for key, value := range s.Data {
					if len(value) < 20 {
						t.Errorf("%s: %s has %d bytes", o, key, len(value))
					}
					made = append(made, string(value))
				}
			}
		}
		for _, o := range r.objects {
			for _, value := range made {
				if o.kind != "Secret" && regexp.MustCompile(regexp.QuoteMeta(value)).Match(o.raw) {
					t.Errorf("%s shows what was made up", o)
				}
			}
		}
		for _, p := range r.pods() {
			for _, c := range p.containers() {
				for _, e := range c.Env {
					if secretive.MatchString(e.Name) && !harmless.MatchString(e.Name) && (e.Value != "" || e.ValueFrom == nil || e.ValueFrom.SecretKeyRef == nil) {
						t.Errorf("%s: %s does not come from a Secret", p, e.Name)
					}
				}
			}
		}
	})
}

// TestSecretsThatAreNamed: each role gets the credentials for the servers that it
// calls, and no others.
func TestSecretsThatAreNamed(t *testing.T) {
	want := map[string][]string{
		"router":   {"TRAWL_ROUTER_NATS_USERNAME=nats-user/username", "nats-user/password at nats/password"},
		"searcher": {"AWS_ACCESS_KEY_ID=s3-keys/access-key", "AWS_SECRET_ACCESS_KEY=s3-keys/secret-key"},
		"indexer": {
			"AWS_ACCESS_KEY_ID=s3-keys/access-key", "AWS_SECRET_ACCESS_KEY=s3-keys/secret-key",
			"TRAWL_INDEXER_NATS_USERNAME=nats-user/username", "nats-user/password at nats/password",
		},
		"selftest": nil, "canary": nil,
	}
	for _, p := range renderedAs(t, "external", usual).pods() {
		var got []string
		for _, e := range p.spec.Containers[0].Env {
			if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
				got = append(got, e.Name+"="+e.ValueFrom.SecretKeyRef.Name+"/"+e.ValueFrom.SecretKeyRef.Key)
			}
		}
		for _, v := range p.spec.Volumes {
			if v.Name == "secrets" {
				got = append(got, mounted(v)...)
			}
		}
		if !slices.Equal(got, want[p.component()]) {
			t.Errorf("%s gets %v, want %v", p, got, want[p.component()])
		}
	}
}

// mounted lists the files of a projected volume.
func mounted(v corev1.Volume) (files []string) {
	for _, s := range v.Projected.Sources {
		switch {
		case s.Secret == nil:
			files = append(files, s.ConfigMap.Items[0].Path)
		case s.Secret.Items == nil:
			files = append(files, s.Secret.Name+" as it is")
		default:
			for _, item := range s.Secret.Items {
				files = append(files, s.Secret.Name+"/"+item.Key+" at "+item.Path)
			}
		}
	}
	return files
}

// TestGitCredentialsHaveTheirPlaces: credentials are where the indexer looks for them.
func TestGitCredentialsHaveTheirPlaces(t *testing.T) {
	for _, p := range renderedAs(t, "external", usual).pods() {
		if p.component() != "indexer" {
			continue
		}
		var got []string
		for _, v := range p.spec.Volumes {
			if v.Projected != nil && v.Name != "secrets" {
				got = append(got, mounted(v)...)
			}
		}
		want := []string{
			"git-https/username at git.example.com/username", "git-https/password at git.example.com/password",
			"git-ssh/ssh_key at git.example.com:2222/ssh_key", "host-tokens as it is", "known_hosts",
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v, want %v", got, want)
		}
	}
}

// TestServersOfEvaluationsAsk: the servers of an evaluation that support passwords have the same
// ones as the roles.
func TestServersOfEvaluationsAsk(t *testing.T) {
	each(t, func(t *testing.T, r rendered) {
		if r.values["evaluation"] == nil {
			return
		}
		given := map[string]string{} // the keys that a variable or a file has
		for _, p := range r.pods() {
			for _, e := range p.spec.Containers[0].Env {
				if e.ValueFrom != nil && e.ValueFrom.SecretKeyRef != nil {
					given[p.component()+" "+e.Name] = e.ValueFrom.SecretKeyRef.Name + "/" + e.ValueFrom.SecretKeyRef.Key
				}
			}
			for _, v := range p.spec.Volumes {
				if v.Name != "secrets" {
					continue
				}
				for _, file := range mounted(v) {
					key, path, _ := strings.Cut(file, " at ")
					given[p.component()+" "+path] = key
				}
			}
		}
		for server, roles := range map[string][]string{
			"nats NATS_USERNAME":        {"router TRAWL_ROUTER_NATS_USERNAME", "indexer TRAWL_INDEXER_NATS_USERNAME"},
			"nats NATS_PASSWORD":        {"router nats/password", "indexer nats/password"},
			"s3 ROOT_ACCESS_KEY_ID":     {"searcher AWS_ACCESS_KEY_ID", "indexer AWS_ACCESS_KEY_ID"},
			"s3 ROOT_SECRET_ACCESS_KEY": {"searcher AWS_SECRET_ACCESS_KEY", "indexer AWS_SECRET_ACCESS_KEY"},
		} {
			for _, role := range roles {
				if given[server] == "" || given[server] != given[role] {
					t.Errorf("%s is %q, %s is %q", server, given[server], role, given[role])
				}
			}
		}
		for _, o := range r.objects {
			m, ok := o.typed.(*corev1.ConfigMap)
			if ok && m.Data["nats.conf"] != "" && !strings.Contains(m.Data["nats.conf"], "authorization {user: $NATS_USERNAME, password: $NATS_PASSWORD}") {
				t.Errorf("%s lets everybody in", o)
			}
		}
	})
}
