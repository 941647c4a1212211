package config_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"go.uber.org/goleak"

	"github.com/trawl-search/trawl/internal/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// listen is a part of a role's settings.
type listen struct {
	Addr string `config:"addr" doc:"where to listen"`
	Max  int    `config:"max" doc:"connections at once"`
}

func (l *listen) SetDefaults() { *l = listen{Addr: "localhost:1", Max: 10} }

func (l *listen) Validate() error {
	var c config.Check
	c.Address("addr", l.Addr)
	config.Between(&c, "max", l.Max, 1, 100)
	return c.Err()
}

// logging is embedded: its keys are the role's own.
type logging struct {
	Level string `config:"log-level" doc:"how much is logged"`
}

func (l *logging) SetDefaults() { l.Level = "info" }

func (l *logging) Validate() error {
	var c config.Check
	c.OneOf("log-level", l.Level, "info", "debug")
	return c.Err()
}

// role has a setting of every type.
type role struct {
	logging
	GRPC   listen        `config:"grpc"`
	Token  string        `config:"token" doc:"what opens the door"`
	Cache  config.Bytes  `config:"cache-size" doc:"room on the disk"`
	Pause  time.Duration `config:"pause" doc:"time between two rounds"`
	Hosts  []string      `config:"hosts" doc:"who may be asked"`
	Share  float64       `config:"share" doc:"part of the whole | all"`
	Count  uint32        `config:"count" doc:"how many"`
	Wide   int64         `config:"wide" doc:"a large number"`
	Dry    bool          `config:"dry-run" doc:"only pretend"`
	Hidden int           `config:"-"`
}

func (r *role) SetDefaults() {
	*r = role{Cache: 64 * config.MiB, Pause: time.Minute, Hosts: []string{"a", "b"}, Share: 0.5, Count: 3}
	r.logging.SetDefaults()
	r.GRPC.SetDefaults()
}

func (r *role) Validate() error {
	var c config.Check
	c.Nested("", &r.logging)
	c.Nested("grpc", &r.GRPC)
	c.NotEmpty("token", r.Token)
	c.That(r.Pause > 0, "pause", r.Pause, "more than 0")
	return c.Err()
}

