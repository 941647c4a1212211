package gitsource

import (
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"

	"github.com/trawl-search/trawl/internal/gitsource/origin"
)

// askpassScript answers git's two prompts for one host from files. It answers no other
// prompt: after a redirect git asks again with the name of the other host. The secrets
// are in no command line, environment or configuration.
const askpassScript = `#!/bin/sh
case "$1" in
"Username for 'https://$TRAWL_ASKPASS_HOST': ")
	if [ -r "$TRAWL_ASKPASS_DIR/username" ]; then exec cat "$TRAWL_ASKPASS_DIR/username"; fi
	echo git ;;
"Password for 'https://"*"@$TRAWL_ASKPASS_HOST': ")
	exec cat "$TRAWL_ASKPASS_DIR/password" ;;
*)
	exit 1 ;;
esac
`

// httpsCredentials returns the environment through which git gets the credentials of a
// host, and the secrets to redact from its output. Credentials are sent over https only.
func (f *Fetcher) httpsCredentials(r origin.Remote) (env, secrets []string) {
	env = []string{"GIT_ASKPASS=" + f.askpass, "TRAWL_ASKPASS_HOST=none"}
	if f.cfg.Credentials == "" || r.Scheme != "https" {
		return env, nil
	}
	host := r.HostPort(r.Host)
	dir := filepath.Join(f.cfg.Credentials, host)
	password, err := os.ReadFile(filepath.Join(dir, "password"))
	if err != nil {
		return env, nil // no credentials for this host: git reports what is missing
	}
	user, err := os.ReadFile(filepath.Join(dir, "username"))
	if err != nil {
		user = []byte("git")
	}
	u, p := firstLine(user), firstLine(password)
	env = []string{"GIT_ASKPASS=" + f.askpass, "TRAWL_ASKPASS_HOST=" + host, "TRAWL_ASKPASS_DIR=" + dir}
	return env, []string{p, base64.StdEncoding.EncodeToString([]byte(u + ":" + p))}
}

func firstLine(b []byte) string {
	line, _, _ := strings.Cut(string(b), "\n")
	return strings.TrimSuffix(line, "\r")
}

// redact replaces secrets in a text.
func redact(text string, secrets []string) string {
	for _, s := range secrets {
		if s != "" {
			text = strings.ReplaceAll(text, s, "[redacted]")
		}
	}
	return text
}
