package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// writeFile writes the file that a user names, which appears whole or not at all, with these permissions or fewer. A link is followed.
// What is there and is no regular file, such as a device, stays and is an error, before write is called.
func writeFile(path string, permissions fs.FileMode, write func(io.Writer) error) (err error) {
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target
	}
	if err := replaceable(path); err != nil {
		return err
	}
	file, err := os.OpenFile(fmt.Sprintf("%s.%d.tmp", path, os.Getpid()), os.O_CREATE|os.O_EXCL|os.O_WRONLY, permissions)
	if err != nil {
		return fmt.Errorf("making %s: %w", path, nameless(err))
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.Remove(file.Name()))
		}
	}()
	if err := errors.Join(write(namelessWriter{file}), nameless(file.Sync()), nameless(file.Close())); err != nil {
		return fmt.Errorf("writing %s: %w", path, err)
	}
	if err := replaceable(path); err != nil { // it may have changed in the meantime
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return fmt.Errorf("putting %s in its place: %w", path, nameless(err))
	}
	return nil
}

// nameless is an error without the name of the temporary file that it is about.
func nameless(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	if e, ok := errors.AsType[*os.LinkError](err); ok {
		return e.Err
	}
	return err
}

// namelessWriter writes to a temporary file.
type namelessWriter struct{ file *os.File }

// Write implements io.Writer.
func (w namelessWriter) Write(b []byte) (int, error) {
	n, err := w.file.Write(b)
	return n, nameless(err)
}

// replaceable is an error if there is something at path that is no regular file.
func replaceable(path string) error {
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("looking at what a file would replace: %w", err)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s exists and is not a regular file: name another file to write", path)
	}
	return nil
}