// load loads a role from a YAML text, an environment and arguments.
func load(t *testing.T, yaml string, environ []string, args ...string) (*role, *config.Set, error) {
	t.Helper()
	if yaml != "" {
		path := filepath.Join(t.TempDir(), "role.yaml")
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	var r role
	flags := pflag.NewFlagSet("role", pflag.ContinueOnError)
	set, err := config.Bind(flags, "role", &r)
	if err != nil {
		t.Fatal(err)
	}
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	return &r, set, set.Load(environ)
}

// token is the only setting without a default.
const token = "TRAWL_ROLE_TOKEN=hunter2"

func TestDefaults(t *testing.T) {
	r, set, err := load(t, "", []string{token})
	var want role
	want.SetDefaults()
	want.Token = "hunter2"
	if err != nil || fmt.Sprintf("%+v", *r) != fmt.Sprintf("%+v", want) || r.Token != want.Token {
		t.Errorf("%+v, error %v; want %+v", *r, err, want)
	}
	if set.PrintRequested() {
		t.Error("a print was not asked for")
	}
}

func TestPrecedence(t *testing.T) {
	yaml := "grpc: {addr: 'file:1', max: 11}\ncache-size: 1GiB\npause: 1s\nhosts: [x, y, z]\nlog-level: debug\n"
	env := []string{token, "TRAWL_ROLE_GRPC_ADDR=env:2", "TRAWL_ROLE_CACHE_SIZE=2GiB", "TRAWL_ROLE_HOSTS=p, q", "TRAWL_OTHER_X=1", "HOME=/"}
	r, _, err := load(t, yaml, env, "--grpc-addr=flag:3", "--dry-run", "--wide=-5")
	if err != nil {
		t.Fatal(err)
	}
	switch {
	case r.GRPC.Addr != "flag:3": // over variable and file
		t.Errorf("addr %q", r.GRPC.Addr)
	case r.Cache != 2*config.GiB || !slices.Equal(r.Hosts, []string{"p", "q"}): // variable over file
		t.Errorf("cache %v, hosts %q", r.Cache, r.Hosts)
	case r.GRPC.Max != 11 || r.Pause != time.Second || r.Level != "debug": // file over default
		t.Errorf("max %d, pause %v, level %q", r.GRPC.Max, r.Pause, r.Level)
	case r.Share != 0.5 || r.Count != 3: // default
		t.Errorf("share %v, count %d", r.Share, r.Count)
	case !r.Dry || r.Wide != -5:
		t.Errorf("dry-run %v, wide %d", r.Dry, r.Wide)
	}
}

// TestListsMayBeRepeated: no value of a flag that is given twice is lost silently, and the default is replaced.
func TestListsMayBeRepeated(t *testing.T) {
	r, _, err := load(t, "hosts: [x]", []string{token, "TRAWL_ROLE_HOSTS=p"}, "--hosts", "one", "--hosts=two,three", "--hosts", "four")
	if want := []string{"one", "two", "three", "four"}; err != nil || !slices.Equal(r.Hosts, want) {
		t.Errorf("hosts %q, want %q: %v", r.Hosts, want, err)
	}
	if r, _, err := load(t, "", []string{token}, "--pause", "1s", "--pause", "2s"); err != nil || r.Pause != 2*time.Second {
		t.Errorf("pause %v: %v", r.Pause, err)
	}
}

func TestEachSettingFromEachSource(t *testing.T) {
	for _, c := range []struct{ key, value, shown string }{
		{"log-level", "debug", "debug"},
		{"grpc.addr", "host:7", "host:7"},
		{"grpc.max", "99", "99"},
		{"cache-size", "1500000", "1500000"},
		{"pause", "1m30s", "1m30s"},
		{"hosts", "one,two", "[one two]"},
		{"share", "0.25", "0.25"},
		{"count", "4294967295", "4294967295"},
		{"wide", "-9223372036854775808", "-9223372036854775808"},
		{"dry-run", "true", "true"},
	} {
		name := strings.ToUpper(strings.NewReplacer(".", "_", "-", "_").Replace(c.key))
		yaml := "{" + strings.ReplaceAll(c.key, ".", ": {") + ": '" + c.value + "'}" + strings.Repeat("}", strings.Count(c.key, "."))
		for source, load := range map[string]func() (*role, *config.Set, error){
			"file": func() (*role, *config.Set, error) { return load(t, yaml, []string{token}) },
			"variable": func() (*role, *config.Set, error) {
				return load(t, "", []string{token, "TRAWL_ROLE_" + name + "=" + c.value})
			},
			"flag": func() (*role, *config.Set, error) {
				return load(t, "", []string{token}, "--"+strings.ReplaceAll(c.key, ".", "-"), c.value)
			},
		} {
			r, _, err := load()
			if err != nil {
				t.Errorf("%s from %s: %v", c.key, source, err)
				continue
			}
			if got := setting(r, c.key); got != c.shown {
				t.Errorf("%s from %s: %q, want %q", c.key, source, got, c.shown)
			}
		}
	}
}

// setting is a value of the role as text.
func setting(r *role, key string) string {
	return fmt.Sprint(map[string]any{
		"log-level": r.Level, "grpc.addr": r.GRPC.Addr, "grpc.max": r.GRPC.Max, "cache-size": int64(r.Cache), "pause": r.Pause,
		"hosts": r.Hosts, "share": r.Share, "count": r.Count, "wide": r.Wide, "dry-run": r.Dry,
	}[key])
}

func TestMistakes(t *testing.T) {
	for _, c := range []struct {
		what, yaml string
		env        []string
		args       []string
		want       string // after "load the settings of role: "; FILE is the file's path
	}{
		{what: "unknown flagless key", yaml: "grpc: {adr: x}", want: `grpc.adr (FILE): there is no such setting; did you mean grpc.addr?`},
		{what: "unknown key like nothing", yaml: "zzzzzzzz: 1", want: `zzzzzzzz (FILE): there is no such setting`},
		{what: "hidden field", yaml: "hidden: 1", want: `hidden (FILE): there is no such setting`},
		{what: "group as a setting", yaml: "grpc: 5", want: `grpc (FILE): this is a group of settings, not a setting`},
		{what: "setting as a group", yaml: "pause: {x: 1}", want: `pause.x (FILE): there is no such setting; did you mean pause?`},
		{what: "unknown variable", env: []string{"TRAWL_ROLE_GRPC_ADR=x"}, want: `TRAWL_ROLE_GRPC_ADR ($TRAWL_ROLE_GRPC_ADR): there is no such setting`},
		{what: "flag without a variable", env: []string{"TRAWL_ROLE_PRINT_CONFIG=1"}, want: `TRAWL_ROLE_PRINT_CONFIG ($TRAWL_ROLE_PRINT_CONFIG): there is no such setting`},
		{what: "bad number", args: []string{"--grpc-max=ten"}, want: `grpc.max = "ten" (--grpc-max): want a whole number`},
		{what: "number too large", args: []string{"--count=4294967296"}, want: `count = "4294967296" (--count): want a whole number, not negative`},
		{what: "negative count", yaml: "count: -1", want: `count = "-1" (FILE): want a whole number, not negative`},
		{what: "fraction", yaml: "count: 1.5", want: `count = "1.5" (FILE): want a whole number, not negative`},
		{what: "bad size", env: []string{"TRAWL_ROLE_CACHE_SIZE=12x"}, want: `cache-size = "12x" ($TRAWL_ROLE_CACHE_SIZE): want a number of bytes, such as 65536, 64KiB or 2GiB`},
		{what: "bad duration", yaml: "pause: 30", want: `pause = "30" (FILE): want a duration with its unit, such as 1m30s`},
		{what: "bad bool", args: []string{"--dry-run=perhaps"}, want: `dry-run = "perhaps" (--dry-run): want true or false`},
		{what: "null", yaml: "pause:", want: `pause = "<nil>" (FILE): want a duration with its unit, such as 1m30s`},
		{what: "number as text", yaml: "log-level: 0012", want: `log-level = "10" (FILE): want a string (in YAML: in quotes)`},
		{what: "list of numbers", yaml: "hosts: [1]", want: `hosts = "[1]" (FILE): want a list of strings, separated by commas`},
		{what: "list as number", yaml: "count: [1]", want: `count = "[1]" (FILE): want a whole number, not negative`},
		{what: "out of limits", env: []string{"TRAWL_ROLE_GRPC_MAX=101"}, want: `grpc.max = "101" ($TRAWL_ROLE_GRPC_MAX): want from 1 to 100`},
		{what: "bad address", args: []string{"--grpc-addr=host:99999"}, want: `grpc.addr = "host:99999" (--grpc-addr): want HOST:PORT with a port from 0 to 65535`},
		{what: "not one of", yaml: "log-level: loud", want: `log-level = "loud" (FILE): want one of info, debug`},
		{what: "no default", env: []string{"TRAWL_ROLE_TOKEN="}, want: `token = "" ($TRAWL_ROLE_TOKEN): want a value that is not empty`},
	} {
		t.Run(c.what, func(t *testing.T) {
			env := append([]string{token}, c.env...)
			if c.what == "no default" {
				env = c.env
			}
			_, _, err := load(t, c.yaml, env, c.args...)
			if err == nil {
				t.Fatal("no error")
			}
			var typed *config.Error
			if !errors.As(err, &typed) || typed.Key == "" || typed.Source == "" {
				t.Errorf("error %v is not a complete *config.Error", err)
			}
			got := err.Error()
			if typed != nil && strings.HasSuffix(typed.Source, ".yaml") {
				got = strings.ReplaceAll(got, typed.Source, "FILE")
			}
			if want := "load the settings of role: " + c.want; got != want {
				t.Errorf("error\n %s\nwant\n %s", got, want)
			}
		})
	}
}

func TestAllMistakesAtOnce(t *testing.T) {
	_, _, err := load(t, "nonsense: 1", []string{token, "TRAWL_ROLE_COUNT=x"}, "--pause=y")
	for _, want := range []string{"nonsense", "count", "pause"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not speak of %s", err, want)
		}
	}
	_, _, err = load(t, "", nil, "--pause=0s", "--grpc-max=0")
	for _, want := range []string{"pause", "grpc.max", "token", "(the default; --token sets it)"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not speak of %s", err, want)
		}
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := write("good.yaml", "token: from a file\n# all commented out:\ngrpc:\n")
	if r, _, err := load(t, "", []string{"TRAWL_ROLE_CONFIG=" + good}); err != nil || r.Token != "from a file" {
		t.Errorf("token %q, error %v", r.Token, err)
	}
	for name, path := range map[string]string{
		"absent":    filepath.Join(dir, "absent.yaml"),
		"not YAML":  write("bad.yaml", "a: b: c"),
		"twice":     write("twice.yaml", "pause: 1s\npause: 2s"),
		"not a map": write("list.yaml", "- a"),
		"too large": write("large.yaml", strings.Repeat("#", 2<<20)),
	} {
		if _, _, err := load(t, "", []string{token}, "--config", path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: error %v, want one that names the file", name, err)
		}
	}
}

