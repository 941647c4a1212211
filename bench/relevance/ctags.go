package relevance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/trawl-search/trawl/bench/peer"
)

// definingKinds are the kinds of universal-ctags whose names a file defines, by language and by ctags' letters: all that ctags
// reports by default, struct fields and the methods of interfaces among them, with these exceptions:
//
//   - Imports and includes (Go P and u, C and C++ h, Python I, i and x) name what another file defines. So may aliases of TypeScript
//     (a): ctags reports "import { type Name }" as one.
//   - Packages, namespaces and modules (Go p, Java p, C++ n, TypeScript n, Rust n) name a container, which many files open.
//   - Embedded members of Go (M) and impl blocks of Rust (c) repeat the name of a type.
//
// Prototypes, local variables and parameters are no definitions by default.
var definingKinds = map[string]string{
	"C": "degmfstuv", "C++": "cdegmfstuv", "Go": "acfimnstv", "Java": "acefgim", "JavaScript": "CGMScfgmpv", "PHP": "cdfit", "Python": "cfmv",
	"Ruby": "cfS", "Rust": "MPefgimstv", "TypeScript": "CGcefgimpv",
}

// ctagsTime is how long ctags may take for one repo.
const ctagsTime = 10 * time.Minute

// errNoCtags is the error where ctags is missing.
var errNoCtags = errors.New("universal-ctags is not installed, or not on the PATH: apt-get install universal-ctags, or name the program in CTAGS_COMMAND")

// tag is a definition of a name in a line of a file, from 1.
type tag struct {
	name string
	file *file
	line int
}

// defining returns, by name, those files that define the name according to universal-ctags, each once and in the order of files. The
// files are those of one repo, which lies in dir.
func defining(ctx context.Context, dir string, files []*file) (map[string][]*file, error) {
	tags, err := tagsOf(ctx, dir, files)
	found := map[string][]*file{}
	for _, t := range tags {
		if in := found[t.name]; len(in) == 0 || in[len(in)-1] != t.file {
			found[t.name] = append(in, t.file)
		}
	}
	return found, err
}

// tagsOf returns the definitions in the files of a repo, which lies in dir, according to universal-ctags.
func tagsOf(ctx context.Context, dir string, files []*file) ([]tag, error) {
	program, ok := peer.Ctags()
	if !ok {
		return nil, errNoCtags
	}
	ctx, cancel := context.WithTimeout(ctx, ctagsTime)
	defer cancel()
	args := []string{"--options=NONE", "--quiet", "--sort=no", "--output-format=json", "--fields=NFn", "-L", "-", "-f", "-"}
	names := slices.Sorted(maps.Keys(definingKinds))
	args = append(args, "--languages="+strings.Join(names, ","))
	for _, language := range names {
		args = append(args, "--kinds-"+language+"="+definingKinds[language])
	}
	cmd := exec.CommandContext(ctx, program, args...)
	cmd.Dir = dir
	byPath := make(map[string]*file, len(files))
	var paths strings.Builder
	for _, f := range files {
		byPath[f.path] = f
		fmt.Fprintln(&paths, f.path)
	}
	cmd.Stdin = strings.NewReader(paths.String())
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running %s in %s: %w: %.300s", program, dir, err, said.Bytes())
	}
	return readTags(out, byPath)
}

// readTags reads the tags that ctags writes: a line of JSON each, those of a file after each other.
func readTags(out []byte, byPath map[string]*file) (tags []tag, err error) {
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, len(out)+1)
	for lines.Scan() {
		var read struct {
			Name, Path string
			Line       int
		}
		if err := json.Unmarshal(lines.Bytes(), &read); err != nil {
			return nil, fmt.Errorf("reading a tag of ctags: %w: %.100q", err, lines.Bytes())
		}
		f := byPath[read.Path]
		if f == nil {
			return nil, fmt.Errorf("%w: %.100q", errStrayTag, lines.Bytes())
		}
		tags = append(tags, tag{read.Name, f, read.Line})
	}
	return tags, lines.Err() //nolint:wrapcheck // of memory, and the lines fit
}

// errStrayTag is the error where ctags names a file that it was not given.
var errStrayTag = errors.New("ctags reports a tag of another file")
