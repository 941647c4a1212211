package cli

import (
	"context"
	"io"
	"net"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
)

func TestPrintConfigHasEverySetting(t *testing.T) {
	exit, out, errs := run(t, []string{"TRAWL_UP_SEARCHER_REPLICATION=3"}, "up", "--data-dir", "/d", "--print-config")
	if exit != 0 {
		t.Fatalf("exit %d: %s", exit, errs)
	}
	for _, want := range []string{"data-dir: /d", "grpc: 127.0.0.1:7430", "searcher:", "replication: 3", "router:", "indexer:"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in\n%s", want, out)
		}
	}
	if exit, out, errs := run(t, nil, roleIndexer, "--print-config"); exit != 2 || !strings.Contains(out, "endpoints:") || !strings.Contains(errs, "bucket.url") {
		t.Errorf("without a bucket: exit %d, %s%s", exit, out, errs)
	}
	for _, role := range []string{roleIndexer, roleSearcher, roleRouter, "gc"} {
		exit, out, errs := run(t, nil, append([]string{role, "--print-config"}, bucketOf(role)...)...)
		if exit != 0 || !strings.Contains(out, "endpoints:") {
			t.Errorf("%s: exit %d, %s%s", role, exit, out, errs)
		}
	}
}

// bucketOf returns the flags for the bucket, which every role but the router needs.
func bucketOf(role string) []string {
	if role == roleRouter {
		return nil
	}
	return []string{"--bucket-url", "mem://"}
}

func TestSettingsThatAreRefused(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want []string
	}{
		{[]string{"up", "--roles", "indexer,queen"}, []string{"roles", "queen"}},
		{[]string{"up", "--roles", "none,router"}, []string{"roles", "none alone"}},
		{[]string{"up", "--data-dir", ""}, []string{"data-dir"}},
		{[]string{"up", "--access-mode", "tokens", "--etcd-listen", "127.0.0.1:0"}, []string{"etcd.listen", "make tokens"}},
		{[]string{"up", "--access-mode", "tokens", "--nats-listen", "127.0.0.1:0"}, []string{"nats.listen", "make tokens"}},
		{[]string{"up", "--router-grpc", "127.0.0.1:1"}, []string{"router.grpc", "grpc decides"}},
		{[]string{"up", "--indexer-source-folders", "/x"}, []string{`indexer.source.folders = "/x" (--indexer-source-folders): want nothing here: source decides`}},
		{[]string{"up", "--searcher-cache-dir", "/x"}, []string{"searcher.cache-dir", "data-dir decides"}},
		{[]string{"up", "--grpc", "nowhere", "--log-level", "loud"}, []string{"grpc = \"nowhere\"", "log-level"}},
		{[]string{"router", "--etcd-endpoints", "", "--nats-replicas", "9"}, []string{"etcd.endpoints", "nats.replicas"}},
		{[]string{"searcher", "--bucket-url", "ftp://x"}, []string{"bucket.url"}},
		{[]string{"gc", "--bucket-url", "mem://", "--hold", "1ms"}, []string{"hold"}},
		{[]string{"router", "--mcp-tools", "grep,gerp"}, []string{"mcp.tools", "gerp", "list_repos"}},
		{[]string{"mcp", "--tools", "gerp"}, []string{"tools", "gerp"}},
		{[]string{"router", "--grpc", "0.0.0.0:0"}, []string{"access.mode", "tokens", "trawl tokens create", "insecure"}},
		{[]string{"router", "--http", ":0"}, []string{"access.mode", "insecure"}},
		{[]string{"searcher", "--bucket-url", "mem://", "--grpc", "[::]:0"}, []string{"access.mode", "insecure"}},
		{[]string{"up", "--grpc", "192.0.2.1:0"}, []string{"access.mode", "insecure"}},
		{[]string{"up", "--http", "example.org:0"}, []string{"access.mode", "insecure"}},
		{[]string{"up", "--router-access-mode", "insecure"}, []string{"router.access", "access decides"}},
		{[]string{"router", "--access-mode", "none", "--access-staleness", "0s"}, []string{"access.mode", "access.staleness"}},
		{[]string{"gc", "--bucket-url", "mem://", "--contents"}, []string{"contents", "--audit"}},
	} {
		exit, _, errs := run(t, nil, tt.args...)
		if exit != 2 {
			t.Errorf("trawl %v: exit %d: %s", tt.args, exit, errs)
		}
		for _, want := range tt.want {
			if !strings.Contains(errs, want) {
				t.Errorf("trawl %v: %q is not in %q", tt.args, want, errs)
			}
		}
	}
}

// TestHelpOfUp: up lists the flags that it accepts, and no others.
func TestHelpOfUp(t *testing.T) {
	_, help, _ := run(t, nil, "up", "--help")
	listed := regexp.MustCompile(`(?m)^ +(--[a-z-]+) `).FindAllStringSubmatch(help, -1)
	if len(listed) < 50 {
		t.Fatalf("%d flags in %s", len(listed), help)
	}
	for _, flag := range listed {
		exit, _, errs := run(t, nil, "up", flag[1], "?", "--print-config")
		if exit == 2 && strings.Contains(errs, "want nothing here") {
			t.Errorf("up --help lists %s, which up refuses: %s", flag[1], errs)
		}
	}
	for _, refused := range []string{"--indexer-source-folders", "--router-grpc", "--searcher-access-mode"} {
		if strings.Contains(help, refused) {
			t.Errorf("up --help lists %s", refused)
		}
	}
	if !strings.Contains(help, "--indexer-source-max-bytes") {
		t.Errorf("up --help lacks what only the indexer decides: %s", help)
	}
}

