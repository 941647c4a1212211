package integration

import (
	"bytes"
	"context"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/internal/pinned"
	"github.com/trawl-search/trawl/internal/testrun"
)

// exampleFiles are what the commands of the README and of docs/cli.md look for.
var exampleFiles = map[string]string{
	"README.md":         "# Pond\nfoo, and the garbage collector.\n",
	"src/main.go":       "package main\n\n// TODO: feed it\ntype pondReader struct{}\n\nfunc NewReader() *pondReader { return nil }\n\nfunc main() { ReadFile(); NewReader() }\n\nfunc ReadFile() {}\n",
	"src/main_test.go":  "package main\n\nfunc TestMain(t *testing.T) { t.Fatal(\"no\") }\n",
	"src/pond.c":        "struct pond { int n; };\nint main(void) { a[i]++; return 0; }\n",
	"proto/pond.proto":  "syntax = \"proto3\";\n",
	"http/handler.go":   "package http\n\nfunc NotFoundHandler() {}\n",
	"docs/collector.md": "How does the garbage collector mark objects?\n",
}

// indented returns the commands below a heading of a page: the lines indented by four spaces.
func indented(t *testing.T, page, heading string) (commands []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n"+heading+"\n")
	if !ok {
		t.Fatalf("%s has no %q", page, heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	for line := range strings.Lines(section) {
		if command, ok := strings.CutPrefix(line, "    "); ok {
			commands = append(commands, strings.TrimSpace(command))
		}
	}
	return commands
}

// helpExamples returns the commands in docs/cli.md, without the explanations beside them. It
// leaves out commands with placeholders, which are names in capitals.
func helpExamples(t *testing.T) (commands []string) {
	t.Helper()
	text, err := os.ReadFile("../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	placeholder := regexp.MustCompile(`\b[A-Z]{2,}\b|\[flags\]$`)
	for line := range strings.Lines(string(text)) {
		command, ok := strings.CutPrefix(line, "  trawl ")
		command, _, _ = strings.Cut(strings.TrimSpace(command), "   ")
		if ok && !placeholder.MatchString(regexp.MustCompile(`'[^']*'|TODO|README`).ReplaceAllString(command, "")) {
			commands = append(commands, "trawl "+command)
		}
	}
	return commands
}

// TestExamplesOfThePages runs the commands of the README and of docs/cli.md in a shell, on a
// Trawl that the README's own command starts. Each of them succeeds and prints something.
func TestExamplesOfThePages(t *testing.T) {
	const build, serve, index = "go build -o trawl ./cmd/trawl", "./trawl up --data-dir ~/trawl-data ", "./trawl index https://github.com/org/name "
	readme := append(indented(t, "../README.md", "## Use it"), indented(t, "../README.md", "## Without a service")...)
	help := helpExamples(t)
	if len(readme) < 14 || len(help) < 20 {
		t.Fatalf("only %d commands in the README, and %d in docs/cli.md:\n%s", len(readme), len(help), strings.Join(help, "\n"))
	}
	if readme[0] != build || !strings.HasPrefix(readme[1], serve) || !strings.HasPrefix(readme[2], index) {
		t.Fatalf("the README begins with %q", readme[:3])
	}
	home, work := t.TempDir(), t.TempDir()
	repo := newRepository(t, home, "src/project")
	for path, content := range exampleFiles {
		repo.write(path, content)
	}
	repo.commit("a pond")
	for name, content := range map[string]string{
		"sources.yaml": "sources:\n- {name: one, kind: git, url: 'https://127.0.0.1:1/a/b.git'}\n",
		"fzf":          "#!/bin/sh\nexec head -1\n", // always picks the first line
		"trawl":        "#!/bin/sh\nexec '" + trawlBinary + "' \"$@\"\n",
	} {
		if err := os.WriteFile(filepath.Join(work, name), []byte(content), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("HOME", home)
	t.Setenv("PATH", work+":"+os.Getenv("PATH"))
	up := startBinary(t, "bash", "up", "-c", "cd "+work+" && exec "+serve+
		"--grpc 127.0.0.1:0 --http 127.0.0.1:0 --etcd-listen 127.0.0.1:0 --source-private-networks 127.0.0.0/8")
	grpc, http := readyAt(t, up)
	http = "http://" + strings.TrimSuffix(http, ",")
	etcd := await(t, up, "where etcd is", func(line string) (string, bool) {
		_, at, ok := strings.Cut(line, ", etcd ")
		return at, ok && strings.HasPrefix(line, "ready: ")
	})
	shell := exampleShell{work, append(processEnv(), "BROWSER=echo", "TRAWL_ADDR="+grpc, "TRAWL_PAGES="+http, "TRAWL_TOKENS_ETCD_ENDPOINTS="+etcd)}
	for _, name := range []string{"github.com/org/name", "k8s.io/kubernetes"} {
		shell.run(t, strings.Replace(readme[2], index, "./trawl index --name "+name+" ~/src/project ", 1))
	}
	for _, command := range append(readme[3:], help...) {
		shell.run(t, command)
	}
	if calls := inlineCalls(t, "../README.md"); len(calls) > 0 {
		shell.run(t, strings.ReplaceAll(calls[0], "http://127.0.0.1:7431", http)+" | grep complete")
	} else {
		t.Error("the README has no call of curl")
	}
}

// TestSeveralMachines runs the README's commands for more than one machine as they are printed, but for folders, ports and the names of
// machines. The address in place of these names is this machine, and to Trawl it is as little a loopback address as they are.
func TestSeveralMachines(t *testing.T) {
	commands := indented(t, "../README.md", "## Run it on more than one machine")
	if len(commands) != 8 {
		t.Fatalf("the README has %d commands: %q", len(commands), commands)
	}
	c := &cluster{owner: t, dir: t.TempDir()}
	repo := newRepository(t, c.dir, "project")
	repo.write("main.go", exampleFiles["src/main.go"])
	repo.commit("a pond")
	installServers(t)
	replaced := []string{"//one:", "//0.0.0.0:", " two:", " 0.0.0.0:", "https://github.com/org/name", repo.path}
	for _, folder := range []string{"/var/lib/etcd", "/var/lib/nats", "/mnt/trawl"} {
		replaced = append(replaced, folder, filepath.Join(c.dir, filepath.Base(folder)))
	}
	for _, port := range []string{"2379", "4222", "7430", "7431", "7440"} {
		_, free, _ := net.SplitHostPort(testrun.Address(t))
		replaced = append(replaced, port, free)
	}
	here := strings.NewReplacer(replaced...)
	start := func(command string, flags ...string) *process {
		words := append(strings.Fields(here.Replace(command)), flags...)
		return startBinary(t, words[0], words[1], words[1:]...)
	}
	peers := "http://127.0.0.1:0"
	start(commands[0], "--listen-peer-urls", peers, "--initial-advertise-peer-urls", peers, "--initial-cluster", "default="+peers)
	start(commands[1])
	folders := []string{"--source-folders", c.dir}
	elsewhere := func(role string) []string {
		return []string{"--http", "127.0.0.1:0", "--cache-dir", filepath.Join(c.dir, role)}
	}
	start(commands[2], slices.Concat(folders, elsewhere("indexer"), []string{"--grpc", "127.0.0.1:0"})...)
	start(commands[3], append(elsewhere("searcher"), "--advertise", here.Replace("127.0.0.1:7440"))...)
	c.ready(t, start(commands[4], folders...))
	shell := exampleShell{c.dir, processEnv()}
	for _, command := range commands[5:] {
		shell.run(t, here.Replace(command))
	}
}

// installServers puts etcd, NATS and Trawl where a shell looks for programs.
func installServers(t *testing.T) {
	t.Helper()
	programs := t.TempDir()
	t.Setenv("PATH", programs+string(filepath.ListSeparator)+os.Getenv("PATH"))
	testrun.Must(t, os.Symlink(trawlBinary, filepath.Join(programs, "trawl")))
	for _, server := range []pinned.Program{pinned.Etcd, pinned.NATS} {
		binary, err := pinned.Build(t.Context(), server)
		testrun.Must(t, err, os.Symlink(binary, filepath.Join(programs, server.Name)))
	}
}

// inlineCalls returns the curl commands within the sentences of a page.
func inlineCalls(t *testing.T, page string) (calls []string) {
	t.Helper()
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, call := range regexp.MustCompile("`(curl [^`]+)`").FindAllStringSubmatch(string(text), -1) {
		calls = append(calls, call[1])
	}
	return calls
}

// exampleShell runs commands in a folder.
type exampleShell struct {
	folder string
	env    []string
}

// run fails the test unless the command succeeds and prints something.
func (s exampleShell) run(t *testing.T, command string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-o", "pipefail", "-c", command)
	cmd.Dir, cmd.Env = s.folder, s.env
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil || out.Len() == 0 && !strings.Contains(command, ">") {
		t.Errorf("%s: %v\n%s%s", command, err, out.String(), errs.String())
	}
}
