package deptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/trawl-search/trawl"

// requirement matches a module's path and version in a go.mod file, and the line with Go's.
var requirement = regexp.MustCompile(`(?m)^\t?(\S+) (v?[0-9]\S*)`)

// pkg is what `go list` says about a package.
type pkg struct {
	ImportPath string
	Dir        string
	Name       string
	Doc        string
	CgoFiles   []string
	Imports    []string
	Deps       []string
	GoFiles    []string

	TestImports, XTestImports []string
}

// packages lists the packages of the module, and of that of the benchmarks; the answer is shared by all tests.
var packages = sync.OnceValues(func() ([]pkg, error) {
	product, err := packagesIn("../..")
	if err != nil {
		return nil, err
	}
	bench, err := packagesIn("../../bench")
	return append(product, bench...), err
})

// packagesIn lists the packages of the module in a folder.
func packagesIn(dir string) ([]pkg, error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Dir,Name,Doc,CgoFiles,Imports,Deps,GoFiles,TestImports,XTestImports", "./...")
	var stderr strings.Builder
	cmd.Dir, cmd.Stderr = dir, &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, stderr.String())
	}
	var list []pkg
	for dec := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return list, nil
		} else if err != nil {
			return nil, err
		}
		list = append(list, p)
	}
}

func listPackages(t *testing.T) []pkg {
	t.Helper()
	list, err := packages()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	return list
}

// within reports whether path is one of the folders of the module, or below it.
func within(path string, folders ...string) bool {
	for _, f := range folders {
		full := module + "/" + f
		if path == full || strings.HasPrefix(path, full+"/") {
			return true
		}
	}
	return false
}

// forbidden lists what the packages of a folder must not import, not even indirectly,
// and why.
var forbidden = []struct {
	folders []string
	reach   []string // import paths and what is below them
	why     string
}{
	{[]string{"index"}, []string{module + "/internal", module + "/services", module + "/cmd", module + "/proto"},
		"the engine is used by the command line without any service"},
	{[]string{"index"}, []string{"net", "net/http", "net/netip", "net/url", "log", "log/slog", "os/exec"},
		"the engine reads and writes files; it neither talks, logs nor starts programs"},
	{[]string{"proto"}, []string{module + "/index", module + "/internal", module + "/services", module + "/cmd"},
		"dependencies point down only"},
	{[]string{"internal"}, []string{module + "/services", module + "/cmd", module + "/integration"},
		"dependencies point down only"},
	{[]string{"services/indexer"}, []string{module + "/services/searcher", module + "/services/router"},
		"services never import each other"},
	{[]string{"services/searcher"}, []string{module + "/services/indexer", module + "/services/router"},
		"services never import each other"},
	{[]string{"services/router"}, []string{module + "/services/indexer", module + "/services/searcher"},
		"services never import each other"},
	{[]string{"services/canary"}, []string{module + "/services/indexer", module + "/services/searcher", module + "/services/router", module + "/internal/gitsource"},
		"a canary sees what callers see"},
	{[]string{"services"}, []string{module + "/cmd", module + "/integration", module + "/internal/embedded"},
		"services meet etcd and NATS as clients; who hosts them is decided in cmd"},
	{[]string{"services/searcher"}, []string{module + "/internal/gitsource", module + "/internal/queue"},
		"searchers read shards: they neither fetch nor enqueue"},
	{[]string{"services/router"}, []string{module + "/internal/gitsource"},
		"routers judge URLs; only indexers run git"},
	{[]string{"index", "internal", "services", "cmd"}, []string{"testing", "github.com/stretchr/testify", "pgregory.net/rapid"},
		"test code stays out of the binary"},
	{[]string{"bench"}, []string{module + "/services", module + "/cmd", module + "/integration"},
		"it measures the engine; what services cost is another measurement"},
	{[]string{"index", "internal", "services", "cmd"}, []string{"C"},
		"one static binary: nothing here needs cgo"},
}

// allowed are exceptions to forbidden, each with its reason.
var allowed = []struct{ from, reach, why string }{
	{"index/indextest", "testing", "it is test code: the oracle and its generators"},
	{"internal/gitsource/gitsourcetest", "testing", "it is test code: repositories made for tests"},
	{"internal/testrun", "testing", "it is test code: random choices, numbers of rounds and addresses"},
	{"internal/telemetry/telemetrytest", "testing", "it is test code: telemetry that a test can read"},
	{"services/searcher", module + "/internal/gitsource/language", "names of languages are understood alike everywhere"},
	{"services/router", module + "/internal/gitsource/language", "names of languages are understood alike everywhere"},
	{"services/router", module + "/internal/gitsource/origin", "the rules of URLs and names, without git"},
	{"services/searcher", module + "/internal/gitsource/origin", "tokens name repos by its patterns; it runs no git"},
	{"services/canary", module + "/internal/gitsource/origin", "tokens name repos by its patterns; it runs no git"},
	{"services/canary", module + "/internal/gitsource/language", "names of languages are understood alike everywhere"},
	{"internal/tlsfiles/tlstest", "testing", "it is test code: certificates made for tests"},
	{"internal/embedded/embeddedtest", "testing", "it is test code: an etcd that goes back in time"},
	{"internal/bucket/buckettest", "testing", "it is test code: the acceptance suite of every bucket"},
}

