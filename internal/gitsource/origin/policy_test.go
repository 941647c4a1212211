package origin

import (
	"errors"
	"net/netip"
	"strings"
	"testing"
)

// testPolicy is the policy of the tests on URLs.
var testPolicy = Policy{
	Schemes: []string{"https", "ssh"}, PrivateNetworks: []string{"10.1.0.0/16"}, Folders: []string{"/srv/git"},
}

var urls = []struct {
	raw  string
	rule Rule // empty: allowed
}{
	{"https://github.com/org/name", ""},
	{"https://GitHub.com:8443/org/name.git", ""},
	{"ssh://git@github.com/org/name", ""},
	{"git@github.com:org/name.git", ""},
	{"github.com:org/name", ""},
	{"https://8.8.8.8/x", ""},
	{"https://10.1.2.3/x", ""},
	{"https://[2606:4700::1111]/x", ""},
	{"/srv/git/a", ""},
	{"/srv/git", ""},
	{"file:///srv/git/a%20b", ""},
	{"file://localhost/srv/git/a", ""},

	{"", RuleSyntax},
	{"name", RuleSyntax},
	{"./name", RuleSyntax},
	{"https://github.com", RuleSyntax},
	{"https://github.com/", RuleSyntax},
	{"https://github.com/a?b=c", RuleSyntax},
	{"https://github.com/a#b", RuleSyntax},
	{"https://github.com:99999/a", RuleSyntax},
	{"https://github.com:0/a", RuleSyntax},
	{"https://github.com/a\nb", RuleSyntax},
	{"https://github.com/a%0ab", RuleSyntax},
	{"https://github.com/a\xff", RuleSyntax},
	{"https://github.com/" + strings.Repeat("a", MaxURL), RuleSyntax},
	{"ssh://a%20b@github.com/x", RuleSyntax},
	{"ssh://git@github.com/-x", RuleSyntax},
	{"git@github.com:-x", RuleSyntax},
	{"-uname:x", RuleLeadingDash},
	{"--upload-pack=touch /tmp/x", RuleLeadingDash},
	{"ext::sh -c whoami", RuleHelper},
	{"fd::17", RuleHelper},
	{"https::https://github.com/x", RuleHelper},
	{"http://github.com/x", RuleScheme},
	{"git://github.com/x", RuleScheme},
	{"ftp://github.com/x", RuleScheme},
	{"javascript://github.com/x", RuleScheme},
	{"https://user:secret@github.com/x", RuleCredentials},
	{"https://token@github.com/x", RuleCredentials},
	{"ssh://git:secret@github.com/x", RuleCredentials},
	{"ssh://-oProxyCommand=x/y", RuleHost},
	{"ssh://git@-oProxyCommand=x/y", RuleHost},
	{"git@-oProxyCommand=x:y", RuleHost},
	{"https:///x", RuleHost},
	{"https://a..b/x", RuleHost},
	{"https://127.1/x", RuleHost},
	{"https://0x7f.0.0.1/x", RuleHost},
	{"https://0x7f000001/x", RuleHost},
	{"https://2130706433/x", RuleHost},
	{"https://127.0.0.1/x", RulePrivateAddress},
	{"https://localhost/x", RulePrivateAddress},
	{"https://a.localhost/x", RulePrivateAddress},
	{"https://10.2.0.1/x", RulePrivateAddress},
	{"https://169.254.169.254/latest", RulePrivateAddress},
	{"https://[::1]/x", RulePrivateAddress},
	{"https://[::ffff:169.254.169.254]/x", RulePrivateAddress},
	{"https://[64:ff9b::a9fe:a9fe]/x", RulePrivateAddress},
	{"https://[fd00:ec2::254]/x", RulePrivateAddress},
	{"git@192.168.0.1:x", RulePrivateAddress},
	{"/etc", RuleFolder},
	{"/srv/gitlab", RuleFolder},
	{"/srv/git/../../etc", RuleFolder},
	{"file:///srv/git/%2e%2e/x", RuleFolder},
	{"file://other/srv/git/x", RuleFolder},
}

