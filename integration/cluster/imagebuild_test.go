package cluster

import (
	"archive/tar"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/client"
)

// recipe holds all inputs of an image build.
type recipe struct {
	dockerfile []byte
	// base is the value of the Dockerfile's argument BASE, if it has one.
	base string
	// target is the stage of the Dockerfile to build; empty: the last.
	target string
	// files maps paths in the build context to paths on this machine.
	files map[string]string
}

// hash differs between recipes that make different images.
func (r recipe) hash() (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", r.dockerfile, r.base, r.target)
	for _, name := range slices.Sorted(maps.Keys(r.files)) {
		f, err := os.Open(r.files[name])
		if err != nil {
			return "", fmt.Errorf("read what goes into an image: %w", err)
		}
		fmt.Fprintln(h, name)
		_, err = io.Copy(h, f)
		if err := errors.Join(err, f.Close()); err != nil {
			return "", fmt.Errorf("read what goes into an image: %w", err)
		}
	}
	return hex.EncodeToString(h.Sum(nil)[:8]), nil
}

// write writes the build context.
func (r recipe) write(to io.Writer) error {
	w := tar.NewWriter(to)
	header := &tar.Header{Name: "Dockerfile", Mode: 0o644, Size: int64(len(r.dockerfile))}
	if err := w.WriteHeader(header); err != nil {
		return err
	}
	if _, err := w.Write(r.dockerfile); err != nil {
		return err
	}
	for name, path := range r.files {
		if err := addFile(w, name, path); err != nil {
			return err
		}
	}
	return w.Close()
}

func addFile(w *tar.Writer, name, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	if err := w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: info.Size()}); err != nil {
		return err
	}
	_, err = io.Copy(w, f)
	return err
}

// image makes an image unless there is one from the same recipe, and returns its name.
func (b *builder) image(ctx context.Context, name string, r recipe) (string, error) {
	hash, err := r.hash()
	if err != nil {
		return "", err
	}
	tag := imagePrefix + name + ":" + hash
	exists, err := b.exists(ctx, tag)
	if err != nil || exists {
		return tag, err
	}
	defer b.say("the image %s", tag)()
	pipe, in := io.Pipe()
	// End the writer even if the engine has not read everything.
	defer func() { _ = pipe.CloseWithError(io.ErrClosedPipe) }()
	go func() { _ = in.CloseWithError(r.write(in)) }()
	args := map[string]*string{}
	if r.base != "" {
		args["BASE"] = &r.base
	}
	result, err := b.docker.ImageBuild(ctx, pipe, client.ImageBuildOptions{Tags: []string{tag}, Target: r.target, BuildArgs: args, Remove: true, ForceRemove: true})
	if err != nil {
		return "", fmt.Errorf("build the image %s: %w", tag, err)
	}
	defer result.Body.Close()
	if err := finishBuild(result.Body); err != nil {
		return "", fmt.Errorf("build the image %s: %w", tag, err)
	}
	return tag, nil
}

// finishBuild reads the engine's report to its end. An error includes the whole report.
func finishBuild(report io.Reader) error {
	var said strings.Builder
	for dec := json.NewDecoder(report); ; {
		var line struct{ Stream, Error string }
		if err := dec.Decode(&line); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read the engine's report: %w", err)
		}
		said.WriteString(line.Stream)
		if line.Error != "" {
			return fmt.Errorf("%s\n%s", line.Error, said.String())
		}
	}
}

func (b *builder) exists(ctx context.Context, tag string) (bool, error) {
	_, err := b.docker.ImageInspect(ctx, tag)
	if errdefs.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look for the image %s: %w", tag, err)
	}
	return true, nil
}

// keptUnused is how long an unused image of a role is kept: long enough for the tests of
// another tree on the same machine.
const keptUnused = 24 * time.Hour

// removeOld removes old images of roles that are not in the set. Servers and the Debian
// seldom change, so their images stay.
func (b *builder) removeOld(ctx context.Context, set imageSet) error {
	for _, role := range []string{"router", "searcher", "indexer"} {
		list, err := b.docker.ImageList(ctx, client.ImageListOptions{Filters: client.Filters{}.Add("reference", imagePrefix+role)})
		if err != nil {
			return fmt.Errorf("list images: %w", err)
		}
		for _, image := range list.Items {
			wanted := slices.ContainsFunc(image.RepoTags, func(tag string) bool {
				return tag == set.Router || tag == set.Searcher || tag == set.Indexer
			})
			if !wanted && time.Since(time.Unix(image.Created, 0)) > keptUnused {
				// An image in use stays until the next run.
				_, _ = b.docker.ImageRemove(ctx, image.ID, client.ImageRemoveOptions{PruneChildren: true})
			}
		}
	}
	return nil
}
