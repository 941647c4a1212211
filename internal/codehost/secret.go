package codehost

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/trawl-search/trawl/internal/config"
	"github.com/trawl-search/trawl/internal/lazyregexp"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// SecretPrefix is the prefix of the environment variables that a source may name. A
// source that could name others could send them to a host of its choice.
const SecretPrefix = "TRAWL_SECRET_"

// maxSecret bounds a secret's file, in bytes.
const maxSecret = 64 << 10

var (
	variable = lazyregexp.New(`^` + SecretPrefix + `[A-Z0-9_]+$`)
	fileName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)
)

func checkSecrets(s *ingestv1.Source) error {
	for key, ref := range map[string]*ingestv1.SecretRef{"token": s.GetToken(), "webhook_secret": s.GetWebhookSecret()} {
		if ref == nil {
			continue
		}
		if err := checkSecret(ref); err != nil {
			return fmt.Errorf("%s: %w", key, err)
		}
	}
	if s.GetUsername() != "" && s.GetToken() == nil {
		return errors.New("username: it has no effect without a token")
	}
	return nil
}

// checkSecret checks a reference. Its errors do not quote the reference, which may be
// a misplaced secret.
func checkSecret(ref *ingestv1.SecretRef) error {
	switch {
	case (ref.GetEnv() == "") == (ref.GetFile() == ""):
		return errors.New("want one of env and file")
	case ref.GetEnv() != "" && !variable().MatchString(ref.GetEnv()):
		return fmt.Errorf("env: want %s followed by capitals, digits and underscores", SecretPrefix)
	case ref.GetFile() != "" && !fileName().MatchString(ref.GetFile()):
		return errors.New("file: want the name of a file in the folder for credentials, without a slash")
	}
	return nil
}

// Secrets resolves references to secrets, anew at each call. The zero value resolves
// environment variables only.
type Secrets struct {
	// Folder holds the files of secrets; "" if there are none.
	Folder string
	// Env looks up an environment variable; nil means os.LookupEnv.
	Env func(string) (string, bool)
}

// Get returns a secret, "" for no reference. Errors hold no part of it.
func (s Secrets) Get(ref *ingestv1.SecretRef) (config.Secret, error) {
	if ref == nil {
		return "", nil
	}
	if err := checkSecret(ref); err != nil {
		return "", err
	}
	if ref.GetFile() != "" {
		return s.read(ref.GetFile())
	}
	look := s.Env
	if look == nil {
		look = os.LookupEnv
	}
	text, ok := look(ref.GetEnv())
	if !ok || text == "" {
		return "", fmt.Errorf("the environment variable %s is not set", ref.GetEnv())
	}
	return config.Secret(text), nil
}

func (s Secrets) read(file string) (config.Secret, error) {
	if s.Folder == "" {
		return "", fmt.Errorf("the credential %s: there is no folder for credentials", file)
	}
	text, err := config.ReadFile(filepath.Join(s.Folder, file), maxSecret)
	if err != nil {
		return "", fmt.Errorf("read a credential: %w", err)
	}
	secret := strings.TrimSpace(string(text))
	if secret == "" {
		return "", fmt.Errorf("the credential %s is empty", file)
	}
	return config.Secret(secret), nil
}
