package gitsource

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/trawl-search/trawl/index/docstore"

	"github.com/trawl-search/trawl/internal/gitsource/gitsourcetest"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/testrun"
)

// httpRepo serves a new repository over TLS, behind wrap, and returns its URL
// and a configuration that reaches it.
func httpRepo(t testing.TB, wrap func(http.Handler) http.Handler) (*gitsourcetest.Repo, string, func(*FetchConfig)) {
	t.Helper()
	r := gitsourcetest.New(t)
	server := httptest.NewTLSServer(wrap(gitsourcetest.Handler(t, filepath.Dir(r.Dir))))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	data := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(ca, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return r, server.URL + "/repo/.git", func(c *FetchConfig) {
		c.PrivateNetworks = []string{"127.0.0.1/32"}
		c.CAFile = ca
	}
}

func asIs(h http.Handler) http.Handler { return h }

const secret = "s3cr3t-p@ss:word/x"

// withPassword admits only git:secret, and its refusals do not show the first letters
// of the secret.
func withPassword(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "bot" || password != secret {
			w.Header().Set("WWW-Authenticate", `Basic realm="x"`)
			http.Error(w, "who are you? "+password, http.StatusUnauthorized)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func credentials(t testing.TB, rawURL, password string) func(*FetchConfig) {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write(t, dir, u.Host+"/username", "bot\n")
	write(t, dir, u.Host+"/password", password+"\n")
	return func(c *FetchConfig) { c.Credentials = dir }
}

func TestFetchHTTPS(t *testing.T) {
	r, url, config := httpRepo(t, asIs)
	r.Files("main", "a", "1")
	f := newFetcher(t, config)
	mirror := filepath.Join(t.TempDir(), "m")
	if got := fetchAll(t, f, mirror, url); got["a@main"] != "1" {
		t.Errorf("got %v", got)
	}
	r.Files("main", "a", "2")
	if got := fetchAll(t, f, mirror, url); got["a@main"] != "2" {
		t.Errorf("after an update got %v", got)
	}
	_, err := f.Branches(t.Context(), strings.Replace(url, "repo", "other", 1), nil)
	wantFailure(t, err, NotFound, "does not exist")
	_, err = newFetcher(t, func(c *FetchConfig) { config(c); c.CAFile = "" }).Branches(t.Context(), url, nil)
	wantFailure(t, err, Unreachable, "ertificate")
}

func TestFetchHTTP(t *testing.T) {
	r := gitsourcetest.New(t)
	r.Files("main", "a", strings.Repeat("text\n", 1000))
	server := httptest.NewServer(gitsourcetest.Handler(t, filepath.Dir(r.Dir)))
	defer server.Close()
	f := newFetcher(t, func(c *FetchConfig) {
		c.Schemes = []string{"http"}
		c.PrivateNetworks = []string{"127.0.0.1/32"}
	})
	got := fetchAll(t, f, filepath.Join(t.TempDir(), "m"), server.URL+"/repo/.git")
	if len(got["a@main"]) != 5000 {
		t.Errorf("got %v", got)
	}
}

func TestFetchWithCredentials(t *testing.T) {
	r, url, config := httpRepo(t, withPassword)
	r.Files("main", "a", "1")
	f := newFetcher(t, func(c *FetchConfig) { config(c); credentials(t, url, secret)(c) })
	if got := fetchAll(t, f, filepath.Join(t.TempDir(), "m"), url); got["a@main"] != "1" {
		t.Errorf("got %v", got)
	}
}

func TestFetchWithoutOrWithWrongCredentials(t *testing.T) {
	_, url, config := httpRepo(t, withPassword)
	const wrong = "wrong-pässword"
	for name, extra := range map[string]func(*FetchConfig){
		"none": func(*FetchConfig) {}, "wrong": credentials(t, url, wrong),
		"of another host": credentials(t, "https://127.0.0.1:1/", secret),
	} {
		_, err := newFetcher(t, func(c *FetchConfig) { config(c); extra(c) }).Branches(t.Context(), url, nil)
		wantFailure(t, err, NeedsCredentials, "needs credentials")
		for _, hidden := range []string{wrong, secret, "trawl:", "askpass"} {
			if err != nil && strings.Contains(fmt.Sprintf("%v %+v", err, errors.Unwrap(err)), hidden) {
				t.Errorf("%s: the error shows %q: %v", name, hidden, err)
			}
		}
	}
}

// TestCredentialsAreNotOnCommandLines looks at every process of the machine
// while git waits for an answer to a request with credentials.
func TestCredentialsAreNotOnCommandLines(t *testing.T) {
	var seen atomic.Int32
	_, url, config := httpRepo(t, func(http.Handler) http.Handler {
		return withPassword(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
			environs, _ := filepath.Glob("/proc/[0-9]*/environ")
			for _, f := range append(files, environs...) {
				data, _ := os.ReadFile(f)
				if bytes.Contains(data, []byte("ls-remote")) {
					seen.Add(1)
				}
				if bytes.Contains(data, []byte(secret)) {
					t.Errorf("%s shows the password", f)
				}
			}
			http.Error(w, "remote echoes "+secret, http.StatusForbidden)
		}))
	})
	f := newFetcher(t, func(c *FetchConfig) { config(c); credentials(t, url, secret)(c) })
	_, err := f.Branches(t.Context(), url, nil)
	wantFailure(t, err, NeedsCredentials, "")
	if err != nil && strings.Contains(err.Error(), secret) {
		t.Errorf("the error shows the password: %v", err)
	}
	if seen.Load() == 0 {
		if _, err := os.Stat("/proc/self/cmdline"); err == nil {
			t.Error("git was not among the processes looked at")
		}
	}
}

// TestRedirectsAreNotFollowed: a caller who may request a repository may not be allowed to see the one
// to which its host redirects git. No redirect is followed, to any host, at any step, with credentials
// or without. Only the same URL with .git at its end is tried, which some hosts insist on.
func TestRedirectsAreNotFollowed(t *testing.T) {
	var reached atomic.Bool
	elsewhere := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached.Store(true) }))
	defer elsewhere.Close()
	plain := httptest.NewServer(elsewhere.Config.Handler)
	defer plain.Close()
	redirect := func(from, to string, status int) func(http.Handler) http.Handler {
		return func(h http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if strings.HasPrefix(r.URL.Path, to) && strings.HasPrefix(to, "/secret") {
					reached.Store(true)
				}
				if rest, ok := strings.CutPrefix(r.URL.Path, from); ok {
					http.Redirect(w, r, to+rest+"?"+r.URL.RawQuery, status)
					return
				}
				r.URL.Path = strings.Replace(r.URL.Path, "/repo.git/", "/repo/.git/", 1)
				h.ServeHTTP(w, r)
			})
		}
	}
	for _, tt := range []struct {
		what, path string
		wrap       func(http.Handler) http.Handler
		ok         bool
	}{
		{"to itself with .git", "/repo", redirect("/repo/info", "/repo.git/info", 301), true},
		{"to itself with .git, from a slash", "/repo/", redirect("/repo/info", "/repo.git/info", 301), true},
		{"to another repository of the host", "/repo.git", redirect("/repo.git/", "/secret.git/", 302), false},
		{"to another repository, with .git", "/repo", redirect("/repo", "/secret", 301), false},
		{"to another host", "/repo.git", redirect("/repo.git/", elsewhere.URL+"/x/", 302), false},
		{"to another scheme", "/repo.git", redirect("/repo.git/", plain.URL+"/x/", 302), false},
		{"of the pack alone, to another host", "/repo.git", redirect("/repo.git/git-upload-pack", elsewhere.URL+"/x/git-upload-pack", 307), false},
		{"of the pack alone, to another repository", "/repo.git", redirect("/repo.git/git-upload-pack", "/secret/git-upload-pack", 308), false},
	} {
		for _, withCredentials := range []bool{false, true} {
			reached.Store(false)
			r, url, config := httpRepo(t, func(h http.Handler) http.Handler {
				if withCredentials {
					h = withPassword(h)
				}
				return tt.wrap(h)
			})
			r.Files("main", "a", "1")
			url = strings.TrimSuffix(url, "/repo/.git") + tt.path
			f := newFetcher(t, func(cfg *FetchConfig) {
				if config(cfg); withCredentials {
					credentials(t, url, secret)(cfg)
				}
			})
			mirror := filepath.Join(t.TempDir(), "m")
			if tt.ok {
				if got := fetchAll(t, f, mirror, url); got["a@main"] != "1" {
					t.Errorf("%s: %v", tt.what, got)
				}
				continue
			}
			_, err := f.Fetch(t.Context(), mirror, url, []docstore.Branch{{Name: "main"}}, nil)
			wantFailure(t, err, Refused, "the URL that it has now")
			if reached.Load() {
				t.Errorf("%s: it was followed", tt.what)
			}
		}
	}
}