func TestCheckURL(t *testing.T) {
	for _, c := range urls {
		err := CheckURL(c.raw, testPolicy)
		var rule *RuleError
		switch {
		case c.rule == "" && err != nil:
			t.Errorf("%q: %v", c.raw, err)
		case c.rule != "" && (!errors.As(err, &rule) || rule.Rule != c.rule):
			t.Errorf("%q: got %v, want rule %s", c.raw, err, c.rule)
		case err != nil && strings.Contains(err.Error(), "secret"):
			t.Errorf("%q: the error shows the password: %v", c.raw, err)
		}
	}
}

func TestCloneURL(t *testing.T) {
	for _, c := range [][3]string{
		{"https://GitHub.com/a%20b/c.git", "", "https://github.com/a%20b/c.git"},
		{"HTTPS://github.com:8443/a", "", "https://github.com:8443/a"},
		{"https://[2606:4700::1111]/a", "", "https://[2606:4700::1111]/a"},
		{"git://github.com:9419/a", "2606:4700::1111", "git://[2606:4700::1111]:9419/a"},
		{"ssh://git@github.com/a", "", "ssh://git@github.com/a"},
		{"git@github.com:org/name", "", "git@github.com:org/name"},
		{"file:///srv/a%20b/", "", "/srv/a b"},
	} {
		r, err := Parse(c[0])
		if got := r.CloneURL(c[1]); err != nil || got != c[2] {
			t.Errorf("%s: got %s, %v, want %s", c[0], got, err, c[2])
		}
	}
}

func TestPolicyHosts(t *testing.T) {
	p := Policy{Schemes: []string{"https"}, Hosts: []string{"*.example.com", "GitHub.com"}}
	for raw, ok := range map[string]bool{
		"https://github.com/x": true, "https://a.b.example.com/x": true,
		"https://example.com/x": false, "https://badexample.com/x": false, "https://x.github.com/x": false,
	} {
		if err := CheckURL(raw, p); (err == nil) != ok {
			t.Errorf("%s: %v, want allowed %v", raw, err, ok)
		}
	}
}

func TestPolicyOfNothing(t *testing.T) {
	for raw, flag := range map[string]string{"https://github.com/x": "--source-schemes", "/srv": "--source-folders", "git@github.com:x": "--source-schemes"} {
		if err := CheckURL(raw, Policy{}); err == nil || !strings.Contains(err.Error(), flag+" allows: none") {
			t.Errorf("%s: %v, want what %s allows", raw, err, flag)
		}
	}
}

func TestPolicyValidate(t *testing.T) {
	var defaults Policy
	defaults.SetDefaults()
	if err := defaults.Validate(); err != nil {
		t.Error(err)
	}
	for _, p := range []Policy{
		{Schemes: []string{"ext"}},
		{Hosts: []string{"a b"}},
		{PrivateNetworks: []string{"10.0.0.1"}},
		{PrivateNetworks: []string{"10.0.0.0/8:0"}},
		{PrivateNetworks: []string{"10.0.0.1:443"}},
		{PrivateNetworks: []string{"fd00::/8:443"}},
		{Folders: []string{"relative"}},
	} {
		if p.Validate() == nil {
			t.Errorf("%+v is accepted", p)
		}
	}
}

func TestPublicAddress(t *testing.T) {
	for s, want := range map[string]bool{
		"1.1.1.1": true, "2606:4700::1111": true, "64:ff9b::808:808": true, "2002:808:808::1": true,
		"0.0.0.0": false, "127.8.8.8": false, "10.0.0.1": false, "172.16.0.1": false, "192.168.1.1": false,
		"169.254.169.254": false, "100.100.100.200": false, "224.0.0.1": false, "255.255.255.255": false,
		"192.0.0.192": false, "::": false, "::1": false, "::7f00:1": false, "fe80::1": false, "fc00::1": false,
		"ff02::1": false, "64:ff9b::7f00:1": false, "2002:7f00:1::": false, "2002:a9fe:a9fe::1": false,
	} {
		if got := public(netip.MustParseAddr(s)); got != want {
			t.Errorf("%s: public %v, want %v", s, got, want)
		}
	}
}

