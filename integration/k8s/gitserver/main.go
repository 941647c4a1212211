// Command gitserver serves empty Git repositories, named by its arguments, that anybody
// may push to and fetch from: http://HOST:8080/NAME.git.
package main

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/cgi" //nolint:gosec // the warning is of Go before 1.6.3
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const root = "/srv/git"

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context, names []string) error {
	for _, name := range names {
		dir := filepath.Join(root, name+".git")
		for _, args := range [][]string{{"init", "--quiet", "--bare", "--initial-branch=main", dir}, {"-C", dir, "config", "http.receivepack", "true"}} {
			if out, err := exec.CommandContext(ctx, "git", args...).CombinedOutput(); err != nil {
				return fmt.Errorf("git %s: %w: %s", strings.Join(args, " "), err, out)
			}
		}
	}
	backend := &cgi.Handler{
		Path: "/usr/lib/git-core/git-http-backend",
		Env:  []string{"GIT_PROJECT_ROOT=" + root, "GIT_HTTP_EXPORT_ALL=1", "REMOTE_USER=test"},
	}
	server := &http.Server{Addr: ":8080", Handler: backend, ReadHeaderTimeout: 10 * time.Second}
	return server.ListenAndServe()
}
