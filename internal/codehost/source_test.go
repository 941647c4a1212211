package codehost

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

const full = `# what we search
sources:
  - name: acme
    kind: github
    owner: acme
    include: [acme/*]
    exclude: [acme/secret-*]
    archived: true
    branches: [main]
    overrides:
      - match: acme/big
        branches: [main, release/*]
    ranks:
      - {match: acme/big, rank: 80}
      - {match: 'acme/b*', rank: 15}
    token: {env: TRAWL_SECRET_GITHUB}
    webhook_secret: {file: acme-webhook}
    every: 5m
    grace: 0s
  - {name: one, kind: git, url: "https://git.example.com/a/b"}
`

func TestParse(t *testing.T) {
	list, err := ParseSources([]byte(full))
	if err != nil || len(list) != 2 {
		t.Fatalf("%v, %v", list, err)
	}
	acme, one := list[0], list[1]
	if Every(acme) != 5*time.Minute || Grace(acme) != 0 || Every(one) != DefaultEvery || Grace(one) != DefaultGrace {
		t.Errorf("times of %v, %v", acme, one)
	}
	if !slices.Equal(Branches(acme, "acme/big"), []string{"main", "release/*"}) || !slices.Equal(Branches(acme, "acme/x"), []string{"main"}) {
		t.Errorf("branches of %v", acme)
	}
	if Rank(acme, "acme/big") != 80 || Rank(acme, "acme/b") != 15 || Rank(acme, "acme/a") != 0 {
		t.Errorf("ranks of %v", acme)
	}
	for f, want := range map[Repo]bool{
		{Path: "acme/a"}: true, {Path: "acme/a", Archived: true}: true, {Path: "acme/a", Fork: true}: false,
		{Path: "acme/secret-a"}: false, {Path: "other/a"}: false, {Path: "acme/a/b"}: false,
		{Path: "acme/" + strings.Repeat("a", 1019)}: true, {Path: "acme/" + strings.Repeat("a", 1020)}: false,
	} {
		if Wants(acme, f) != want {
			t.Errorf("%+v: want %v", f, want)
		}
	}
	for _, text := range []string{"sources: []", "# none\nsources: []\n", "---\nsources:\n  []\n"} {
		if list, err := ParseSources([]byte(text)); err != nil || len(list) != 0 {
			t.Errorf("%q: %v, %v", text, list, err)
		}
	}
	for _, text := range []string{"", "\n", "# sources: []\n", "---\n", "{}", "~", "sources:", "sources: ~", "sources:\n# - {name: x}\n"} {
		if list, err := ParseSources([]byte(text)); err == nil || !strings.Contains(err.Error(), "sources: []") {
			t.Errorf("%q lists no sources and does not say so: %v, %v", text, list, err)
		}
	}
}

// TestManySources: a file may have as many sources as the limit, and no more.
func TestManySources(t *testing.T) {
	var text strings.Builder
	text.WriteString("sources:\n")
	add := func(i int) { fmt.Fprintf(&text, "  - {name: s%d, kind: github, owner: o}\n", i) }
	for i := range MaxSources {
		add(i)
	}
	if list, err := ParseSources([]byte(text.String())); err != nil || len(list) != MaxSources {
		t.Fatalf("%d sources, %v", len(list), err)
	}
	add(MaxSources)
	if _, err := ParseSources([]byte(text.String())); err == nil || !strings.Contains(err.Error(), "at most 1000") {
		t.Errorf("%v", err)
	}
}

