package gitsource

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/gitsource/origin"
	"github.com/trawl-search/trawl/internal/sandbox"
)

// session is the access to one remote repository during one fetch.
type session struct {
	fetcher *Fetcher
	// url is the URL for git; for a local folder its path without symbolic links.
	url     string
	env     []string
	secrets []string
	read    []string // files and folders that git needs in addition to its own
	ports   []uint16 // to which git connects
	// submodules are the folders of a local repository's submodules.
	submodules []string
	egress     *egress // https and http only
	// exceeded ends the session's context with a reason.
	exceeded context.CancelCauseFunc
}

// open checks a URL against the policy and prepares git for its scheme. The caller must close the session, also after an error.
func (f *Fetcher) open(ctx context.Context, url string, exceeded context.CancelCauseFunc) (*session, error) {
	s := &session{fetcher: f, exceeded: exceeded}
	remote, err := origin.Parse(url)
	if err == nil {
		err = f.cfg.Check(remote)
	}
	if err != nil {
		return s, err
	}
	s.url = remote.CloneURL("")
	switch remote.Scheme {
	case "https", "http":
		return s, s.openHTTP(remote)
	case "ssh":
		return s, s.openSSH(ctx, remote)
	case origin.SchemeFile:
		return s, s.openFolder(ctx, remote)
	}
	addr, err := f.cfg.AllowedAddress(ctx, remote.Host, remote.DialPort())
	s.url = remote.CloneURL(addr.String())
	s.env = gitEnv(allow(remote.Scheme))
	s.ports = portsOf(remote.DialPort())
	return s, unreachable(err)
}

func allow(schemes ...string) [][2]string {
	var config [][2]string
	for _, s := range schemes {
		config = append(config, [2]string{"protocol." + s + ".allow", "always"})
	}
	return config
}

// portsOf returns a port that origin.Parse has checked.
func portsOf(port string) []uint16 {
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return nil
	}
	return []uint16{uint16(n)}
}

// unreachable makes a *Failure of a failed look-up, and returns the policy's errors as
// they are.
func unreachable(err error) error {
	if _, isRule := errors.AsType[*origin.RuleError](err); err == nil || isRule {
		return err
	}
	return failure(Unreachable, err, "the host cannot be reached: "+sanitize(err.Error()))
}

func (s *session) openHTTP(remote origin.Remote) error {
	var err error
	f := s.fetcher
	if s.egress, err = openEgress(f.cfg.Policy, remote, int64(f.cfg.MaxBytes), s.exceeded); err != nil {
		return err
	}
	s.ports = []uint16{s.egress.port()}
	// A redirect leads to a repository that nobody checked: the requester may not be allowed to see
	// it, and the indexer reaches more than the requester, by its place and by its credentials.
	config := append(allow(remote.Scheme), [2]string{"http.followRedirects", "false"},
		[2]string{"http.proxy", s.egress.url()}, [2]string{"http.proxyAuthMethod", "basic"})
	if f.cfg.CAFile != "" {
		authorities, err := f.authorities()
		if err != nil {
			return err
		}
		config = append(config, [2]string{"http.sslCAInfo", authorities})
	}
	env, secrets := f.httpsCredentials(remote)
	if f.cfg.Credentials != "" {
		s.read = append(s.read, filepath.Join(f.cfg.Credentials, remote.HostPort(remote.Host)))
	}
	for _, name := range []string{"SSL_CERT_FILE", "SSL_CERT_DIR"} {
		if file := os.Getenv(name); file != "" {
			s.read = append(s.read, file)
		}
	}
	s.env = append(gitEnv(config), env...)
	s.secrets = append([]string{s.egress.token}, secrets...)
	return nil
}

// openSSH makes ssh connect to the address that was checked. The host's key is looked up
// by the host's name.
func (s *session) openSSH(ctx context.Context, remote origin.Remote) error {
	addr, err := s.fetcher.cfg.AllowedAddress(ctx, remote.Host, remote.DialPort())
	if err != nil {
		return unreachable(err)
	}
	s.ports = portsOf(remote.DialPort())
	s.read = append(s.read, filepath.Join(s.fetcher.cfg.Credentials, "known_hosts"),
		filepath.Join(s.fetcher.cfg.Credentials, remote.HostPort(remote.Host)))
	s.env = append(gitEnv(allow("ssh")),
		"GIT_SSH_VARIANT=ssh", "GIT_SSH_COMMAND="+s.fetcher.sshCommand(remote, addr))
	return nil
}

// sshCommand returns an ssh command without the user's and the machine's configuration.
func (f *Fetcher) sshCommand(remote origin.Remote, addr netip.Addr) string {
	alias := remote.Host
	if remote.Port != "" && remote.Port != "22" {
		alias = "[" + remote.Host + "]:" + remote.Port
	}
	args := []string{"ssh", "-F", "/dev/null"}
	for _, option := range []string{
		"BatchMode=yes", "StrictHostKeyChecking=yes", "GlobalKnownHostsFile=/dev/null", "IdentitiesOnly=yes",
		"ConnectTimeout=30", "ServerAliveInterval=30", "ForwardAgent=no", "PermitLocalCommand=no", "ClearAllForwardings=yes",
		"HostName=" + addr.String(), "HostKeyAlias=" + alias,
		"UserKnownHostsFile=" + filepath.Join(f.cfg.Credentials, "known_hosts"),
		"IdentityFile=" + filepath.Join(f.cfg.Credentials, remote.HostPort(remote.Host), "ssh_key"),
	} {
		args = append(args, "-o", shellQuote(option))
	}
	return strings.Join(args, " ")
}