func TestUserOfNATSNeedsPassword(t *testing.T) {
	exit, _, errs := run(t, []string{"TRAWL_ROUTER_NATS_USERNAME=u"}, "router", "--print-config")
	if exit != 2 || !strings.Contains(errs, "nats.password") {
		t.Errorf("exit %d: %s", exit, errs)
	}
}

// TestWhereNobodyIsAsked: on this machine alone no access mode is needed, and with one any address
// will do.
func TestWhereNobodyIsAsked(t *testing.T) {
	for _, args := range [][]string{
		{"router"}, {"router", "--grpc", "localhost:0", "--http", "[::1]:0"}, {"router", "--grpc", "127.8.8.8:0"}, {"up"},
		{"router", "--grpc", ":0", "--access-mode", "insecure"}, {"router", "--grpc", ":0", "--access-mode", "tokens"},
		{"up", "--grpc", ":0", "--access-mode", "tokens"}, {"searcher", "--bucket-url", "mem://", "--http", ":0"},
	} {
		if exit, _, errs := run(t, nil, append(args, "--print-config")...); exit != 0 {
			t.Errorf("%v: exit %d: %s", args, exit, errs)
		}
	}
	var s upSettings
	s.SetDefaults()
	s.Access.Mode = "tokens"
	s.settle()
	if s.Router.Access.Mode != "tokens" || s.Searcher.Access.Mode != "tokens" {
		t.Errorf("router %v, searcher %v", s.Router.Access, s.Searcher.Access)
	}
}

func TestOnePolicyForAllRoles(t *testing.T) {
	var s upSettings
	s.SetDefaults()
	s.DataDir = "/data"
	s.Source.Folders = []string{"/only"}
	if err := s.Validate(); err != nil {
		t.Fatal(err)
	}
	s.settle()
	if s.Router.Source.Folders[0] != "/only" || s.Indexer.Source.Folders[0] != "/only" {
		t.Errorf("router %v, indexer %v", s.Router.Source, s.Indexer.Source)
	}
	if s.Searcher.CacheDir != filepath.FromSlash("/data/searcher") || s.Etcd.Listen != "" {
		t.Errorf("cache in %s, etcd at %q", s.Searcher.CacheDir, s.Etcd.Listen)
	}
	s.Roles = []string{roleNone}
	s.settle()
	if s.Etcd.Listen == "" || s.NATS.Listen == "" {
		t.Error("servers that no role here uses are not reachable")
	}
}

func TestReachable(t *testing.T) {
	for from, want := range map[string]string{"0.0.0.0:7": "localhost:7", "[::]:7": "localhost:7", "127.0.0.1:7": "127.0.0.1:7"} {
		addr, err := net.ResolveTCPAddr("tcp", from)
		if err != nil {
			t.Fatal(err)
		}
		if got := reachable(addr); got != want {
			t.Errorf("%s is reached at %s, want %s", from, got, want)
		}
	}
}

// TestUpFromReadyToStop runs all of Trawl in this process: it becomes ready, takes calls where the
// line says, and ends when its context does.
func TestUpFromReadyToStop(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pr, pw := io.Pipe()
	var exit int
	var log strings.Builder
	var ended sync.WaitGroup
	ended.Go(func() {
		exit = Run(ctx, []string{"up", "--data-dir", t.TempDir(), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0"}, Process{Out: pw, Err: &log})
		pw.Close()
	})
	var line string
	if err := readLine(pr, &line); err != nil || !strings.HasPrefix(line, "ready: gRPC 127.0.0.1:") {
		cancel()
		ended.Wait()
		t.Fatalf("printed %q, %v\n%s", line, err, log.String())
	}
	addr, _, _ := strings.Cut(strings.TrimPrefix(line, "ready: gRPC "), ",")
	if status, out, errs := run(t, nil, "search", "--heading", "--addr", addr, "x"); status != 1 || !strings.Contains(out, "0 matches in 0 files") {
		t.Errorf("search: exit %d: %s%s", status, out, errs)
	}
	cancel()
	ended.Wait()
	if exit != 0 {
		t.Errorf("it ended with %d:\n%s", exit, log.String())
	}
}

// readLine reads what up prints, which is written at once, and returns the first line.
func readLine(r io.Reader, line *string) error {
	b := make([]byte, 4096)
	n, err := r.Read(b)
	*line, _, _ = strings.Cut(string(b[:n]), "\n")
	return err
}

// TestUpHasNoIdleSettings: what settle copies to the roles has one flag, and none of a role that would change nothing.
func TestUpHasNoIdleSettings(t *testing.T) {
	_, help, _ := run(t, nil, "up", "--help")
	flags := map[string]bool{}
	for _, m := range regexp.MustCompile(`(?m)^ +--(\S+) `).FindAllStringSubmatch(help, -1) {
		flags[m[1]] = true
	}
	common := 0
	for flag := range flags {
		if !strings.HasPrefix(flag, "source-") && !strings.HasPrefix(flag, "access-") {
			continue
		}
		common++
		for _, role := range []string{"indexer-", "router-", "searcher-"} {
			if flags[role+flag] {
				t.Errorf("--%s%s does nothing: --%s decides", role, flag, flag)
			}
		}
	}
	if common < 8 {
		t.Errorf("%d common flags in\n%s", common, help)
	}
}
