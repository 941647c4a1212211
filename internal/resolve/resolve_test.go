package resolve_test

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/trawl-search/trawl/index/indextest"
	"github.com/trawl-search/trawl/index/symbols"
	"github.com/trawl-search/trawl/internal/resolve"
	"github.com/trawl-search/trawl/internal/searchapi"
)

// tree is an index of a few files, which the oracle searches.
type tree struct {
	t      *testing.T
	corpus *indextest.Corpus
	oracle *indextest.Oracle
}

// Definitions implements resolve.Index.
func (x *tree) Definitions(_ context.Context, name, within string, _ int) (found []resolve.Definition, err error) {
	q, _, err := searchapi.ParseAnswer(searchapi.DefinitionsOf(name, within), 2)
	if err != nil {
		x.t.Errorf("definitions of %s within %s: %v", name, within, err)
		return nil, err
	}
	results, err := x.oracle.Eval(q)
	if err != nil {
		return nil, err
	}
	for _, r := range results {
		repo, d := x.document(r.Repo, r.Path)
		all := symbols.For(d.Language).Append(nil, d.Content)
		for _, in := range r.Content {
			for _, s := range all {
				if int(s.Start) != in.Start {
					continue
				}
				begin := bytes.LastIndexByte(d.Content[:s.Start], '\n') + 1
				found = append(found, resolve.Definition{
					Repo: repo, Path: d.Path, Language: d.Language, Kind: s.Kind, Scope: string(d.Content[s.Scope.Start:s.Scope.End]),
					Text: d.Content[begin:], At: int(s.Start) - begin, Number: uint32(1 + bytes.Count(d.Content[:s.Start], []byte("\n"))),
				})
			}
		}
	}
	return found, nil
}

func (x *tree) document(repo, path string) (string, *indextest.Document) {
	for i := range x.corpus.Repos {
		for j := range x.corpus.Repos[i].Documents {
			if d := &x.corpus.Repos[i].Documents[j]; x.corpus.Repos[i].Name == repo && d.Path == path {
				return repo, d
			}
		}
	}
	x.t.Fatalf("no file %s in %s", path, repo)
	return "", nil
}

var languages = map[string]string{"go": "Go", "py": "Python", "ts": "TypeScript", "js": "JavaScript", "java": "Java", "rs": "Rust", "c": "C", "h": "C", "cc": "C++", "rb": "Ruby", "php": "PHP", "txt": "Text", "kt": "Kotlin"}

// newTree reads files whose names begin with that of their repo, up to a colon. The place is a name between ‹ and ›. The line with the right
// definition has the word HERE, or none has.
func newTree(t *testing.T, text string) (x *tree, place resolve.Place, want string) {
	t.Helper()
	x = &tree{t: t, corpus: &indextest.Corpus{Name: "resolve"}}
	repos := map[string]int{}
	for part := range strings.SplitSeq(text, "\n-- ") {
		name, data, ok := strings.Cut(part, " --\n")
		if !ok {
			continue
		}
		repo, path, ok := strings.Cut(name, ":")
		if !ok {
			repo, path = "example.com/a/b", name
		}
		if _, ok := repos[repo]; !ok {
			repos[repo] = len(x.corpus.Repos)
			x.corpus.Repos = append(x.corpus.Repos, indextest.Repo{Name: repo, Branches: []string{"main"}})
		}
		language := languages[path[strings.LastIndexByte(path, '.')+1:]]
		before, rest, here := strings.Cut(data+"\n", "‹")
		name, after, _ := strings.Cut(rest, "›")
		if here {
			place = resolve.Place{Repo: repo, Path: path, Language: language, Text: []byte(before + name + after), Name: name, Offset: len(before)}
		}
		content := []byte(before + name + after)
		if above, _, ok := bytes.Cut(content, []byte("HERE")); ok {
			want = fmt.Sprintf("%s:%s:%d", repo, path, 1+bytes.Count(above, []byte("\n")))
		}
		r := &x.corpus.Repos[repos[repo]]
		r.Documents = append(r.Documents, indextest.Document{Path: path, Content: content, Branches: []string{"main"}, Language: language})
	}
	x.oracle = indextest.NewOracle(x.corpus)
	return x, place, want
}

func TestTheDefinitionThatIsMeantComesFirst(t *testing.T) {
	for name, text := range places {
		t.Run(name, func(t *testing.T) {
			x, place, want := newTree(t, text)
			found, likely, err := resolve.Resolve(t.Context(), x, place, 10)
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, d := range found {
				got = append(got, fmt.Sprintf("%s:%s:%d", d.Repo, d.Path, d.Number))
			}
			if len(got) == 0 || got[0] != want {
				t.Fatalf("%s at %s:%s: got %v, want first %s", place.Name, place.Repo, place.Path, got, want)
			}
			if !likely && !strings.HasPrefix(name, "unsure") {
				t.Errorf("the first of %v is not said to be likely", got)
			}
		})
	}
}

// nowhere is an index that knows one definition of every name.
type nowhere struct{}

func (nowhere) Definitions(_ context.Context, name, _ string, _ int) ([]resolve.Definition, error) {
	text := "func " + name + "("
	return []resolve.Definition{{Repo: "r", Path: "a.go", Language: "Go", Kind: symbols.Function, Text: []byte(text), At: 5, Number: 1}}, nil
}

// FuzzResolve: any text gets an answer, whatever the language and the place.
func FuzzResolve(f *testing.F) {
	for _, text := range places {
		before, rest, _ := strings.Cut(text, "‹")
		name, after, _ := strings.Cut(rest, "›")
		f.Add([]byte(before+name+after), name, uint32(1+strings.Count(before, "\n")), uint8(len(before)))
	}
	names := slices.Sorted(maps.Values(languages))
	f.Fuzz(func(t *testing.T, text []byte, name string, line uint32, language uint8) {
		at := resolve.Find(text, name, line, 0)
		if at >= 0 && (at+len(name) > len(text) || string(text[at:at+len(name)]) != name) {
			t.Fatalf("%q is not at %d", name, at)
		}
		place := resolve.Place{Repo: "r", Path: "a.go", Language: names[int(language)%len(names)], Text: text, Name: name, Offset: at}
		if found, _, err := resolve.Resolve(t.Context(), nowhere{}, place, 3); err != nil || len(found) == 0 {
			t.Fatalf("%d definitions, %v", len(found), err)
		}
	})
}

func TestFind(t *testing.T) {
	const text = "ab abc\nabc ab_ ab\n\nab"
	for _, tt := range []struct {
		line, column uint32
		want         int
	}{{1, 0, 0}, {1, 1, 0}, {1, 4, 0}, {2, 0, 15}, {2, 10, 15}, {3, 0, -1}, {4, 2, 19}, {5, 0, -1}, {0, 0, 0}} {
		if got := resolve.Find([]byte(text), "ab", tt.line, tt.column); got != tt.want {
			t.Errorf("line %d, column %d: %d, want %d", tt.line, tt.column, got, tt.want)
		}
	}
}