func TestForbiddenDependencies(t *testing.T) {
	used := make([]bool, len(allowed))
	for _, p := range listPackages(t) {
		for _, rule := range forbidden {
			if !within(p.ImportPath, rule.folders...) {
				continue
			}
			for _, dep := range p.Deps {
				if !below(dep, rule.reach) {
					continue
				}
				if i := exception(p.ImportPath, dep); i >= 0 {
					used[i] = true
					continue
				}
				t.Errorf("%s depends on %s: %s", p.ImportPath, dep, rule.why)
			}
			for _, dep := range slices.Concat(p.TestImports, p.XTestImports) { // tests may use test code and servers besides
				if below(dep, rule.reach) && within(dep, "services", "cmd") {
					t.Errorf("tests of %s depend on %s: %s", p.ImportPath, dep, rule.why)
				}
			}
		}
	}
	for i, ok := range used {
		if !ok {
			t.Errorf("nothing needs the exception of %s for %s any more", allowed[i].from, allowed[i].reach)
		}
	}
}

// below reports whether path is one of prefixes or below one of the module's
// or of another module's; packages of the standard library are meant exactly.
func below(path string, prefixes []string) bool {
	for _, prefix := range prefixes {
		if path == prefix {
			return true
		}
		if strings.Contains(prefix, ".") && strings.HasPrefix(path, prefix+"/") {
			return true
		}
	}
	return false
}

func exception(from, dep string) int {
	for i, a := range allowed {
		if within(from, a.from) && below(dep, []string{a.reach}) {
			return i
		}
	}
	return -1
}

// TestEngineModules checks the modules that the engine uses against the full list of
// allowed ones.
func TestEngineModules(t *testing.T) {
	compression := []string{"github.com/klauspost/compress", "github.com/pierrec/lz4/v4"}
	for _, p := range listPackages(t) {
		if !within(p.ImportPath, "index") {
			continue
		}
		for _, dep := range p.Deps {
			first, _, _ := strings.Cut(dep, "/")
			if !strings.Contains(first, ".") || within(dep, "index") || below(dep, compression) {
				continue
			}
			t.Errorf("%s depends on %s: the engine uses the standard library and compression only", p.ImportPath, dep)
		}
	}
}

// TestOnlyCmdHostsServers: only cmd brings the embedded etcd and NATS servers into
// the binary.
func TestOnlyCmdHostsServers(t *testing.T) {
	servers := []string{"go.etcd.io/etcd/server/v3", "github.com/nats-io/nats-server/v2"}
	for _, p := range listPackages(t) {
		if within(p.ImportPath, "cmd", "internal/embedded", "integration") {
			continue
		}
		for _, dep := range p.Deps {
			if below(dep, servers) {
				t.Errorf("%s depends on %s: only internal/embedded and cmd host servers", p.ImportPath, dep)
			}
		}
	}
}

// TestBenchMeasuresTheSameVersions: the module of the benchmarks requires what the product does.
func TestBenchMeasuresTheSameVersions(t *testing.T) {
	versions := func(file string) map[string]string {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		required := map[string]string{}
		for _, m := range requirement.FindAllStringSubmatch(string(text), -1) {
			required[m[1]] = m[2]
		}
		return required
	}
	product, bench := versions("../../go.mod"), versions("../../bench/go.mod")
	delete(bench, module)
	if len(bench) < 10 {
		t.Fatalf("bench/go.mod requires only %v", bench)
	}
	for path, version := range bench {
		if product[path] != version {
			t.Errorf("bench/go.mod requires %s %s, go.mod %q", path, version, product[path])
		}
	}
}

func TestNoCgo(t *testing.T) {
	for _, p := range listPackages(t) {
		if len(p.CgoFiles) > 0 {
			t.Errorf("%s uses cgo in %v: the binary is static", p.ImportPath, p.CgoFiles)
		}
	}
}

// TestNamesSayWhatIsProvided refuses package names that could stand for anything.
func TestNamesSayWhatIsProvided(t *testing.T) {
	for _, p := range listPackages(t) {
		for part := range strings.SplitSeq(strings.TrimPrefix(p.ImportPath, module), "/") {
			switch part {
			case "util", "utils", "common", "helper", "helpers", "manager", "misc", "base", "shared":
				t.Errorf("%s: %q does not say what the package provides", p.ImportPath, part)
			}
		}
		if base := filepath.Base(p.Dir); p.Name != base && p.Name != "main" && !generated(p) {
			t.Errorf("%s is named %s; folder and package have one name", p.ImportPath, p.Name)
		}
	}
}

// generated reports whether the package holds generated code only.
func generated(p pkg) bool { return within(p.ImportPath, "proto") }