// TestKubernetesVariables: the variables that Kubernetes sets in every container of a
// namespace with services named trawl-role and trawl-role-headless are no settings.
func TestKubernetesVariables(t *testing.T) {
	_, _, err := load(t, "", []string{
		token, "TRAWL_ROLE_SERVICE_HOST=10.0.0.1", "TRAWL_ROLE_SERVICE_PORT=7430", "TRAWL_ROLE_SERVICE_PORT_GRPC=7430",
		"TRAWL_ROLE_PORT=tcp://10.0.0.1:7430", "TRAWL_ROLE_PORT_7430_TCP=tcp://10.0.0.1:7430", "TRAWL_ROLE_PORT_7430_TCP_PROTO=tcp",
		"TRAWL_ROLE_PORT_7430_TCP_PORT=7430", "TRAWL_ROLE_PORT_7430_TCP_ADDR=10.0.0.1", "TRAWL_ROLE_HEADLESS_SERVICE_HOST=10.0.0.1",
	})
	if err != nil {
		t.Error(err)
	}
}

func TestPrint(t *testing.T) {
	r, set, err := load(t, "", []string{token}, "--print-config", "--grpc-max=42", "--hosts=", "--cache-size=1500")
	if err != nil || !set.PrintRequested() {
		t.Fatalf("print requested: %v, error %v", set.PrintRequested(), err)
	}
	var out bytes.Buffer
	if err := config.Print(&out, r); err != nil {
		t.Fatal(err)
	}
	want := `# how much is logged
log-level: info
grpc:
  # where to listen
  addr: localhost:1
  # connections at once
  max: 42
# what opens the door
token: hunter2
# room on the disk
cache-size: "1500"
# time between two rounds
pause: 1m0s
# who may be asked
hosts: []
# part of the whole | all
share: 0.5
# how many
count: 3
# a large number
wide: 0
# only pretend
dry-run: false
`
	if out.String() != want {
		t.Errorf("printed\n%s\nwant\n%s", out.String(), want)
	}

	// The printed settings can be loaded.
	again, _, err := load(t, out.String(), nil)
	if err != nil || fmt.Sprintf("%+v", again) != fmt.Sprintf("%+v", r) {
		t.Errorf("loaded %+v, error %v; want %+v", again, err, r)
	}
}

func TestHelp(t *testing.T) {
	flags := pflag.NewFlagSet("role", pflag.ContinueOnError)
	if _, err := config.Bind(flags, "role", &role{}); err != nil {
		t.Fatal(err)
	}
	help := flags.FlagUsages()
	for _, want := range []string{"--cache-size bytes", "(default 64MiB)", "--dry-run ", "--token string", "--print-config", "$TRAWL_ROLE_CONFIG"} {
		if !strings.Contains(help, want) {
			t.Errorf("the help lacks %q:\n%s", want, help)
		}
	}
}
