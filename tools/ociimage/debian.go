package main

import (
	"archive/tar"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mergedFolders are the folders of the root that are links to folders of usr with these names, as in every Debian since 12.
var mergedFolders = []string{"bin", "lib", "lib32", "lib64", "libx32", "sbin"}

// unwanted are folders of packages that no program needs. The licences in usr/share/doc stay.
var unwanted = []string{"boot/", "usr/share/man/", "usr/share/locale/", "usr/share/lintian/", "usr/share/info/", "usr/share/bug/", "usr/share/doc/"}

// debianEntry is a file, folder or link of a package.
type debianEntry struct {
	tar.Header

	content []byte
}

// debianFiles returns the files of all Debian packages in a folder, and the folder's dpkg status file, as a tar archive. Packages are
// unpacked, not configured: no program of theirs is run, so they may be for another architecture. Times are those in the packages: the
// same packages make the same archive. No program in it changes its user or group.
func debianFiles(folder string, w io.Writer) error {
	packages, err := filepath.Glob(filepath.Join(folder, "*.deb"))
	if err != nil || len(packages) == 0 {
		return errors.Join(err, fmt.Errorf("no Debian packages in %s", folder))
	}
	slices.Sort(packages)
	all := map[string]*debianEntry{}
	for _, file := range packages {
		if err := unpackDebian(file, all); err != nil {
			return fmt.Errorf("unpack %s: %w", filepath.Base(file), err)
		}
	}
	for _, name := range mergedFolders {
		if usr := all["usr/"+name+"/"]; usr != nil {
			all[name] = &debianEntry{Header: tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: "usr/" + name, Mode: 0o777, ModTime: usr.ModTime}}
		}
	}
	status, err := os.ReadFile(filepath.Join(folder, "status"))
	if err != nil {
		return fmt.Errorf("read the status of the packages: %w", err)
	}
	const name = "var/lib/dpkg/status"
	all[name] = &debianEntry{tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644, ModTime: all["usr/"].ModTime}, status}
	return writeDebian(w, all)
}

// unpackDebian adds the entries of a package to all. A file that another package has, too, is an error.
func unpackDebian(file string, all map[string]*debianEntry) (err error) {
	unpack := exec.Command("dpkg-deb", "--fsys-tarfile", file)
	unpack.Stderr = os.Stderr
	out, err := unpack.StdoutPipe()
	if err != nil {
		return err
	}
	if err := unpack.Start(); err != nil {
		return err
	}
	defer func() {
		_, rest := io.Copy(io.Discard, out)
		err = cmp.Or(err, errors.Join(rest, unpack.Wait()))
	}()
	for r := tar.NewReader(out); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		name, want := debianName(h.Name, h.Typeflag == tar.TypeDir)
		if !want {
			continue
		}
		if all[name] != nil && h.Typeflag != tar.TypeDir {
			return fmt.Errorf("another package has %s, too", name)
		}
		if all[name] != nil {
			continue // the first says who owns the folder
		}
		e := &debianEntry{Header: tar.Header{Typeflag: h.Typeflag, Name: name, Linkname: h.Linkname, Mode: h.Mode &^ 0o6000, Uid: h.Uid, Gid: h.Gid, ModTime: h.ModTime}}
		if h.Typeflag == tar.TypeLink {
			e.Linkname, _ = debianName(h.Linkname, false)
		}
		if e.content, err = io.ReadAll(r); err != nil {
			return err
		}
		all[name] = e
	}
}

// debianName returns the name of an entry in the image, of a folder with a slash at its end, and whether the image has it.
func debianName(name string, folder bool) (string, bool) {
	name = path.Clean("/" + name)[1:]
	if name == "" {
		return "", false
	}
	if first, _, _ := strings.Cut(name, "/"); slices.Contains(mergedFolders, first) {
		name = "usr/" + name
	}
	if folder {
		name += "/"
	}
	licence, _ := path.Match("usr/share/doc/*/copyright", name)
	of, _ := path.Match("usr/share/doc/*", path.Clean(name)) // a folder, or a link to that of another package
	return name, licence || of || name == "usr/share/doc/" || !slices.ContainsFunc(unwanted, func(u string) bool { return strings.HasPrefix(name, u) })
}

// writeDebian writes the entries in the order of their names, and hard links after what they lead to.
func writeDebian(w io.Writer, all map[string]*debianEntry) error {
	archive := tar.NewWriter(w)
	late := func(e *debianEntry) int {
		if e.Typeflag == tar.TypeLink {
			return 1
		}
		return 0
	}
	entries := slices.SortedFunc(maps.Values(all), func(a, b *debianEntry) int {
		return cmp.Or(late(a)-late(b), strings.Compare(a.Name, b.Name))
	})
	for _, e := range entries {
		e.Size, e.Format = int64(len(e.content)), tar.FormatPAX
		if err := archive.WriteHeader(&e.Header); err != nil {
			return fmt.Errorf("write %s: %w", e.Name, err)
		}
		if _, err := archive.Write(e.content); err != nil {
			return fmt.Errorf("write %s: %w", e.Name, err)
		}
	}
	return archive.Close()
}
