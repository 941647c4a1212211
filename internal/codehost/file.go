package codehost

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/trawl-search/trawl/internal/lazyregexp"
	ingestv1 "github.com/trawl-search/trawl/proto/trawl/ingest/v1"
)

// MaxFileBytes bounds a file of sources, in bytes.
const MaxFileBytes = 4 << 20

// The structure of the file.
type (
	file struct {
		Sources []entry `yaml:"sources"`
	}
	entry struct {
		Name          string         `yaml:"name"`
		Kind          string         `yaml:"kind"`
		URL           string         `yaml:"url"`
		Owner         string         `yaml:"owner"`
		CloneHosts    []string       `yaml:"clone_hosts"`
		User          bool           `yaml:"user"`
		Include       []string       `yaml:"include"`
		Exclude       []string       `yaml:"exclude"`
		Archived      bool           `yaml:"archived"`
		Forks         bool           `yaml:"forks"`
		Branches      []string       `yaml:"branches"`
		Overrides     []override     `yaml:"overrides"`
		Ranks         []rankRule     `yaml:"ranks"`
		HostIDs       bool           `yaml:"host_ids"`
		Links         *links         `yaml:"links"`
		Token         *reference     `yaml:"token"`
		Username      string         `yaml:"username"`
		WebhookSecret *reference     `yaml:"webhook_secret"`
		Every         *time.Duration `yaml:"every"`
		Grace         *time.Duration `yaml:"grace"`
	}
	override struct {
		Match    string   `yaml:"match"`
		Branches []string `yaml:"branches"`
	}
	rankRule struct {
		Match string `yaml:"match"`
		Rank  uint32 `yaml:"rank"`
	}
	links struct {
		File    string `yaml:"file"`
		Blame   string `yaml:"blame"`
		History string `yaml:"history"`
	}
	reference struct {
		Env  string `yaml:"env"`
		File string `yaml:"file"`
	}
)

// ParseSources reads a file of sources. It refuses unknown keys and invalid sources, and
// names their lines. Only an explicit empty list means that there are no sources.
func ParseSources(text []byte) ([]*ingestv1.Source, error) {
	if len(text) > MaxFileBytes {
		return nil, fmt.Errorf("%d bytes, at most %d", len(text), MaxFileBytes)
	}
	var f file
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(&f); err != nil && !errors.Is(err, io.EOF) {
		return nil, plain(err)
	}
	if err := dec.Decode(new(file)); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is more than one document in the file")
	}
	if f.Sources == nil { // a file that was cut off, or not written yet, must not remove all
		return nil, errors.New("the file lists no sources: if there shall be none, write sources: []")
	}
	return f.check(lines(text))
}

// check converts and checks the entries, which start at these lines.
func (f file) check(lines []int) ([]*ingestv1.Source, error) {
	if len(lines) != len(f.Sources) {
		return nil, errors.New("the sources are not a plain list")
	}
	list := make([]*ingestv1.Source, 0, len(f.Sources))
	first := map[string]int{}
	for i, e := range f.Sources {
		s := e.source()
		if err := CheckSource(s); err != nil {
			return nil, fmt.Errorf("line %d: source %q: %w", lines[i], s.GetName(), err)
		}
		if at, twice := first[s.GetName()]; twice {
			return nil, fmt.Errorf("line %d: source %q is there already, at line %d", lines[i], s.GetName(), at)
		}
		first[s.GetName()] = lines[i]
		list = append(list, s)
	}
	if len(list) > MaxSources {
		return nil, fmt.Errorf("%d sources, at most %d", len(list), MaxSources)
	}
	return list, nil
}

// goType matches the names of Go types in the decoder's messages.
var goType = lazyregexp.New(` (in type|into) [^\s]+`)

// plain rewrites the decoder's errors for people. It quotes no values, since one may be
// a misplaced secret.
func plain(err error) error {
	typed, ok := errors.AsType[*yaml.TypeError](err)
	if !ok {
		return err
	}
	var lines []string
	for _, e := range typed.Errors {
		e = quoted().ReplaceAllString(goType().ReplaceAllString(e, ""), "a value")
		lines = append(lines, strings.ReplaceAll(e, "not found", "is not known"))
	}
	return errors.New(strings.Join(lines, "; "))
}

var quoted = lazyregexp.New("`[^`]*`")

// lines returns the lines at which the sources start.
func lines(text []byte) (at []int) {
	var root yaml.Node
	if yaml.Unmarshal(text, &root) != nil || len(root.Content) == 0 {
		return nil
	}
	top := root.Content[0].Content
	for k := 0; k+1 < len(top); k += 2 {
		if top[k].Value != "sources" {
			continue
		}
		for _, entry := range top[k+1].Content {
			at = append(at, entry.Line)
		}
	}
	return at
}

func (e entry) source() *ingestv1.Source {
	s := &ingestv1.Source{
		Name: e.Name, Kind: e.Kind, Url: e.URL, Owner: e.Owner, User: e.User, Include: e.Include, Exclude: e.Exclude,
		Archived: e.Archived, Forks: e.Forks, Branches: e.Branches, Username: e.Username, CloneHosts: e.CloneHosts,
		Token: e.Token.proto(), WebhookSecret: e.WebhookSecret.proto(), HostIds: e.HostIDs,
	}
	for _, o := range e.Overrides {
		s.Overrides = append(s.Overrides, &ingestv1.BranchRule{Match: o.Match, Branches: o.Branches})
	}
	for _, r := range e.Ranks {
		s.Ranks = append(s.Ranks, &ingestv1.RankRule{Match: r.Match, Rank: r.Rank})
	}
	if e.Links != nil {
		s.Links = &ingestv1.Links{File: e.Links.File, Blame: e.Links.Blame, History: e.Links.History}
	}
	if e.Every != nil {
		s.Every = durationpb.New(*e.Every)
	}
	if e.Grace != nil {
		s.Grace = durationpb.New(*e.Grace)
	}
	return s
}

func (r *reference) proto() *ingestv1.SecretRef {
	if r == nil {
		return nil
	}
	return &ingestv1.SecretRef{Env: r.Env, File: r.File}
}
