package corpus

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Git writes the files of the repo as the only commit of a new bare Git repository. It writes them
// byte by byte, whatever their attributes say, and includes ignored ones. It omits symbolic links.
func (r Repo) Git(ctx context.Context, dir string) (err error) {
	if err := run(ctx, ".", "git", "init", "--quiet", "--bare", "--initial-branch=main", dir); err != nil {
		return err
	}
	// The repository is read a few times and then deleted, so it need not be small.
	cmd := exec.CommandContext(ctx, "git", "-C", dir, "-c", "pack.compression=1", "-c", "fastimport.unpackLimit=0", "fast-import", "--quiet", "--depth=0")
	var said strings.Builder
	cmd.Stderr = &said
	in, err := cmd.StdinPipe()
	if err != nil {
		return fmt.Errorf("starting git fast-import: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting git fast-import: %w", err)
	}
	w := bufio.NewWriterSize(in, 1<<20)
	err = errors.Join(r.stream(ctx, w), w.Flush(), in.Close())
	if ended := cmd.Wait(); ended != nil {
		return fmt.Errorf("git fast-import of %s: %w: %s", r.Dir, errors.Join(ended, err), said.String())
	}
	return err
}

// stream writes the input of git fast-import; see git-fast-import(1).
func (r Repo) stream(ctx context.Context, w io.Writer) error {
	fmt.Fprintf(w, "commit refs/heads/main\ncommitter bench <b@example> 0 +0000\ndata 6\ncorpus\n")
	err := r.walk(ctx, func(path string) error {
		text, err := os.ReadFile(path)
		if err != nil {
			return err //nolint:wrapcheck // below
		}
		name := filepath.ToSlash(strings.TrimPrefix(path, r.Dir+string(filepath.Separator)))
		if _, err := fmt.Fprintf(w, "M 100644 inline %s\ndata %d\n", quoted(name), len(text)); err != nil {
			return err //nolint:wrapcheck // below
		}
		_, err = w.Write(append(text, '\n'))
		return err //nolint:wrapcheck // below
	})
	if err != nil {
		return fmt.Errorf("reading %s: %w", r.Dir, err)
	}
	return nil
}

// walk calls f with the path of each file that is indexed.
func (r Repo) walk(ctx context.Context, f func(path string) error) error {
	return filepath.WalkDir(r.Dir, func(path string, d fs.DirEntry, err error) error { //nolint:wrapcheck // its callers do
		if err != nil || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		if d.Name() == ".git" { // neither Git nor zoekt indexes it
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		if !d.Type().IsRegular() {
			return nil
		}
		return f(path)
	})
}

// quoted writes a path as git fast-import reads it.
func quoted(path string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(path) + `"`
}
