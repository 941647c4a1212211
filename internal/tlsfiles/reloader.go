package tlsfiles

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/trawl-search/trawl/internal/config"
)

const (
	// maxFile bounds a file, in bytes: a bundle of all public CAs takes a quarter of it.
	maxFile = 1 << 20
	// reloadEvery is the least time between two looks at the files. Kubernetes takes
	// about a minute to bring a changed Secret to a pod.
	reloadEvery = time.Second
)

// paths names the files of one end of a connection; each may be empty.
type paths struct{ cert, key, ca string }

// texts is the content of the files.
type texts struct{ cert, key, ca []byte }

// material is the parsed content of the files.
type material struct {
	cert *tls.Certificate // nil without a certificate
	pool *x509.CertPool   // nil without CAs
}

// reloader keeps the newest valid material. It is safe for concurrent use.
type reloader struct {
	paths paths
	log   *slog.Logger

	mu      sync.Mutex
	looked  time.Time
	inUse   [sha256.Size]byte // digest of the files of current
	current material
	trouble string // the last logged error; empty: the files are valid
}

// newReloader reads the files. All of them must be valid at the start.
func newReloader(p paths, log *slog.Logger) (*reloader, error) {
	t, err := p.read()
	if err != nil {
		return nil, err
	}
	m, err := p.parse(t)
	if err != nil {
		return nil, err
	}
	return &reloader{paths: p, log: log, looked: time.Now(), inUse: t.digest(), current: m}, nil
}

// now returns the material. It first checks the files if the last check was a while
// ago.
func (r *reloader) now() material {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.looked) < reloadEvery {
		return r.current
	}
	r.looked = time.Now()
	err := r.reload()
	switch {
	case err == nil:
		r.trouble = ""
	case err.Error() != r.trouble:
		r.trouble = err.Error()
		r.log.WarnContext(context.Background(), "reload TLS files; what was read before stays in use", "error", err)
	}
	return r.current
}

func (r *reloader) reload() error {
	t, err := r.paths.read()
	if err != nil {
		return err
	}
	digest := t.digest()
	if digest == r.inUse {
		return nil
	}
	m, err := r.paths.parse(t)
	if err != nil {
		return err
	}
	r.current, r.inUse = m, digest
	attrs := []any{"ca", r.paths.ca}
	if m.cert != nil {
		attrs = append(attrs, "certificate", r.paths.cert, "until", m.cert.Leaf.NotAfter)
	}
	r.log.InfoContext(context.Background(), "TLS files changed and were read again", attrs...)
	return nil
}

func (p paths) read() (t texts, err error) {
	for _, f := range []struct {
		what, path string
		to         *[]byte
	}{{"certificate", p.cert, &t.cert}, {"key", p.key, &t.key}, {"CA certificates", p.ca, &t.ca}} {
		if f.path == "" {
			continue
		}
		if *f.to, err = config.ReadFile(f.path, maxFile); err != nil {
			return texts{}, fmt.Errorf("read the %s: %w", f.what, err)
		}
	}
	return t, nil
}

func (t texts) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, text := range [][]byte{t.cert, t.key, t.ca} {
		fmt.Fprintf(h, "%d:", len(text))
		h.Write(text)
	}
	return [sha256.Size]byte(h.Sum(nil))
}

// errNoCertificate means that a file of CAs has none.
var errNoCertificate = errors.New("it holds no certificate in PEM form")

// parse makes the material. No error contains any part of the key.
func (p paths) parse(t texts) (m material, err error) {
	if p.cert != "" {
		pair, err := tls.X509KeyPair(t.cert, t.key)
		if err != nil {
			return material{}, fmt.Errorf("certificate %s with key %s: %w", p.cert, p.key, err)
		}
		m.cert = &pair
	}
	if p.ca != "" {
		m.pool = x509.NewCertPool()
		if !m.pool.AppendCertsFromPEM(t.ca) {
			return material{}, fmt.Errorf("CA certificates %s: %w", p.ca, errNoCertificate)
		}
	}
	return m, nil
}
