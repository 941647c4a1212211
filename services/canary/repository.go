package canary

import (
	"bytes"
	"compress/zlib"
	"crypto/rand"
	"crypto/sha1"
	"fmt"
	"io"
	"strings"
	"time"
)

const (
	// repositoryPath is where a canary serves its repository. It ends the repo's name, so it says what the repo is.
	repositoryPath = "/trawl/canary.git"
	// needlePath is the file that each push changes. It holds one random word alone, which nobody else looks for.
	needlePath = "trawl-canary.txt"
)

// commit is a Git repository of one branch with one commit, as files by path, which every git fetches over plain HTTP.
type commit struct {
	word  string // only this commit holds it
	files map[string][]byte
}

func newCommit() *commit {
	c := &commit{"canary" + strings.ToLower(rand.Text()), map[string][]byte{"HEAD": []byte("ref: refs/heads/main\n")}}
	blob := c.add("blob", c.word+"\n")
	tree := c.add("tree", "100644 "+needlePath+"\x00"+string(blob[:]))
	who := fmt.Sprintf("Trawl canary <canary@trawl.invalid> %d +0000", time.Now().Unix())
	id := c.add("commit", fmt.Sprintf("tree %x\nauthor %s\ncommitter %s\n\nA push of the canary\n", tree, who, who))
	c.files["info/refs"] = fmt.Appendf(nil, "%x\trefs/heads/main\n", id)
	return c
}

// add adds a loose object and returns its id. Writes to a buffer never fail.
func (c *commit) add(kind, content string) (id [sha1.Size]byte) {
	object, packed := fmt.Sprintf("%s %d\x00%s", kind, len(content), content), &bytes.Buffer{}
	z := zlib.NewWriter(packed)
	_, _ = io.WriteString(z, object)
	_ = z.Close()
	id = sha1.Sum([]byte(object))
	c.files[fmt.Sprintf("objects/%x/%x", id[:1], id[1:])] = packed.Bytes()
	return id
}
