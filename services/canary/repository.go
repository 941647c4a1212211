package canary

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// repositoryPath is where a canary serves its repository. It ends the repo's name, so it says what the repo is.
const repositoryPath = "/trawl/canary.git"

// needlePath is the file that each push changes.
const needlePath = "needle.txt"

const about = "This repo measures how soon a push can be searched. `trawl canary` replaces it every few seconds, and deletes it now and then.\n"

// commit is a Git repository of one branch with one commit. It serves clients by the smart HTTP protocol, version 0,
// which every git speaks: the dumb one cannot fetch a commit without its history.
type commit struct {
	word, id string // the word that only this commit holds; the id is hexadecimal
	pack     []byte // all objects
}

func newCommit(at time.Time) *commit {
	c := &commit{word: "canary" + strings.ToLower(rand.Text())}
	pack := bytes.NewBufferString("PACK\x00\x00\x00\x02\x00\x00\x00\x03") // version 2, three objects
	blob := add(pack, 3, "blob", about+c.word+"\n")
	tree := add(pack, 2, "tree", "100644 "+needlePath+"\x00"+blob)
	who := fmt.Sprintf("Trawl canary <canary@trawl.invalid> %d +0000", at.Unix())
	id := add(pack, 1, "commit", fmt.Sprintf("tree %x\nauthor %s\ncommitter %s\n\nA push of the canary\n", tree, who, who))
	sum := sha1.Sum(pack.Bytes())
	c.id, c.pack = fmt.Sprintf("%x", id), append(pack.Bytes(), sum[:]...)
	return c
}

// add appends an object to a pack and returns its id, as bytes. Writes to a buffer never fail.
func add(pack *bytes.Buffer, kind uint64, name, content string) string {
	// The size is a varint whose first byte has four bits of it, below the kind.
	size := uint64(len(content))
	pack.Write(binary.AppendUvarint(nil, size>>4<<7|kind<<4|size&15))
	z := zlib.NewWriter(pack)
	_, _ = io.WriteString(z, content)
	_ = z.Close()
	id := sha1.Sum(fmt.Appendf(nil, "%s %d\x00%s", name, len(content), content))
	return string(id[:])
}

// line is a pkt-line.
func line(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	return fmt.Sprintf("%04x%s", len(text)+4, text)
}

const flush = "0000"

// ServeHTTP answers GET …/info/refs with the branch, and POST …/git-upload-pack with the pack. The commit has no parent
// and is sent whole, whatever the client has and however much history it wants. So the request needs no parsing: what
// matters is which lines it has.
func (c *commit) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	if req.Method == http.MethodGet {
		w.Header().Set("Content-Type", "application/x-git-upload-pack-advertisement")
		fmt.Fprint(w, line("# service=git-upload-pack\n"), flush,
			line("%s HEAD\x00shallow symref=HEAD:refs/heads/main agent=trawl-canary\n", c.id), line("%s refs/heads/main\n", c.id), flush)
		return
	}
	body, err := io.ReadAll(req.Body) // the server bounds it
	if err != nil {
		http.Error(w, "reading the request failed", http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "application/x-git-upload-pack-result")
	has := func(text string) bool { return bytes.Contains(body, []byte(text)) }
	if !has("want " + c.id) {
		fmt.Fprint(w, line("ERR this is not the newest commit: fetch again"))
		return
	}
	if has("deepen ") {
		fmt.Fprint(w, flush) // no commit lacks its parents
	}
	done := has(line("done\n"))
	if done || has("have ") {
		fmt.Fprint(w, line("NAK\n"))
	}
	if done {
		_, _ = w.Write(c.pack) // a client that left needs no answer
	}
}
