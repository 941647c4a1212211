package gitsource

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/trawl-search/trawl/index/docstore"
	"github.com/trawl-search/trawl/internal/sandbox"
)

// errUnreadable means that git cannot read one object.
var errUnreadable = errors.New("object cannot be read")

const (
	// pipeBuffer is the buffer for reading from git, in bytes.
	pipeBuffer = 256 << 10
	// maxRestarts bounds how often git may die of damaged objects before the repository
	// counts as damaged.
	maxRestarts = 32
)

// blobs reads the contents of a listing's documents, in order, from one long-lived git
// cat-file. Object names are written ahead, so that git never waits for input. It is
// for one goroutine.
type blobs struct {
	repo *Repository
	// todo is the index of the next entry in the listing.
	todo     int
	process  *sandbox.Process // nil while git does not run
	ctx      context.Context
	cancel   context.CancelFunc
	out      *bufio.Reader
	said     *lineWriter
	content  []byte
	restarts int
}

// next returns the content of the next entry that is not skipped, valid until the next
// call. After errUnreadable the following entries can still be read.
func (b *blobs) next() ([]byte, error) {
	entries := b.repo.listing.entries
	for entries[b.todo].skip != docstore.NotSkipped {
		b.todo++
	}
	e := &entries[b.todo]
	if b.process == nil {
		if err := b.start(); err != nil {
			return nil, err
		}
	}
	content, err := b.read(e)
	b.todo++
	if err == nil || errors.Is(err, errUnreadable) {
		return content, err
	}
	return nil, b.died(err)
}

// died handles git's death in the middle of an object. The object is unreadable, and
// the next call starts git again after it.
func (b *blobs) died(err error) error {
	said := b.said
	b.close()
	if b.restarts++; b.restarts > maxRestarts {
		return failure(Damaged, err, withDetail("many of the repository's objects cannot be read", sanitize(said.text())))
	}
	return fmt.Errorf("%w: %w", errUnreadable, err)
}

// start runs git cat-file for the entries from todo on.
func (b *blobs) start() error {
	ctx, cancel := context.WithCancel(b.ctx)
	cmd := gitCommand(ctx, b.repo.env, "--git-dir="+b.repo.gitDir, "cat-file", "--batch", "--buffer")
	cmd.Stdin = &wanted{listing: b.repo.listing, next: b.todo}
	said := &lineWriter{}
	cmd.Stderr = said
	out, err := cmd.StdoutPipe()
	var process *sandbox.Process
	if err == nil {
		process, err = b.repo.box().Start(cmd)
	}
	if err != nil {
		cancel()
		return startFailure(err)
	}
	b.process, b.cancel, b.said = process, cancel, said
	b.out.Reset(out)
	return nil
}

// read takes one object from the stream: "OID SP TYPE SP SIZE LF CONTENT LF",
// or "OID SP missing LF".
func (b *blobs) read(e *entry) ([]byte, error) {
	line, err := b.out.ReadSlice('\n')
	if err != nil {
		return nil, fmt.Errorf("reading an object's header: %w", err)
	}
	fields := bytes.Fields(line)
	if len(fields) == 2 {
		return nil, errUnreadable
	}
	if len(fields) != 3 {
		return nil, fmt.Errorf("unexpected header %q", line)
	}
	size, err := strconv.ParseInt(string(fields[2]), 10, 64)
	if err != nil || size != e.size {
		return nil, fmt.Errorf("unexpected header %q", line)
	}
	if string(fields[1]) != "blob" { // the tree names something else as a file
		if _, err := io.CopyN(io.Discard, b.out, size+1); err != nil {
			return nil, fmt.Errorf("passing over an object: %w", err)
		}
		return nil, errUnreadable
	}
	b.content = slices.Grow(b.content[:0], int(size)+1)[:size+1]
	if _, err := io.ReadFull(b.out, b.content); err != nil {
		return nil, fmt.Errorf("reading an object: %w", err)
	}
	return b.content[:size], nil
}

// close kills git and waits for its end.
func (b *blobs) close() {
	if b.process == nil {
		return
	}
	b.cancel()
	_ = b.process.Wait(b.ctx) // it was killed, or has ended
	b.process = nil
}

// wanted is the input of git cat-file: the names of the objects to read.
type wanted struct {
	listing *listing
	next    int
	buf     []byte
}

// Read implements io.Reader.
func (n *wanted) Read(p []byte) (int, error) {
	for len(n.buf) < len(p) && n.next < len(n.listing.entries) {
		if e := &n.listing.entries[n.next]; e.skip == docstore.NotSkipped {
			n.buf = fmt.Appendf(n.buf, "%x\n", e.oid[:n.listing.oidLen])
		}
		n.next++
	}
	if len(n.buf) == 0 {
		return 0, io.EOF
	}
	c := copy(p, n.buf)
	n.buf = n.buf[:copy(n.buf, n.buf[c:])]
	return c, nil
}
