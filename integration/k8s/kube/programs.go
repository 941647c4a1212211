package kube

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/trawl-search/trawl/internal/pinned"
)

// Programs are the paths of the programs, and the names of the images, that a cluster and the
// servers on it are made of.
type Programs struct {
	Kubernetes, Etcd, CoreDNS, Helm, NATS, Versitygw string
	// NodeImage is the image of a node, and Debian the base of the indexer's image.
	NodeImage, Debian string
}

// programs are built from pinned modules.
var programs = []pinned.Program{pinned.Kubernetes, pinned.Etcd, pinned.CoreDNS, pinned.Helm, pinned.NATS, pinned.Versitygw}

// Missing names the programs that are not built yet. Building all of them takes minutes.
func Missing(ctx context.Context) (names []string, err error) {
	for _, p := range programs {
		built, err := pinned.Built(ctx, p)
		if err != nil {
			return nil, err
		}
		if !built {
			names = append(names, p.Name)
		}
	}
	return names, nil
}

// part is one of the programs, and where to store its path.
type part struct {
	path *string
	what pinned.Program
}

// Build builds the missing programs and the image of a node. It reports slow steps on
// progress.
func Build(ctx context.Context, progress io.Writer) (p Programs, err error) {
	if err := build(ctx, progress, append(p.servers(), part{&p.Kubernetes, pinned.Kubernetes}, part{&p.CoreDNS, pinned.CoreDNS})); err != nil {
		return p, err
	}
	if p.NodeImage, err = unpacked(ctx, "node"); err != nil {
		return p, err
	}
	p.Debian, err = unpacked(ctx, "debian")
	return p, err
}

// BuildServers builds the programs that run on an existing cluster. It takes kubectl from the PATH.
func BuildServers(ctx context.Context, progress io.Writer) (p Programs, err error) {
	if p.Kubernetes, err = exec.LookPath("kubectl"); err != nil {
		return p, fmt.Errorf("find kubectl for a cluster that exists: %w", err)
	}
	if err := build(ctx, progress, p.servers()); err != nil {
		return p, err
	}
	p.Debian, err = unpacked(ctx, "debian")
	return p, err
}

// servers are the programs that every cluster needs.
func (p *Programs) servers() []part {
	return []part{{&p.Etcd, pinned.Etcd}, {&p.Helm, pinned.Helm}, {&p.NATS, pinned.NATS}, {&p.Versitygw, pinned.Versitygw}}
}

func build(ctx context.Context, progress io.Writer, parts []part) (err error) {
	for _, program := range parts {
		start := time.Now()
		if *program.path, err = pinned.Build(ctx, program.what); err != nil {
			return err
		}
		if took := time.Since(start); took > time.Second {
			fmt.Fprintf(progress, "building %s took %.0f s\n", program.what.Name, took.Seconds())
		}
	}
	return nil
}

// unpacked is Unpacked with a script of this source tree.
func unpacked(ctx context.Context, name string) (string, error) {
	root, err := pinned.Repository(ctx)
	if err != nil {
		return "", err
	}
	return Unpacked(ctx, root, name)
}

// Unpacked makes an image of Debian packages with the script of that name in a source tree of
// Trawl, unless there is an image from the same script. It returns the image's tag.
func Unpacked(ctx context.Context, source, name string) (string, error) {
	script := filepath.Join(source, "tools", "images", name+".sh")
	text, err := os.ReadFile(script)
	if err != nil {
		return "", fmt.Errorf("read the script of the image %s: %w", name, err)
	}
	hash := sha256.Sum256(text)
	tag := "trawl-test/" + name + ":" + hex.EncodeToString(hash[:8])
	if _, err := docker(ctx, "image", "inspect", tag); err == nil {
		return tag, nil
	}
	if out, err := exec.CommandContext(ctx, script, tag).CombinedOutput(); err != nil {
		return "", fmt.Errorf("make an image (%s): %w\n%s", script, err, out)
	}
	return tag, nil
}

// errNoDocker means that no Docker engine answers.
var errNoDocker = errors.New("no Docker engine answers")

// Ping returns an error if no Docker engine answers.
func Ping(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	if _, err := docker(ctx, "version"); err != nil {
		return fmt.Errorf("%w: %w", errNoDocker, err)
	}
	return nil
}