// TestPrivatePorts: a network that is allowed with a port is reached at this port alone.
func TestPrivatePorts(t *testing.T) {
	p := Policy{Schemes: []string{"https", "http", "ssh"}, PrivateNetworks: []string{"10.0.0.0/8:443", "127.0.0.0/8:8443", "[fd00::/8]:22", "192.168.0.0/16"}}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for raw, want := range map[string]bool{
		"https://10.1.2.3/x": true, "https://10.1.2.3:443/x": true, "http://10.1.2.3:443/x": true, "https://[fd00::1]:22/x": true,
		"git@[fd00::1]:x": false, "ssh://git@[fd00::1]/x": true, "https://192.168.1.1:2379/x": true, "https://localhost:8443/x": true,
		"http://10.1.2.3/x": false, "https://10.1.2.3:2379/x": false, "ssh://git@10.1.2.3/x": false, "https://[fd00::1]/x": false,
		"https://localhost/x": false, "https://[::ffff:10.1.2.3]:2379/x": false,
	} {
		if err := CheckURL(raw, p); (err == nil) != want {
			t.Errorf("%s: %v", raw, err)
		}
	}
	if _, err := p.AllowedAddress(t.Context(), "127.0.0.1", "2379"); err == nil {
		t.Error("another port is allowed after the look-up")
	}
}

