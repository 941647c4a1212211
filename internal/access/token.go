package access

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base32"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

const (
	tokenPrefix = "trawl_"
	idBytes     = 8
	// secretBytes is large enough that a secret cannot be guessed.
	secretBytes = 32
	// maxTokenText bounds the bytes of a token's text.
	maxTokenText = 256
	// maxTokenName bounds Spec.Name in bytes.
	maxTokenName = 256
)

// letters has no characters that are easily mistaken for each other or need quoting.
var letters = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

// Errors of looking a token up. They never hold any of its text.
var (
	// ErrMalformed means that a text is no token.
	ErrMalformed = errors.New("it does not have the form of a token, trawl_ID_SECRET")
	// ErrUnknown means that the token does not exist, or was revoked.
	ErrUnknown = errors.New("it is not known: never made, or revoked")
	// ErrExpired means that the lifetime of the token is over.
	ErrExpired = errors.New("it has expired")
)

// Text is a token as its caller shows it. Formatting and marshalling give "[redacted]":
// only a conversion to string shows the token. It implements
// credentials.PerRPCCredentials for connections that are encrypted or end on this
// machine.
type Text string

const redacted = "[redacted]"

// Format implements fmt.Formatter.
func (Text) Format(f fmt.State, _ rune) { fmt.Fprint(f, redacted) }

// String implements fmt.Stringer.
func (Text) String() string { return redacted }

// MarshalText implements encoding.TextMarshaler.
func (Text) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// maxTokenFile bounds a file with a token, in bytes.
const maxTokenFile = 4 << 10

// ReadText reads a token from a file. Space around it does not count. A file that holds anything else is ErrMalformed.
func ReadText(path string) (Text, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	defer f.Close()
	content, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", fmt.Errorf("reading the token: %w", err)
	}
	text := Text(strings.TrimSpace(string(content)))
	if _, _, err := text.split(); err != nil {
		return "", fmt.Errorf("reading the token: %s holds none: %w", path, err)
	}
	return text, nil
}

// split returns a token's id and the digest of its secret.
func (t Text) split() (id string, digest [sha256.Size]byte, err error) {
	if len(t) > maxTokenText {
		return "", digest, ErrMalformed
	}
	rest, ok := strings.CutPrefix(string(t), tokenPrefix)
	id, secret, both := strings.Cut(rest, "_")
	if !ok || !both || len(id) != letters.EncodedLen(idBytes) || len(secret) != letters.EncodedLen(secretBytes) {
		return "", digest, ErrMalformed
	}
	return id, sha256.Sum256([]byte(secret)), nil
}

// Spec describes a new token.
type Spec struct {
	// Name says whose token it is, for people.
	Name string
	// Allow and Deny are patterns of repos: * stands for anything but a slash, **
	// for anything. A repo that any of Deny matches is denied.
	Allow, Deny []string
	// Scopes are what its caller may do; at least one is needed.
	Scopes []Scope
	// Lifetime is how long the token is valid; 0: for ever.
	Lifetime time.Duration
}

// Check returns an error for people if the spec is invalid.
func (s Spec) Check() error {
	if len(s.Name) > maxTokenName {
		return fmt.Errorf("a name of %d bytes, at most %d", len(s.Name), maxTokenName)
	}
	if s.Lifetime < 0 {
		return fmt.Errorf("a lifetime of %v: it has passed already", s.Lifetime)
	}
	if len(s.Scopes) == 0 {
		return errors.New("no scope: want at least one of search, ingest and admin")
	}
	for _, scope := range s.Scopes {
		if !slices.Contains([]Scope{ScopeSearch, ScopeIngest, ScopeAdmin}, scope) {
			return fmt.Errorf("unknown scope %q: want search, ingest or admin", scope)
		}
	}
	return patterns{s.Allow, s.Deny}.check()
}

// mint makes a token's text, and its id and digest.
func mint() (text Text, id string, digest [sha256.Size]byte) {
	// crypto/rand never fails: it ends the process where there is no randomness.
	var raw [idBytes + secretBytes]byte
	_, _ = rand.Read(raw[:])
	id = letters.EncodeToString(raw[:idBytes])
	secret := letters.EncodeToString(raw[idBytes:])
	return Text(tokenPrefix + id + "_" + secret), id, sha256.Sum256([]byte(secret))
}

// token is a stored token, parsed. It is a Principal.
type token struct {
	record     *catalogv1.Token
	sees       patterns
	visibility string
}

func newToken(record *catalogv1.Token) *token {
	t := &token{record: record, sees: patterns{record.Allow, record.Deny}}
	if !t.sees.all() {
		h := sha256.New()
		fmt.Fprintf(h, "%q %q", record.Allow, record.Deny)
		t.visibility = string(h.Sum(nil))
	}
	return t
}

// prove compares a secret with that of the token, in constant time.
func (t *token) prove(digest [sha256.Size]byte, now time.Time) error {
	if subtle.ConstantTimeCompare(digest[:], t.record.SecretSha256) != 1 {
		return ErrUnknown
	}
	if end := t.record.ExpiresAt; end != nil && !now.Before(end.AsTime()) {
		return fmt.Errorf("%w at %s", ErrExpired, end.AsTime().Format(time.RFC3339))
	}
	return nil
}

// ID implements Principal.
func (t *token) ID() string { return t.record.Id }

// Name implements Principal.
func (t *token) Name() string { return fmt.Sprintf("token %s (%s)", t.record.Id, t.record.Name) }

// May implements Principal.
func (t *token) May(scope Scope) bool {
	return slices.Contains(t.record.Scopes, string(scope)) || slices.Contains(t.record.Scopes, string(ScopeAdmin))
}

// Sees implements Principal.
func (t *token) Sees(repo string) bool { return t.sees.match(repo) }

// VisibilityKey implements Principal.
func (t *token) VisibilityKey() string { return t.visibility }
