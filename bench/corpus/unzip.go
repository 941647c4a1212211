package corpus

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
)

// unzip unpacks the files of an archive into a folder, and nothing outside of
// it.
func unzip(archive, dir string) (err error) {
	from, err := zip.OpenReader(archive)
	if err != nil {
		return fmt.Errorf("opening %s: %w", archive, err)
	}
	defer func() { err = errors.Join(err, from.Close()) }()
	to, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("opening the folder to unpack into: %w", err)
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	for _, f := range from.File {
		if !f.Mode().IsRegular() {
			continue
		}
		if err := extract(f, to); err != nil {
			return fmt.Errorf("unpacking %s of %s: %w", f.Name, archive, err)
		}
	}
	return nil
}

func extract(f *zip.File, to *os.Root) (err error) {
	if err := to.MkdirAll(path.Dir(f.Name), 0o777); err != nil {
		return err
	}
	in, err := f.Open()
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	out, err := to.Create(f.Name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if written, err := io.CopyN(out, in, int64(f.UncompressedSize64)); err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("after %d bytes: %w", written, err)
	}
	return nil
}