// TestMetadataServices: no metadata service of a cloud is allowed, whatever networks
// are, and however its address is written.
func TestMetadataServices(t *testing.T) {
	p := Policy{Schemes: []string{"https"}, PrivateNetworks: []string{"0.0.0.0/0", "::/0"}}
	for _, s := range []string{
		"169.254.169.254", "169.254.170.2", "168.63.129.16", "100.100.100.200", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254",
		"fe80::a9fe:a9fe", "::ffff:169.254.169.254", "::ffff:168.63.129.16", "64:ff9b::a83f:8110", "64:ff9b:1::a9fe:a9fe", "2002:a83f:8110::1",
		"2002:a9fe:a9fe::", "::169.254.169.254", "::168.63.129.16",
	} {
		if err := p.checkAddress(netip.MustParseAddr(s), "80"); err == nil {
			t.Errorf("%s is allowed", s)
		}
		if public(netip.MustParseAddr(s).Unmap()) && !isMetadata(netip.MustParseAddr(s).Unmap()) {
			t.Errorf("%s is public", s)
		}
	}
	for _, s := range []string{"10.0.0.1", "168.63.129.17", "8.8.8.8", "fd00::1", "2606:4700::1111"} {
		if err := p.checkAddress(netip.MustParseAddr(s), "80"); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func TestResolveRefusesNamesOfPrivateAddresses(t *testing.T) {
	// An address needs no name server, and takes the same path as a name.
	p := Policy{Schemes: []string{"https"}}
	var rule *RuleError
	if _, err := p.AllowedAddress(t.Context(), "127.0.0.1", "443"); !errors.As(err, &rule) {
		t.Errorf("got %v, want a rule", err)
	}
	if _, err := p.AllowedAddress(t.Context(), "localhost", "443"); !errors.As(err, &rule) {
		t.Errorf("a name of a private address: got %v, want a rule", err)
	}
	p.PrivateNetworks = []string{"127.0.0.0/8"}
	if got, err := p.AllowedAddress(t.Context(), "127.0.0.1", "443"); err != nil || got.String() != "127.0.0.1" {
		t.Errorf("got %v, %v", got, err)
	}
	if err := p.Resolve(t.Context(), "https://[::1]/x"); !errors.As(err, &rule) {
		t.Errorf("got %v, want a rule", err)
	}
}

func TestRepoName(t *testing.T) {
	for raw, want := range map[string]string{
		"https://GitHub.com/org/name.git":    "github.com/org/name",
		"https://github.com/org/name/":       "github.com/org/name",
		"https://github.com:8443/org/name":   "github.com:8443/org/name",
		"https://[2606:4700::1]:1/x":         "[2606:4700::1]:1/x",
		"git@github.com:org/name.git":        "github.com/org/name",
		"ssh://git@github.com/org/name.git/": "github.com/org/name",
		"/srv/git/name.git":                  "localhost/srv/git/name",
		"file:///srv/git/a%20b":              "localhost/srv/git/a b",
	} {
		if got, err := RepoName(raw); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{"https://github.com/a/../b", "https://github.com/a//b", "https://github.com/.git", "x"} {
		if got, err := RepoName(raw); err == nil {
			t.Errorf("%s: got %q, want an error", raw, got)
		}
	}
}

// TestOneRepositoryHasOneName: no spelling of a URL gives a repository a second name,
// which the patterns of tokens would not match.
func TestOneRepositoryHasOneName(t *testing.T) {
	const want = "git.example.com/org/secret"
	for _, raw := range []string{
		"https://git.example.com:443/org/secret", "https://git.example.com:0443/org/secret", "https://git.example.com./org/secret.git/",
		"https://GIT.example.com/org/secret.git.git", "https://git.example.com/org/secret.GIT", "https://git.example.com//org/secret//",
		"https://git.example.com/org/%73ecret", "https://git.example.com/org%2fsecret", "https://git.example.com/org/secret/.git",
		"http://git.example.com:80/org/secret", "ssh://git@git.example.com:22/org/secret", "git://git.example.com:9418/org/secret",
		"git@git.example.com:org/secret.git", "ssh://other@git.example.com/org/secret", "git@git.example.com.:/org/secret",
	} {
		if got, err := RepoName(raw); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", raw, got, err, want)
		}
	}
	for _, raw := range []string{
		`https://git.example.com/mine\..\org\secret`, "https://git.example.com/mine%5c..%5corg%5csecret", "https://git.example.com/org/secret;x",
		"https://git.example.com/org/secret%3Bx.git", "https://git.example.com/mine/../org/secret", "https://git.example.com/mine/%2e%2e/org/secret",
		"https://git.example.com/org//secret", "https://git.example.com../org/secret", "https://\u0261it.example.com/org/secret",
		"git@git.example.com:../org/secret", "ssh://git@git.example.com/./org/secret",
	} {
		if got, err := RepoName(raw); err == nil {
			t.Errorf("%s: got %q, want an error", raw, got)
		}
	}
	if a, err := RepoName("https://[2606:4700:0:0::1]/x"); err != nil || a != "[2606:4700::1]/x" && a != "2606:4700::1/x" {
		t.Errorf("an address written at length: %q, %v", a, err)
	}
}

func TestSameRepository(t *testing.T) {
	const url = "https://git.example.com/org/name"
	for other, want := range map[string]bool{
		"https://Git.Example.com:443/org/name.git/": true, url: true,
		"http://git.example.com/org/name": false, "https://git.example.com:8443/org/name": false, "https://git.example.com/org/Name": false,
		"ssh://git.example.com/org/name": false, "https://git.example.org/org/name": false, "": false,
	} {
		if got := SameRepository(url, other); got != want {
			t.Errorf("%s: %v, want %v", other, got, want)
		}
	}
	for _, pair := range [][2]string{
		{"git@host:org/name", "ssh://git@host/org/name"}, {"ssh://git@host/a", "ssh://other@host/a"}, {"x", "x"}, {"", ""},
	} {
		if SameRepository(pair[0], pair[1]) {
			t.Errorf("%q is the same as %q", pair[0], pair[1])
		}
	}
	if !SameRepository("/srv/git/a.git", "file:///srv/git/a.git/.git/") {
		t.Error("a path and the URL of the same folder differ")
	}
}

// TestNamesThatMeet: a name that nobody chose may stand for one host's repository over any transport, but
// not for two folders, nor for a folder and a host.
func TestNamesThatMeet(t *testing.T) {
	for _, tt := range []struct {
		a, b  string
		share bool
	}{
		{"https://git.example.com/o/r", "git@git.example.com:o/r.git", true},
		{"https://git.example.com/o/r", "http://git.example.com/o/r.git", true},
		{"https://git.example.com/o/r", "https://git.example.com/o/other", false},
		{"/srv/git/a", "file:///srv/git/a/", true},
		{"/srv/git/a", "/srv/git/a/.git", true},
		{"/srv/git/a", "/srv/git/a.git", false},
		{"/srv/git/a.git", "/srv/git/a.git.git", false},
		{"/srv/git/a.git", "/srv/git/a.GIT", false},
		{"/srv/git/a", "/srv/git/a.git/.git", false},
		{"/srv/git/a", "https://localhost/srv/git/a", false},
		{"/srv/git/a", "ssh://localhost/srv/git/a.git", false},
		{"/srv/git/a", "", false},
	} {
		if MayShareName(tt.a, tt.b) != tt.share || MayShareName(tt.b, tt.a) != tt.share {
			t.Errorf("%q and %q: want %v", tt.a, tt.b, tt.share)
		}
	}
}

func TestCheckBranch(t *testing.T) {
	for _, ok := range []string{"main", "HEAD", "a/b", "release-1.2", "größe", "a.b", "@", "refs/heads/main", "refs/heads/-x", "refs/heads/HEAD", "refs/tags/v1", "tags/v1", strings.Repeat("a", 250) + "/b"} {
		if err := CheckBranch(ok); err != nil {
			t.Errorf("%q: %v", ok, err)
		}
	}
	for _, bad := range []string{
		"", "-x", "--upload-pack=x", "a b", "a..b", "a:b", "+a:b", "a^", "a~1", "a*", "a[", "a\\b", "a?", "/a", "a/", "a//b",
		".a", "a/.b", "a.lock", "a.", "a@{1}", "refs/x", "refs/heads/", "refs/tags", "refs/pull/1/head", "refs/heads/.a", "a\nb", "a\x7f", "\xff", strings.Repeat("a", MaxName+1), "b/" + strings.Repeat("a", 251),
	} {
		if CheckBranch(bad) == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}

// TestMatchBranch: a wanted name selects a branch however either is written, and a pattern of branches no tags.
func TestMatchBranch(t *testing.T) {
	for _, tt := range []struct {
		want, name string
		matches    bool
	}{
		{"main", "main", true}, {"refs/heads/main", "main", true}, {"main", "refs/tags/main", false}, {"main", "HEAD", false},
		{"**", "a/b", true}, {"*", "a/b", false}, {"**", "refs/heads/HEAD", true}, {"**", "refs/tags/v1", false}, {"**", "HEAD", false},
		{"refs/tags/*", "refs/tags/v1", true}, {"refs/tags/*", "v1", false}, {"refs/heads/r*", "release", true}, {"HEAD", "HEAD", true},
		{"refs/heads/HEAD", "HEAD", false},
	} {
		if got := MatchBranch([]string{"none", tt.want}, tt.name); got != tt.matches {
			t.Errorf("%q selects %q: %v", tt.want, tt.name, got)
		}
	}
}

func FuzzParseRemote(f *testing.F) {
	for _, s := range []string{"https://a.b/c", "git@h:p", "ext::x", "file:///a", "-x", "ssh://u@h:1/p", "https://[::1]/x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, raw string) {
		r, err := Parse(raw)
		if err != nil {
			if rule := (*RuleError)(nil); !errors.As(err, &rule) {
				t.Fatalf("%q: %T", raw, err)
			}
			return
		}
		if strings.HasPrefix(r.Host, "-") || strings.HasPrefix(r.User, "-") || strings.HasPrefix(raw, "-") {
			t.Fatalf("%q: a part can be taken for an option: %+v", raw, r)
		}
		if r.Scheme != SchemeFile && r.Host == "" {
			t.Fatalf("%q: no host", raw)
		}
	})
}

// TestCanaryIsExempt: the canary's repository alone is allowed beside the other rules, at any address but those of metadata
// services.
func TestCanaryIsExempt(t *testing.T) {
	const canary = "http://127.0.0.1:7461/trawl/canary.git"
	p := Policy{Schemes: []string{"https"}, Hosts: []string{"github.com"}, Canary: canary}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for url, allowed := range map[string]bool{
		canary:                                     true,
		"http://127.0.0.1:7461/trawl/canary":       true,
		"http://127.0.0.1:7461/trawl/other.git":    false,
		"http://127.0.0.1:7462/trawl/canary.git":   false,
		"https://127.0.0.1:7461/trawl/canary.git":  false,
		"http://127.0.0.2:7461/trawl/canary.git":   false,
		"http://github.com:7461/trawl/canary.git":  false,
		"http://u@127.0.0.1:7461/trawl/canary.git": false,
	} {
		if err := p.Resolve(t.Context(), url); (err == nil) != allowed {
			t.Errorf("%s: %v", url, err)
		}
	}
	p.Canary = "http://169.254.169.254:80/trawl/canary.git"
	if err := p.Resolve(t.Context(), p.Canary); err == nil {
		t.Error("a metadata service is allowed as a canary")
	}
	for _, bad := range []string{"canary", "https://canary:1/trawl/canary.git", "/trawl/canary.git", "http://canary:1"} {
		p.Canary = bad
		if err := p.Validate(); err == nil {
			t.Errorf("the setting %q is accepted", bad)
		}
	}
}
