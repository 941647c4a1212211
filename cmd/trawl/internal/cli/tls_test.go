package cli

import (
	"context"
	"io"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/trawl-search/trawl/internal/tlsfiles"
	"github.com/trawl-search/trawl/internal/tlsfiles/tlstest"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestCallersSpeakTLS: the command line connects to a router that it can trust, and reports what
// does not fit about others. It sends a token only to trusted routers.
func TestCallersSpeakTLS(t *testing.T) {
	ca, other := tlstest.NewCA(t), tlstest.NewCA(t)
	own, alice := ca.Issue("127.0.0.1"), ca.Issue("alice")
	mine := []string{"--cert-file", alice.Cert, "--key-file", alice.Key}
	plain, asking := tlsfiles.ServerConfig{}, tlsfiles.ServerConfig{CertFile: own.Cert, KeyFile: own.Key}
	demanding := asking
	demanding.ClientCAFile, demanding.ClientNames = ca.File, []string{"alice"}
	misnamed := asking
	wrong := ca.Issue("router.example.org")
	misnamed.CertFile, misnamed.KeyFile = wrong.Cert, wrong.Key
	for name, c := range map[string]struct {
		router tlsfiles.ServerConfig
		env    []string
		args   []string
		want   string // in the error; empty: it works
	}{
		"plain text on this machine":   {plain, nil, nil, ""},
		"TLS to a plain router":        {plain, nil, []string{"--tls"}, "it speaks plain text"},
		"right CA":                     {asking, nil, []string{"--ca-file", ca.File}, ""},
		"CA by the environment":        {asking, []string{"TRAWL_CA_FILE=" + ca.File, "TRAWL_TLS=1"}, nil, ""},
		"certificate that none wants":  {asking, nil, append([]string{"--ca-file", ca.File}, mine...), ""},
		"CA of the system":             {asking, nil, []string{"--tls"}, "signed by unknown authority"},
		"another CA":                   {asking, nil, []string{"--ca-file", other.File}, "do --ca-file"},
		"another host":                 {misnamed, nil, []string{"--ca-file", ca.File}, "cannot validate certificate for 127.0.0.1"},
		"no TLS":                       {asking, nil, nil, "does it want TLS"},
		"no file":                      {asking, nil, []string{"--ca-file", ca.File + "x"}, "read the CA certificates"},
		"half a pair":                  {asking, nil, []string{"--tls", "--cert-file", alice.Cert}, "belong together"},
		"right certificate":            {demanding, nil, append([]string{"--ca-file", ca.File}, mine...), ""},
		"no certificate":               {demanding, nil, []string{"--ca-file", ca.File}, "cannot reach Trawl"},
		"certificate of somebody else": {demanding, nil, []string{"--ca-file", ca.File, "--cert-file", own.Cert, "--key-file", own.Key}, "cannot reach Trawl"},
	} {
		t.Run(name, func(t *testing.T) {
			l, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			transport := insecure.NewCredentials()
			if c.router.Enabled() {
				files, err := tlsfiles.NewServer(c.router, slog.New(slog.DiscardHandler))
				if err != nil {
					t.Fatal(err)
				}
				transport = credentials.NewTLS(files.Config(false, "h2"))
			}
			srv, router := grpc.NewServer(grpc.Creds(transport)), &asked{}
			searchv1.RegisterSearchServiceServer(srv, router)
			go func() { _ = srv.Serve(l) }()
			defer srv.Stop()
			exit, out, errs := run(t, append(c.env, "TRAWL_ADDR="+l.Addr().String(), "TRAWL_TOKEN=trawl_a"), append([]string{"search", "x"}, c.args...)...)
			switch {
			case c.want == "" && (exit != 0 || !slices.Equal(router.shown, []string{"Bearer trawl_a"})):
				t.Errorf("exit %d, shown %q: %s%s", exit, router.shown, out, errs)
			case c.want != "" && (exit == 0 || router.shown != nil || !strings.Contains(errs, c.want)):
				t.Errorf("exit %d, shown %q, want %q: %s%s", exit, router.shown, c.want, out, errs)
			}
		})
	}
}

// TestTokenStaysOnThisMachine: without TLS a token is not sent to an address that could be another
// machine's, unless a flag asks for that.
func TestTokenStaysOnThisMachine(t *testing.T) {
	for _, addr := range []string{"192.0.2.1:1", "[2001:db8::1]:1", "trawl.example.org:1", "localhost.example.org:1", "dns:///192.0.2.1:1", ":1", "0.0.0.0:1"} {
		exit, _, errs := run(t, []string{"TRAWL_TOKEN=trawl_a"}, "search", "--addr", addr, "x")
		if exit != 2 || !strings.Contains(errs, "--tls") || !strings.Contains(errs, "--plaintext-token") || strings.Contains(errs, "trawl_a") {
			t.Errorf("%s: exit %d: %s", addr, exit, errs)
		}
	}
	// Nothing listens there: the test is that the command tries to connect.
	exit, _, errs := run(t, []string{"TRAWL_TOKEN=trawl_a"}, "search", "--addr", "0.0.0.0:1", "--plaintext-token", "x")
	if exit != 2 || !strings.Contains(errs, "cannot reach Trawl") {
		t.Errorf("with --plaintext-token: exit %d: %s", exit, errs)
	}
}

// TestUpOverTLS runs all of Trawl with certificates and tokens: a caller with the CA searches it,
// and nobody else does.
func TestUpOverTLS(t *testing.T) {
	ca := tlstest.NewCA(t)
	own := ca.Issue("127.0.0.1")
	ctx, cancel := context.WithCancel(t.Context())
	pr, pw := io.Pipe()
	var log strings.Builder
	var ended sync.WaitGroup
	ended.Go(func() {
		Run(ctx, []string{"up", "--data-dir", t.TempDir(), "--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0",
			"--access-mode", "tokens", "--tls-cert-file", own.Cert, "--tls-key-file", own.Key}, Process{Out: pw, Err: &log})
		pw.Close()
	})
	defer ended.Wait()
	defer cancel()
	printed := make([]byte, 4096)
	n, err := pr.Read(printed)
	lines := strings.Split(string(printed[:n]), "\n")
	if err != nil || len(lines) < 3 || !strings.HasPrefix(lines[0], "ready: gRPC 127.0.0.1:") {
		cancel()
		ended.Wait()
		t.Fatalf("printed %q, %v\n%s", lines, err, log.String())
	}
	addr, _, _ := strings.Cut(strings.TrimPrefix(lines[0], "ready: gRPC "), ", ")
	etcd := strings.TrimPrefix(lines[2], "tokens: trawl tokens create --etcd-endpoints ")
	etcd, flags, _ := strings.Cut(etcd, " ")
	if want := "--name me --allow '**' --scopes search,ingest"; flags != want {
		t.Errorf("the command that makes tokens has the flags %s, not %s", flags, want)
	}
	exit, token, errs := run(t, nil, "tokens", "create", "--name", "t", "--allow", "**", "--etcd-endpoints", etcd)
	if exit != 0 {
		t.Fatal(errs)
	}
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token), 0o600); err != nil {
		t.Fatal(err)
	}
	for { // the router hears of the token a moment later
		status, out, errs := run(t, nil, "search", "--heading", "--addr", addr, "--ca-file", ca.File, "--token-file", file, "x")
		if status == 1 && strings.Contains(out, "0 matches in 0 files") {
			break
		}
		if !strings.Contains(errs, "not known") {
			t.Fatalf("search: exit %d: %s%s", status, out, errs)
		}
	}
	for _, args := range [][]string{nil, {"--tls"}, {"--ca-file", tlstest.NewCA(t).File}} {
		if status, out, _ := run(t, nil, append([]string{"search", "--addr", addr, "--token-file", file, "x"}, args...)...); status != 2 {
			t.Errorf("%v: %s", args, out)
		}
	}
}
