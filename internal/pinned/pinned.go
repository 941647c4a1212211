// Package pinned builds the programs that tests run for real, of the versions in
// this module's go.mod and those below tools and charts, and keeps their binaries in the
// user's cache folder. It also has the binary of Trawl that tests run.
package pinned

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// Program is a program that is built from a module of its own.
type Program struct {
	// Name is the binary's name.
	Name string
	// Module is the folder of the module below the repository's root, and Package the
	// package to build in it.
	Module, Package string
	// Stamp are flags for the linker.
	Stamp string
}

// The servers and tools. Those of this module consist of packages that Trawl embeds, so building
// them compiles little.
var (
	Versitygw = Program{Name: "versitygw", Module: "tools", Package: "github.com/versity/versitygw/cmd/versitygw"}
	NATS      = Program{Name: "nats-server", Module: ".", Package: "github.com/nats-io/nats-server/v2"}
	Etcd      = Program{Name: "etcd", Module: ".", Package: "go.etcd.io/etcd/server/v3"}
	Etcdctl   = Program{Name: "etcdctl", Module: "tools", Package: "go.etcd.io/etcd/etcdctl/v3"}
	Etcdutl   = Program{Name: "etcdutl", Module: "tools", Package: "go.etcd.io/etcd/etcdutl/v3"}
	Helm      = Program{Name: "helm", Module: "charts/test", Package: "helm.sh/helm/v4/cmd/helm"}
	CoreDNS   = Program{Name: "coredns", Module: "tools/coredns", Package: "."}

	Kubernetes = Program{
		Name: "kubernetes", Module: "tools/kubernetes", Package: ".",
		Stamp: "-X k8s.io/component-base/version.gitVersion=v1.34.4" +
			" -X k8s.io/component-base/version.gitMajor=1 -X k8s.io/component-base/version.gitMinor=34",
	}
)

// buildTime bounds the build of a program. The largest takes a quarter of an hour on
// a small machine with an empty Go cache.
const buildTime = 40 * time.Minute

// BuildError is a program that could not be built.
type BuildError struct {
	Program string
	// Output is the output of the Go command.
	Output string
	Err    error
}

// Error implements error.
func (e *BuildError) Error() string {
	return fmt.Sprintf("build %s: %v\n%s", e.Program, e.Err, e.Output)
}

// Unwrap returns the cause.
func (e *BuildError) Unwrap() error { return e.Err }

// Offline reports whether, by its output, the Go command failed because there is no
// network.
func (e *BuildError) Offline() bool {
	for _, sign := range []string{"dial tcp", "no such host", "i/o timeout", "network is unreachable", "connection refused", "module lookup disabled"} {
		if strings.Contains(e.Output, sign) {
			return true
		}
	}
	return false
}

// Build returns the path of a program's static binary. It builds the binary if
// needed; processes that want the same one wait for each other. A failure of the
// build itself is a *BuildError.
func Build(ctx context.Context, p Program) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, buildTime)
	defer cancel()
	dir, binary, err := p.find(ctx)
	if err != nil {
		return "", err
	}
	unlock, err := lock(binary + ".lock")
	if err != nil {
		return "", fmt.Errorf("lock the build of %s: %w", p.Name, err)
	}
	defer unlock()
	if _, err := os.Stat(binary); err == nil {
		return binary, nil
	}
	return binary, p.compile(ctx, dir, binary)
}

// Built reports whether Build would find the binary.
func Built(ctx context.Context, p Program) (bool, error) {
	_, binary, err := p.find(ctx)
	if err != nil {
		return false, err
	}
	_, err = os.Stat(binary)
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

// find returns the module's folder and the path of the binary.
func (p Program) find(ctx context.Context) (dir, binary string, err error) {
	root, err := Repository(ctx)
	if err != nil {
		return "", "", err
	}
	dir = filepath.Join(root, p.Module)
	binary, err = p.cachePath(dir)
	return dir, binary, err
}

// Repository is the folder of the repository that the working folder is in.
func Repository(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("find the repository: %w", err)
	}
	module := filepath.Dir(string(bytes.TrimSpace(out)))
	for dir := module; ; dir = filepath.Dir(dir) { // the module of bench is a folder of it
		if _, err := os.Stat(filepath.Join(dir, "tools", "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", fmt.Errorf("find the repository: %s is in none", module)
		}
	}
}

// compile builds into a temporary file and renames it, so that an existing binary is
// always complete.
func (p Program) compile(ctx context.Context, dir, binary string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w "+p.Stamp, "-o", binary+".new", p.Package)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off")
	if said, err := cmd.CombinedOutput(); err != nil {
		return &BuildError{Program: p.Name, Output: string(said), Err: err}
	}
	return os.Rename(binary+".new", binary)
}

// cachePath returns the path of the binary, whose name holds a hash of its sources: the
// module's files.
func (p Program) cachePath(dir string) (string, error) {
	hash := sha256.New()
	fmt.Fprintln(hash, p.Package, p.Stamp)
	var sources []string
	if strings.HasPrefix(p.Package, ".") { // a package of the module itself
		var err error
		if sources, err = filepath.Glob(filepath.Join(dir, p.Package, "*.go")); err != nil {
			return "", err
		}
	}
	for _, name := range append(sources, filepath.Join(dir, "go.mod"), filepath.Join(dir, "go.sum")) {
		content, err := os.ReadFile(name)
		if err != nil {
			return "", fmt.Errorf("read what %s is made from: %w", p.Name, err)
		}
		hash.Write(content)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("find a folder for binaries: %w", err)
	}
	cache = filepath.Join(cache, "trawl", "tools")
	return filepath.Join(cache, p.Name+"-"+hex.EncodeToString(hash.Sum(nil)[:8])), os.MkdirAll(cache, 0o755)
}

// lock makes processes build one after the other.
func lock(name string) (unlock func(), err error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil
}