// TestEgressKnowsOneHost: whatever an answer makes git ask for, it gets no connection to another
// host, port or scheme than those of the repository.
func TestEgressKnowsOneHost(t *testing.T) {
	policy := origin.Policy{Schemes: []string{"https", "http"}, PrivateNetworks: []string{"127.0.0.0/8"}}
	_, url, _ := httpRepo(t, asIs)
	remote, err := origin.Parse(url)
	if err != nil {
		t.Fatal(err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	e, err := openEgress(policy, remote, 1<<20, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	at := remote.HostPort(remote.Host)
	for _, tt := range []struct {
		request string
		status  string
	}{
		{"CONNECT " + at, "200"},
		{"CONNECT " + strings.TrimPrefix(other.URL, "http://"), "403"},
		{"CONNECT localhost:" + remote.Port, "403"},
		{"CONNECT 127.1:" + remote.Port, "403"},
		{"CONNECT [::ffff:127.0.0.1]:" + remote.Port, "403"},
		{"GET http://" + at + "/x", "502"},
		{"GET https://" + at + "/x", "502"},
		{"GET " + other.URL + "/x", "502"},
		{"GET ftp://" + at + "/x", "502"},
	} {
		conn, err := net.Dial("tcp", e.listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		password := base64.StdEncoding.EncodeToString([]byte("trawl:" + e.token))
		fmt.Fprintf(conn, "%s HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic %s\r\n\r\n", tt.request, password)
		answer := make([]byte, 64)
		n, _ := conn.Read(answer)
		if !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 "+tt.status) {
			t.Errorf("%s: %q", tt.request, answer[:n])
		}
		conn.Close()
	}
}

// TestSlowServerHitsTheLimit has a server that never answers: afterwards no process
// of git or its helpers may be left, not even a zombie.
func TestSlowServerHitsTheLimit(t *testing.T) {
	adoptOrphans(t)
	arrived := make(chan struct{}, 1)
	release := make(chan struct{})
	_, url, config := httpRepo(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(_ http.ResponseWriter, _ *http.Request) {
			select {
			case arrived <- struct{}{}:
			default:
			}
			<-release
		})
	})
	defer close(release)
	f := newFetcher(t, func(c *FetchConfig) { config(c); c.Timeout = time.Second })
	_, err := f.Branches(t.Context(), url, nil)
	wantFailure(t, err, TimedOut, "limit of 1s")
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}

	// The same when the caller gives up while the request is under way.
	for len(arrived) > 0 {
		<-arrived
	}
	f = newFetcher(t, config)
	ctx, cancel := context.WithCancelCause(t.Context())
	lost := errors.New("lease lost")
	go func() { <-arrived; cancel(lost) }()
	if _, err := f.Branches(ctx, url, nil); !errors.Is(err, lost) {
		t.Errorf("got %v, want the cause", err)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

func TestTooManyBytesOverHTTP(t *testing.T) {
	adoptOrphans(t)
	_, url, config := httpRepo(t, func(http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
			for { // an endless answer
				if _, err := w.Write([]byte("001e# service=git-upload-pack\n")); err != nil {
					return
				}
			}
		})
	})
	f := newFetcher(t, func(c *FetchConfig) { config(c); c.MaxBytes = 1 << 20 })
	_, err := f.Fetch(t.Context(), filepath.Join(t.TempDir(), "m"), url, []docstore.Branch{{Name: "main"}}, nil)
	// Git may reject the answer as malformed before it reaches the limit.
	if fail := (*Failure)(nil); !errors.As(err, &fail) || fail.Kind != TooLarge && fail.Kind != Unknown {
		t.Errorf("got %v", err)
	}
	if left := children(t); len(left) > 0 {
		t.Errorf("processes are left: %q", left)
	}
}

