package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// luceneProgram is the program for Lucene, relative to the root of the repository.
var luceneProgram = filepath.Join("bench", "lucene", "Words.java")

// luceneJars are the jars of Debian's liblucene8-java.
const luceneJars = "/usr/share/java/lucene-core-8.7.0.jar:/usr/share/java/lucene-analyzers-common-8.7.0.jar"

// askLucene indexes the documents and asks each query in each way. It returns nil if Lucene or a JDK is missing.
func askLucene(ctx context.Context, dir string, documents, queries []string, repeat int) (wordTimes, error) {
	javac, err := exec.LookPath("javac")
	if _, missing := os.Stat(strings.Split(luceneJars, ":")[0]); err != nil || missing != nil {
		return nil, nil // it takes no part
	}
	paths, queriesFile, classes := filepath.Join(dir, "documents"), filepath.Join(dir, "queries"), filepath.Join(dir, "classes")
	for name, lines := range map[string][]string{paths: documents, queriesFile: queries} {
		if err := os.WriteFile(name, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
			return nil, fmt.Errorf("writing what Lucene reads: %w", err)
		}
	}
	if out, err := exec.CommandContext(ctx, javac, "-cp", luceneJars, "-d", classes, luceneProgram).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling %s: %w: %s", luceneProgram, err, out)
	}
	args := []string{"-XX:+UseSerialGC", "-cp", luceneJars + ":" + classes, "Words", filepath.Join(dir, "index"), paths, queriesFile, strconv.Itoa(repeat)}
	for _, way := range ways() {
		args = append(args, strconv.FormatBool(way.any), strconv.Itoa(way.best))
	}
	cmd := exec.CommandContext(ctx, "java", args...)
	var says bytes.Buffer
	cmd.Stderr = &says
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("running Lucene: %w: %s", err, says.Bytes())
	}
	times := wordTimes{}
	for line := range strings.Lines(string(out)) {
		var way asked
		var nanoseconds int64
		if _, err := fmt.Sscan(line, &way.any, &way.best, &nanoseconds); err != nil {
			return nil, fmt.Errorf("reading what Lucene printed: %q: %w", line, err)
		}
		times[way] = append(times[way], time.Duration(nanoseconds))
	}
	return times, nil
}
