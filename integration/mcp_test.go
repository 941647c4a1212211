package integration

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// mcpResults names a file that TestAgentSession writes its measurements to.
var mcpResults = flag.String("mcp-results", "", "write latency and tokens of the calls of an agent's session to this file")

// agentCall is a call of an agent's session, and the command that it would run instead in a
// checkout of all repos.
type agentCall struct {
	tool    string
	args    map[string]any
	command string
	// pattern is what grep must find, by brute force; empty for other calls.
	pattern string
}

func grepCall(pattern string) agentCall {
	return agentCall{"grep", map[string]any{"patterns": []string{pattern}}, "rg -n --no-ignore -- '" + pattern + "'", pattern}
}

// agentSession returns the calls of an agent that finds out how net/http shuts a server down:
// four turns of eight concurrent calls. The root is the folder of the repos.
func agentSession(root string) [][]agentCall {
	repo := func(name string) string { return "localhost" + root + "/" + name }
	read := func(name, path string, start, end int) agentCall {
		return agentCall{
			"read_file", map[string]any{"files": []map[string]any{{"repo": repo(name), "path": path, "start": start, "end": end}}},
			fmt.Sprintf("sed -n %d,%dp %s/%s", start, end, name, path), "",
		}
	}
	return [][]agentCall{
		{
			{"list_repos", nil, "ls", ""},
			{"list_tree", map[string]any{"repo": repo("http")}, "rg --files --no-ignore --max-depth 2 http", ""},
			{"search", map[string]any{"query": "graceful shutdown server"}, "rg -n -i --no-ignore 'graceful|shutdown'", ""},
			grepCall(`func \(.*\) Shutdown\(`), grepCall("inShutdown"), grepCall("RegisterOnShutdown"),
			{"glob", map[string]any{"patterns": []string{"**/*server*.go"}}, "rg --files --no-ignore -g '*server*.go'", ""},
			grepCall("ErrServerClosed"),
		},
		{
			read("http", "server.go", 3000, 3200), read("http", "server.go", 3700, 3760), grepCall("closeIdleConns"), grepCall("closeListenersLocked"),
			grepCall("shutdownPollInterval"), grepCall("StateIdle"), grepCall("onShutdown"), grepCall("func Test.*Shutdown"),
		},
		{
			grepCall("context"), grepCall("err"), grepCall("nowhereToBeFound"), grepCall("t\\.Fatal"),
			{"glob", map[string]any{"patterns": []string{"**/*_test.go"}}, "rg --files --no-ignore -g '*_test.go'", ""},
			read("strings", "builder.go", 1, 120), grepCall("atomic\\.Bool"), grepCall("sync\\.Once"),
		},
		{
			read("http", "serve_test.go", 1, 150), read("http", "transport.go", 1, 200), grepCall("Decoder"), grepCall("type .* interface"),
			{"list_tree", map[string]any{"repo": repo("encoding"), "path": "json"}, "rg --files --no-ignore encoding/json", ""},
			{"search", map[string]any{"query": "json decoder buffer"}, "rg -n -i --no-ignore 'json.*decoder'", ""},
			grepCall("func New"), grepCall("Deprecated:"),
		},
	}
}

