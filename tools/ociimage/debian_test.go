package main

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// makeDebian makes a Debian package of files and links; a content of "-> x" is a symbolic link, and "=> x" a hard one. Names that end in ! are
// of programs that change their user.
func makeDebian(t *testing.T, folder, name string, files ...[2]string) {
	t.Helper()
	root := t.TempDir()
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	control := "Package: " + name + "\nVersion: 1\nArchitecture: all\nMaintainer: A <a@b.example>\nDescription: a\n"
	for _, f := range append([][2]string{{"DEBIAN/control", control}}, files...) {
		path, setuid := strings.CutSuffix(filepath.Join(root, f[0]), "!")
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if link, ok := strings.CutPrefix(f[1], "-> "); ok {
			err = errors.Join(err, os.Symlink(link, path))
		} else if link, ok := strings.CutPrefix(f[1], "=> "); ok {
			err = errors.Join(err, os.Link(filepath.Join(root, link), path))
		} else if err = errors.Join(err, os.WriteFile(path, []byte(f[1]), 0o644)); setuid {
			err = errors.Join(err, os.Chmod(path, os.ModeSetuid|0o755))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	build := exec.CommandContext(t.Context(), "dpkg-deb", "--root-owner-group", "--build", root, filepath.Join(folder, name+".deb"))
	build.Env = append(os.Environ(), "SOURCE_DATE_EPOCH=1000000000")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestDebianFiles: packages are unpacked into merged folders, without what no program needs, and without set-user-id.
func TestDebianFiles(t *testing.T) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("needs dpkg-deb")
	}
	folder := t.TempDir()
	makeDebian(t, folder, "shell", [2]string{"bin/dash", "the shell"}, [2]string{"bin/sh", "-> dash"}, [2]string{"usr/share/man/man1/dash.1", "how"},
		[2]string{"usr/share/doc/shell/copyright", "may"}, [2]string{"usr/share/doc/shell/README", "more"})
	makeDebian(t, folder, "git", [2]string{"usr/bin/git", "git"}, [2]string{"usr/bin/aaa", "=> usr/bin/git"}, [2]string{"usr/bin/passwd!", "passwd"})
	if err := os.WriteFile(filepath.Join(folder, "status"), []byte("Package: git\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	var first, second bytes.Buffer
	if err := errors.Join(debianFiles(folder, &first), debianFiles(folder, &second)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(first.Bytes(), second.Bytes()) {
		t.Error("the same packages make other bytes")
	}
	contents, headers := unpacked(t, first.Bytes())
	for name, want := range map[string]string{
		"usr/bin/dash": "the shell", "usr/share/doc/shell/copyright": "may", "var/lib/dpkg/status": "Package: git\n",
	} {
		if string(contents[name]) != want {
			t.Errorf("%s is %q, want %q", name, contents[name], want)
		}
	}
	for name, want := range map[string]string{"bin": "usr/bin", "usr/bin/sh": "dash"} {
		if h := headers[name]; h == nil || h.Typeflag != tar.TypeSymlink || h.Linkname != want {
			t.Errorf("%s is %+v, want a link to %s", name, h, want)
		}
	}
	if h := headers["usr/bin/git"]; string(contents["usr/bin/aaa"]) != "git" || h.Typeflag != tar.TypeLink || h.Linkname != "usr/bin/aaa" { // dpkg-deb sorts them
		t.Errorf("usr/bin/aaa is %q, usr/bin/git is %+v", contents["usr/bin/aaa"], h)
	}
	if len(headers) != 13 || headers["usr/bin/passwd"].Mode != 0o755 || headers["usr/bin/git"].ModTime != time.Unix(1e9, 0) {
		t.Errorf("%d entries: %+v", len(headers), headers)
	}
	makeDebian(t, folder, "other", [2]string{"usr/bin/git", "another"})
	if err := debianFiles(folder, &second); err == nil || !strings.Contains(err.Error(), "another package has usr/bin/git") {
		t.Errorf("two packages with one file: %v", err)
	}
}