// TestRefused: errors name the line, and never quote a value that may be a secret.
func TestRefused(t *testing.T) {
	const leaked = "ghp_leaked"
	head := "sources:\n  - {name: good, kind: github, owner: o}\n  - "
	for text, want := range map[string]string{
		head + "{name: x, kind: github, owner: o, ower: y}":                         "line 3: field ower is not known",
		head + "{name: x, kind: svn, url: 'https://h'}":                             `line 3: source "x": kind "svn"`,
		head + "{name: X, kind: github, owner: o}":                                  "line 3: source \"X\": name",
		head + "{name: good, kind: github, owner: o}":                               "line 3: source \"good\" is there already, at line 2",
		head + "{name: x, kind: github}":                                            "owner is missing",
		head + "{name: x, kind: gitea, owner: o}":                                   "url is missing",
		head + "{name: x, kind: gitea, owner: o, url: 'ftp://h'}":                   "address of a host",
		head + "{name: x, kind: gitea, owner: o, url: 'https://u:ghp_leaked@h'}":    "user or password",
		head + "{name: x, kind: git, url: 'https://u:ghp_leaked@h/x'}":              "credentials",
		head + "{name: x, kind: github, owner: ../o}":                               `unknown owner "../o"`,
		head + "{name: x, kind: github, owner: o, token: ghp_leaked}":               "line 3",
		head + "{name: x, kind: github, owner: o, token: {env: ghp_leaked}}":        "TRAWL_SECRET_",
		head + "{name: x, kind: github, owner: o, token: {env: AWS_SECRET_KEY}}":    "TRAWL_SECRET_",
		head + "{name: x, kind: github, owner: o, token: {file: ../../etc/shadow}}": "without a slash",
		head + "{name: x, kind: github, owner: o, token: {}}":                       "one of env and file",
		head + "{name: x, kind: github, owner: o, token: {value: ghp_leaked}}":      "line 3: field value is not known",
		head + "{name: x, kind: github, owner: o, include: ['a***']}":               "***",
		head + "{name: x, kind: github, owner: o, branches: ['-x']}":                "branches",
		head + "{name: x, kind: github, owner: o, overrides: [{match: x}]}":         "no branches",
		head + "{name: x, kind: github, owner: o, ranks: [{match: x, rank: 101}]}":  "rank 101: want 0 to 100",
		head + "{name: x, kind: github, owner: o, ranks: [{match: 'a***'}]}":        "ranks",
		head + "{name: x, kind: github, owner: o, every: 1ms}":                      "every",
		head + "{name: x, kind: github, owner: o, every: 5}":                        "line 3: cannot unmarshal",
		head + "{name: x, kind: github, owner: o, grace: -1s}":                      "grace",
		head + "{name: x, kind: github, owner: o, owner: p}":                        "already defined",
		head + "{name: x, kind: bitbucket, owner: o, user: true}":                   "use owner",
		head + "{name: x, kind: github, owner: o}\n---\nsources: []":                "more than one document",
		"sorces: []": "line 1: field sorces is not known",
	} {
		list, err := ParseSources([]byte(text))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s:\n%v, want %q; %v", text, err, want, list)
		} else if strings.Contains(err.Error(), leaked) {
			t.Errorf("%s:\nthe error shows the value: %v", text, err)
		}
	}
}

func TestSecrets(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{"good": "file-secret\n", "empty": "\n", "long": strings.Repeat("x", maxSecret+1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := Secrets{Folder: dir, Env: func(name string) (string, bool) { return "env-secret", name == "TRAWL_SECRET_A" }}
	for want, ref := range map[string]*ingestv1.SecretRef{"": nil, "env-secret": {Env: "TRAWL_SECRET_A"}, "file-secret": {File: "good"}} {
		if got, err := s.Get(ref); err != nil || string(got) != want {
			t.Errorf("%v: %v", ref, err)
		}
	}
	for _, ref := range []*ingestv1.SecretRef{
		{}, {Env: "TRAWL_SECRET_B"}, {Env: "PATH"}, {File: "empty"}, {File: "long"}, {File: "none"}, {File: "../x"}, {Env: "TRAWL_SECRET_A", File: "good"},
	} {
		if got, err := s.Get(ref); err == nil || got != "" || strings.Contains(err.Error(), "secret\n") {
			t.Errorf("%v: %v", ref, err)
		}
	}
	if _, err := (Secrets{}).Get(&ingestv1.SecretRef{File: "good"}); err == nil {
		t.Error("there is no folder, and a file was found")
	}
}