// TestAgentSession runs an agent's session on real repos over both transports, eight calls
// at once. The counts of grep equal those of brute force, both transports give the same
// answers, and no answer exceeds its budget.
func TestAgentSession(t *testing.T) {
	root := t.TempDir()
	up := start(t, "up", "up", "--data-dir", filepath.Join(t.TempDir(), "data"), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0")
	grpc, web := readyAt(t, up)
	goroot, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	for name, source := range map[string]string{"http": "net/http", "strings": "strings", "encoding": "encoding"} {
		r := newRepository(t, root, name)
		if err := os.CopyFS(r.path, os.DirFS(filepath.Join(strings.TrimSpace(string(goroot)), "src", source))); err != nil {
			t.Fatal(err)
		}
		r.commit("a real repo")
		if _, errs, exit := command(t, "index", "--addr", grpc, r.path); exit != 0 {
			t.Fatalf("index %s: %s", name, errs)
		}
	}
	stdio := exec.CommandContext(t.Context(), trawlBinary, "mcp", "--addr", grpc)
	stdio.Env = processEnv()
	sessions := map[string]*mcp.ClientSession{
		"stdio": connectAgent(t, &mcp.CommandTransport{Command: stdio}),
		"http":  connectAgent(t, &mcp.StreamableClientTransport{Endpoint: "http://" + web + "/mcp", DisableStandaloneSSE: true}),
	}
	var lines []string
	for turn, calls := range agentSession(root) {
		answers := map[string][]timedAnswer{}
		for _, transport := range []string{"stdio", "http"} {
			answers[transport] = takeTurn(t, sessions[transport], calls)
		}
		for i, call := range calls {
			one, other := answers["stdio"][i], answers["http"][i]
			if one.text != other.text {
				t.Errorf("%s %v: stdio answers\n%s\nand http\n%s", call.tool, call.args, one.text, other.text)
			}
			if limit := 8000 * 3; len(one.text) > limit || len(one.data) > limit {
				t.Errorf("%s %v: text of %d bytes, data of %d", call.tool, call.args, len(one.text), len(one.data))
			}
			if call.pattern != "" {
				checkGrep(t, root, call.pattern, one.data)
			}
			if *mcpResults != "" {
				took, bytes := runCommand(t, root, call.command)
				lines = append(lines, fmt.Sprintf("%4d  %-9s %9.1f %8.1f %6d %6d %11.1f %7d  %s", turn+1, call.tool, millis(one.took), millis(other.took),
					len(one.text)/3, len(one.data)/3, millis(took), bytes/3, strings.ReplaceAll(argsText(call.args), root, "")))
			}
		}
	}
	if *mcpResults != "" {
		writeResults(t, lines)
	}
}

func argsText(args map[string]any) string {
	text, _ := json.Marshal(args)
	return string(text)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// readyAt waits until all of Trawl is ready, and returns its addresses.
func readyAt(t *testing.T, up *process) (grpc, web string) {
	t.Helper()
	ready := regexp.MustCompile(`^ready: gRPC ([^ ,]+), HTTP ([^ ,]+)`)
	at := await(t, up, "that it is ready", func(line string) ([]string, bool) {
		found := ready.FindStringSubmatch(line)
		return found, found != nil
	})
	return at[1], at[2]
}

func connectAgent(t *testing.T, transport mcp.Transport) *mcp.ClientSession {
	t.Helper()
	session, err := mcp.NewClient(&mcp.Implementation{Name: "test"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.Close() })
	return session
}

// timedAnswer is an answer in both forms, and how long it took.
type timedAnswer struct {
	text string
	data []byte
	took time.Duration
}

// takeTurn makes the calls concurrently.
func takeTurn(t *testing.T, session *mcp.ClientSession, calls []agentCall) []timedAnswer {
	t.Helper()
	answers := make([]timedAnswer, len(calls))
	var all sync.WaitGroup
	for i, call := range calls {
		all.Go(func() {
			began := time.Now()
			result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: call.tool, Arguments: call.args})
			if err != nil || result.IsError {
				t.Errorf("%s %v: %v %v", call.tool, call.args, err, result)
				return
			}
			data, err := json.Marshal(result.StructuredContent)
			if err != nil {
				t.Error(err)
			}
			answers[i] = timedAnswer{result.Content[0].(*mcp.TextContent).Text, data, time.Since(began)}
		})
	}
	all.Wait()
	return answers
}

// checkGrep compares totals with those of brute force.
func checkGrep(t *testing.T, root, pattern string, data []byte) {
	t.Helper()
	var of struct {
		Results []struct{ Matches, Files int }
	}
	if err := json.Unmarshal(data, &of); err != nil || len(of.Results) != 1 {
		t.Errorf("%s: %v in %s", pattern, err, data)
		return
	}
	find, matches, files := regexp.MustCompile("(?m)"+pattern), 0, 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			if d != nil && d.Name() == ".git" {
				return filepath.SkipDir
			}
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil || strings.Contains(string(content), "\x00") {
			return err
		}
		if n := len(find.FindAllIndex(content, -1)); n > 0 {
			matches, files = matches+n, files+1
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := of.Results[0]; got.Matches != matches || got.Files != files {
		t.Errorf("%s: %d matches in %d files, brute force finds %d in %d", pattern, got.Matches, got.Files, matches, files)
	}
}

// runCommand runs a command in the checkout, and returns how long it took and how much it
// printed.
func runCommand(t *testing.T, root, command string) (took time.Duration, bytes int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", command)
	cmd.Dir = root
	began := time.Now()
	out, err := cmd.Output()
	if took = time.Since(began); err != nil && len(out) > 0 {
		t.Errorf("%s: %v", command, err)
	}
	return took, len(out)
}

// writeResults writes the measurements, with a description of what was measured.
func writeResults(t *testing.T, lines []string) {
	t.Helper()
	load := "unknown"
	if average, err := os.ReadFile("/proc/loadavg"); err == nil {
		load = strings.Join(strings.Fields(string(average))[:3], " ")
	}
	text := fmt.Sprintf(`An agent's session over MCP: four turns of eight calls at once, on net/http, encoding and strings of %s, one run.
For comparison, a command for each call, one after the other, in a checkout of the three repos (sh, ripgrep, sed).
Date %s, %d processors, load %s (other work on the machine counts). Times in ms; calls of a turn wait for each other.
Tokens are bytes / 3: for Trawl, of the text and of the JSON (a model sees only one of them); for a command, of all its output.
Command: go test ./integration -run TestAgentSession -args -mcp-results FILE

turn  tool      stdio, ms http, ms   text   JSON command, ms  tokens  arguments
%s
`, runtime.Version(), time.Now().UTC().Format(time.RFC3339), runtime.NumCPU(), load, strings.Join(lines, "\n"))
	if err := os.WriteFile(*mcpResults, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
