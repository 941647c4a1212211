package canary

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"
)

// repositoryPath is where a canary serves its repository. It ends the repo's name, so it says what the repo is.
const repositoryPath = "/trawl/canary.git"

// needlePath is the file that each push changes.
const needlePath = "needle.txt"

const readme = "# The canary of Trawl\n\nThis repo measures how soon a push can be searched. `trawl canary` replaces it every few seconds, and deletes it now and then.\n"

// maxRequest bounds the request of a git client, in bytes: it wants one commit, and has a few.
const maxRequest = 64 << 10

// repository is a Git repository in memory with one branch of one commit. Each push replaces the commit. It serves
// clients by the smart HTTP protocol, version 0, which every git speaks. It is safe for concurrent use.
type repository struct {
	mu     sync.Mutex
	commit string // its id, hexadecimal; empty before the first push
	pack   []byte // all objects of the commit
}

// push replaces the commit and returns the word that only the new one holds.
func (r *repository) push(now time.Time) string {
	needle := "canary" + strings.ToLower(rand.Text())
	pack := newPack(4)
	blob, about := pack.add(3, "blob", []byte(needle+"\n")), pack.add(3, "blob", []byte(readme))
	tree := pack.add(2, "tree", fmt.Appendf(nil, "100644 README.md\x00%s100644 %s\x00%s", about, needlePath, blob))
	who := fmt.Sprintf("Trawl canary <canary@trawl.invalid> %d +0000", now.Unix())
	commit := pack.add(1, "commit", fmt.Appendf(nil, "tree %x\nauthor %s\ncommitter %s\n\nA push of the canary\n", tree, who, who))
	r.mu.Lock()
	defer r.mu.Unlock()
	r.commit, r.pack = fmt.Sprintf("%x", commit), pack.end()
	return needle
}

// packer writes a pack without deltas.
type packer struct{ bytes.Buffer }

func newPack(objects uint32) *packer {
	p := &packer{}
	p.WriteString("PACK")
	p.Write(binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint32(nil, 2), objects))
	return p
}

// add appends an object and returns its id, as bytes.
func (p *packer) add(kind byte, name string, content []byte) string {
	size := len(content)
	head := kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		p.WriteByte(head | 128)
		head = byte(size & 127)
	}
	p.WriteByte(head)
	z := zlib.NewWriter(&p.Buffer) // writes to a buffer never fail
	_, _ = z.Write(content)
	_ = z.Close()
	id := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", name, len(content)), content...))
	return string(id[:])
}

// end returns the whole pack.
func (p *packer) end() []byte {
	sum := sha1.Sum(p.Bytes())
	return append(p.Bytes(), sum[:]...)
}

// line is a pkt-line.
func line(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	return fmt.Sprintf("%04x%s", len(text)+4, text)
}

const flush = "0000"

// advertise answers GET …/info/refs.
func (r *repository) advertise(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	commit := r.commit
	r.mu.Unlock()
	if req.URL.Query().Get("service") != "git-upload-pack" || commit == "" {
		http.Error(w, "this repository can be fetched by git's smart protocol, once it has a commit", http.StatusNotFound)
		return
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
	w.Header().Set("Cache-Control", "no-cache")
	fmt.Fprint(w, line("# service=git-upload-pack\n"), flush,
		line("%s HEAD\x00shallow symref=HEAD:refs/heads/main object-format=sha1 agent=trawl-canary\n", commit),
		line("%s refs/heads/main\n", commit), flush)
}

// uploadPack answers POST …/git-upload-pack. A commit without a parent is whole at every depth, so the answer names
// no shallow commits.
func (r *repository) uploadPack(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	commit, pack := r.commit, r.pack
	r.mu.Unlock()
	want, err := readWant(http.MaxBytesReader(w, req.Body, maxRequest))
	if err != nil || req.Header.Get("Content-Encoding") != "" {
		http.Error(w, "this is no request of git for one commit", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	w.Header().Set("Cache-Control", "no-cache")
	if want.commit != commit {
		fmt.Fprint(w, line("ERR not the newest commit: fetch again"))
		return
	}
	if want.depth {
		fmt.Fprint(w, flush)
	}
	if want.more {
		fmt.Fprint(w, line("NAK\n"))
	}
	if want.done {
		_, _ = w.Write(pack) // a client that left needs no answer
	}
}

// wanted is what a client requests.
type wanted struct {
	commit string
	// depth: it limits the history, and is told where that ends. more: it says what it has. done: it wants the pack.
	depth, more, done bool
}

var errPacket = errors.New("the request is not made of pkt-lines")

func readWant(body io.Reader) (w wanted, err error) {
	var size [4]byte
	for wants := true; ; {
		if _, err := io.ReadFull(body, size[:]); errors.Is(err, io.EOF) {
			return w, nil
		} else if err != nil {
			return w, err
		}
		n, err := strconv.ParseUint(string(size[:]), 16, 16)
		if err != nil || n > 0 && n < 4 {
			return w, errPacket
		}
		if n == 0 {
			w.more = w.more || !wants
			wants = false
			continue
		}
		packet := make([]byte, n-4)
		if _, err := io.ReadFull(body, packet); err != nil {
			return w, err
		}
		verb, rest, _ := strings.Cut(strings.TrimSpace(string(packet)), " ")
		switch verb {
		case "want":
			w.commit, _, _ = strings.Cut(rest, " ")
		case "deepen":
			w.depth = true
		case "done":
			w.more, w.done = true, true
		}
	}
}
