package gitsource

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// systemAuthorities are the files in which systems keep the public certificate
// authorities; the first that exists counts, as for Go's own programs.
var systemAuthorities = []string{
	"/etc/ssl/certs/ca-certificates.crt",                // Debian, and Trawl's images
	"/etc/pki/tls/certs/ca-bundle.crt",                  // Fedora
	"/etc/ssl/ca-bundle.pem",                            // openSUSE
	"/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem", // CentOS
	"/etc/ssl/cert.pem",                                 // Alpine, macOS
}

// authorities writes the system's certificate authorities and those of CAFile to one
// file, since git takes only one, and returns its path. Both are read anew for each
// fetch: they change while the process runs.
func (f *Fetcher) authorities() (string, error) {
	own, err := os.ReadFile(f.cfg.CAFile)
	if err != nil {
		return "", fmt.Errorf("read certificate authorities: %w", err)
	}
	files := systemAuthorities
	if file := os.Getenv("SSL_CERT_FILE"); file != "" {
		files = []string{file}
	}
	all := own
	for _, file := range files {
		system, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", fmt.Errorf("read the system's certificate authorities: %w", err)
		}
		all = bytes.Join([][]byte{system, own}, []byte("\n"))
		break
	}
	// Another fetch may be reading the file: it is replaced whole.
	temp, err := os.CreateTemp(f.dir, "authorities-")
	if err != nil {
		return "", fmt.Errorf("write certificate authorities: %w", err)
	}
	path := filepath.Join(f.dir, "authorities")
	_, err = temp.Write(all)
	if err = errors.Join(err, temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return "", errors.Join(fmt.Errorf("write certificate authorities: %w", err), os.Remove(temp.Name()))
	}
	return path, nil
}