// shellQuote makes one word of s for a POSIX shell. ssh takes a value with
// spaces only in quotes of its own, so such a path does not work.
func shellQuote(s string) string {
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// openFolder resolves symbolic links, and whatever else leads git to other folders,
// before the check, so that none leads out of the allowed folders.
func (s *session) openFolder(ctx context.Context, remote origin.Remote) error {
	path, err := filepath.EvalSymlinks(remote.Path)
	if errors.Is(err, os.ErrNotExist) {
		return failure(NotFound, err, "there is no such folder on the indexer's machine")
	}
	if err != nil {
		return failure(Unknown, err, "the folder cannot be read: "+err.Error())
	}
	if err := s.fetcher.cfg.CheckResolvedFolder(path); err != nil {
		return err
	}
	local := localRepo{ctx: ctx, policy: s.fetcher.cfg.Policy, stores: map[string]bool{}}
	if s.url, err = local.gitDir(path); err != nil {
		return err
	}
	if s.submodules, err = local.submodules(s.url); err != nil {
		return err
	}
	s.read = append(s.read, local.folders...)
	s.env = append(gitEnv(allow(origin.SchemeFile)), "GIT_CONFIG_GLOBAL="+s.fetcher.trust)
	return nil
}

func (s *session) close() {
	if s.egress != nil {
		s.egress.close()
	}
}

// refusal returns why the policy refused a connection of git, nil if it did not.
func (s *session) refusal() error {
	if s.egress == nil {
		return nil
	}
	return unreachable(s.egress.err())
}

// Bounds of git's output, in bytes.
const (
	// maxAnswer holds the names of a million branches of a remote repository.
	maxAnswer = 128 << 20
	// maxPaths bounds the paths of a tree together. A few small trees that hold each other
	// many times name more paths than fit in any memory.
	maxPaths = 512 << 20
	// maxRecord holds a line of a listing with a path longer than MaxPath.
	maxRecord = 2*MaxPath + 1<<10
)

// local runs git on the mirror, without a network.
func (s *session) local(ctx context.Context, mirror string, stdin io.Reader, args ...string) ([]byte, error) {
	g := gitRun{box: s.box(mirror), env: s.env, secrets: s.secrets, maxOutput: maxAnswer}
	g.box.Read, g.box.Ports = []string{s.fetcher.dir}, nil
	return g.run(ctx, stdin, append([]string{"--git-dir=" + mirror}, args...)...)
}

// remote runs git on the mirror and the remote repository. An empty mirror means
// none.
func (s *session) remote(ctx context.Context, mirror string, stdin io.Reader, onLine func(string), args ...string) ([]byte, error) {
	g := gitRun{box: s.box(mirror), env: s.env, secrets: s.secrets, maxOutput: maxAnswer, onLine: onLine}
	return g.run(ctx, stdin, args...)
}

// box returns a box with what the session needs, and a mirror to write.
func (s *session) box(mirror string) *sandbox.Box {
	box := reading(int64(s.fetcher.cfg.Memory), append([]string{s.fetcher.dir}, s.read...)...)
	// This limit is above that of the watch over the mirror's size, which gives the
	// better reason.
	box.Ports, box.FileSize = s.ports, int64(s.fetcher.cfg.MaxBytes+config.GiB)
	if mirror != "" {
		box.Write = []string{mirror}
	}
	return box
}

// gitRun holds the settings of a run of git.
type gitRun struct {
	box       *sandbox.Box
	env       []string
	secrets   []string // never shown
	maxOutput int
	onLine    func(string) // gets git's lines of error output, progress included
}

// run runs git to its end and returns its output.
func (g *gitRun) run(ctx context.Context, stdin io.Reader, args ...string) ([]byte, error) {
	var out bytes.Buffer
	err := g.stream(ctx, stdin, func(p []byte) error {
		if out.Len()+len(p) > g.maxOutput {
			return failure(TooLarge, nil, "git's answer is too long")
		}
		out.Write(p)
		return nil
	}, args...)
	if err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// stream runs git and passes its output to take as it comes. An error of take kills git,
// and is returned.
func (g *gitRun) stream(ctx context.Context, stdin io.Reader, take func([]byte) error, args ...string) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	cmd := gitCommand(ctx, g.env, args...)
	said := &lineWriter{onLine: g.onLine}
	cmd.Stdin, cmd.Stderr = stdin, said
	cmd.Stdout = writerFunc(func(p []byte) (int, error) {
		if err := take(p); err != nil {
			cancel(err)
			return 0, err
		}
		return len(p), nil
	})
	process, err := g.box.Start(cmd)
	if err != nil {
		return startFailure(err)
	}
	err = process.Wait(ctx)
	if _, isExit := errors.AsType[*exec.ExitError](err); isExit || errors.Is(err, exec.ErrWaitDelay) {
		return explain(redact(said.text(), g.secrets), err)
	}
	return err
}

func startFailure(err error) error {
	return failure(Unknown, err, "git cannot be started: "+err.Error())
}

// writerFunc is an io.Writer.
type writerFunc func([]byte) (int, error)

// Write implements io.Writer.
func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