func TestTooManyBytesOfARealPack(t *testing.T) {
	r, url, config := httpRepo(t, asIs)
	noise := make([]byte, 1<<20)
	rand.NewChaCha8([32]byte{}).Read(noise)
	r.Files("main", "noise", string(noise))
	f := newFetcher(t, func(c *FetchConfig) { config(c); c.MaxBytes = 100_000 })
	mirror := filepath.Join(t.TempDir(), "m")
	_, err := f.Fetch(t.Context(), mirror, url, []docstore.Branch{{Name: "main"}}, nil)
	wantFailure(t, err, TooLarge, "100000")
}

func TestServerThatIsDown(t *testing.T) {
	f := newFetcher(t, func(c *FetchConfig) { c.PrivateNetworks = []string{"127.0.0.1/32"} })
	_, err := f.Branches(t.Context(), "https://"+testrun.Address(t)+"/x", nil)
	wantFailure(t, err, Unreachable, "cannot be reached")
	_, err = f.Branches(t.Context(), "https://no-such-host.invalid/x", nil)
	wantFailure(t, err, Unreachable, "cannot be reached")
	if fail := (*Failure)(nil); errors.As(err, &fail) && fail.Kind.Permanent() {
		t.Error("a server that is down is permanent")
	}
}

// TestAnswersThatAreNotGit: a page in place of git's answer is a host that cannot be reached, and never a repository. To git an
// empty page is a server of plain files that has none: a failure, too.
func TestAnswersThatAreNotGit(t *testing.T) {
	const advertisement = "application/x-git-upload-pack-advertisement"
	for _, answer := range []struct {
		mime, body string
		kind       Kind
	}{
		{"text/html", "<html>\n<body>Please log in</body>\n</html>\n", Unreachable},
		{"text/html", "\n", Unreachable},
		{advertisement, "<html>Please log in</html>\n", Unreachable},
		{advertisement, "", Unreachable},
		{advertisement, "0000", Unreachable},
		{advertisement, "001e# service=git-upload-pack\n0000000eversion 2\n", Unreachable},
		{"", "", Unreachable}, // the connection ends
		{"text/plain", "", Empty},
		{"text/html", "ok", Empty},
	} {
		_, url, config := httpRepo(t, func(http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				if answer.mime == "" {
					panic(http.ErrAbortHandler)
				}
				w.Header().Set("Content-Type", answer.mime)
				_, _ = w.Write([]byte(answer.body))
			})
		})
		t.Logf("%+v", answer)
		_, err := newFetcher(t, config).Branches(t.Context(), url, nil)
		wantFailure(t, err, answer.kind, "the ")
	}
}

// TestEgressIsNotForOthers asks the proxy for a connection without its password.
func TestEgressIsNotForOthers(t *testing.T) {
	e, err := openEgress(origin.Policy{}, origin.Remote{Scheme: "https", Host: "git.example"}, 1, func(error) {})
	if err != nil {
		t.Fatal(err)
	}
	defer e.close()
	conn, err := net.Dial("tcp", e.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: x\r\n\r\n", e.listener.Addr())
	answer := make([]byte, 64)
	n, _ := conn.Read(answer)
	if !strings.HasPrefix(string(answer[:n]), "HTTP/1.1 407") {
		t.Errorf("answer %q", answer[:n])
	}
}
