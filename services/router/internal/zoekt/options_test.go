package zoekt

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/protobuf/types/known/timestamppb"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// TestEveryOption sets one option after the other on the same three files.
func TestEveryOption(t *testing.T) {
	three := func() *fake {
		f := found(file("r", "a", "x\ny\nz\n"), file("r", "b", "x\n"), file("s", "c", "x\n"))
		f.files = map[string]string{"a": "x\ny\nz\n", "b": "x\n", "c": "x\n"}
		return f
	}
	for opts, want := range map[string]string{
		`{}`:                            "a:3 b:1 c:1",
		`{"MaxDocDisplayCount":2}`:      "a:3 b:1",
		`{"MaxDocDisplayCount":-1}`:     "a:3 b:1 c:1",
		`{"MaxMatchDisplayCount":2}`:    "a:2",
		`{"MaxMatchDisplayCount":4}`:    "a:3 b:1",
		`{"TotalMaxMatchCount":3}`:      "a:3 skipped 2",
		`{"TotalMaxMatchCount":4}`:      "a:3 b:1 skipped 1",
		`{"TotalMaxMatchCount":-1}`:     "a:3 b:1 c:1",
		`{"ShardRepoMaxMatchCount":1}`:  "a:3 c:1 skipped 1",
		`{"ShardMaxMatchCount":-1}`:     "a:3 b:1 c:1",
		`{"ShardMaxMatchCount":1}`:      "a:3 b:1 c:1",
		`{"FlushWallTime":1}`:           "a:3 b:1 c:1 ignored [FlushWallTime]",
		`{"UseBM25Scoring":true}`:       "a:3 b:1 c:1 ignored [UseBM25Scoring]",
		`{"Trace":true}`:                "a:3 b:1 c:1 ignored [Trace]",
		`{"SpanContext":{"a":"b"}}`:     "a:3 b:1 c:1 ignored [SpanContext]",
		`{"NumContextLines":500}`:       "a:3 b:1 c:1 clamped [NumContextLines]",
		`{"MaxDocDisplayCount":100000}`: "a:3 b:1 c:1 clamped [MaxDocDisplayCount]",
	} {
		for _, chunks := range []string{"false", "true"} {
			got := three().result(t, `{"Q":"x","Opts":{"ChunkMatches":`+chunks+strings.Replace(","+opts[1:], ",}", "}", 1)+`}`)
			if told := tell(got); told != want {
				t.Errorf("%s %s: %s, want %s", chunks, opts, told, want)
			}
		}
	}
}

// TestCountsAreExactUnlessOnlyFilesAreLimited: as in zoekt, a search stops early only if its
// request limits the files shown but not the matches.
func TestCountsAreExactUnlessOnlyFilesAreLimited(t *testing.T) {
	const exact, best = searchv1.Mode_MODE_EXHAUSTIVE, searchv1.Mode_MODE_TOP_K
	for opts, want := range map[string]searchv1.Mode{
		`{}`:                          exact,
		`{"MaxDocDisplayCount":50}`:   best,
		`{"MaxDocDisplayCount":-1}`:   exact,
		`{"MaxMatchDisplayCount":50}`: exact,
		`{"TotalMaxMatchCount":50}`:   exact,
		`{"ShardMaxMatchCount":50}`:   exact,
		`{"MaxDocDisplayCount":50,"TotalMaxMatchCount":50}`:     best,
		`{"MaxDocDisplayCount":50,"ShardMaxMatchCount":1}`:      exact,
		`{"MaxDocDisplayCount":50,"ShardMaxMatchCount":-1}`:     exact,
		`{"MaxDocDisplayCount":50,"ShardRepoMaxMatchCount":50}`: exact,
	} {
		f := found(file("r", "a", "x\n"))
		for _, counted := range []bool{true, false} {
			f.search.Statistics = &searchv1.Statistics{CountsExact: counted}
			got := f.result(t, `{"Q":"x","Opts":`+opts+`}`)
			if told := got["Trawl"].(map[string]any)["CountsAtLeast"] == true; told == counted {
				t.Errorf("%s: counts are exact: %v; the answer calls them lower bounds: %v", opts, counted, told)
			}
		}
		if asked := f.searched[0].Options.Mode; asked != want {
			t.Errorf("%s asks for %v, want %v", opts, asked, want)
		}
		if asked := f.searched[0].Options.MaxMatchesPerFile; asked > 100 && want == best {
			t.Errorf("%s asks for %d matches of a file", opts, asked)
		}
	}
}

// tell writes a result as "name:matches …", with the skipped files and the ignored and clamped
// options.
func tell(result map[string]any) string {
	var out []string
	for _, f := range result["Files"].([]any) {
		m := f.(map[string]any)
		n := 0
		for _, l := range list(m["LineMatches"]) {
			n += len(list(l.(map[string]any)["LineFragments"]))
		}
		for _, c := range list(m["ChunkMatches"]) {
			n += len(list(c.(map[string]any)["Ranges"]))
		}
		out = append(out, fmt.Sprintf("%s:%d", m["FileName"], n))
	}
	if n := result["FilesSkipped"].(float64); n > 0 {
		out = append(out, fmt.Sprint("skipped ", n))
	}
	account := result["Trawl"].(map[string]any)
	for _, key := range []string{"Ignored", "Clamped"} {
		if v := account[key]; v != nil {
			out = append(out, strings.ToLower(key), fmt.Sprint(v))
		}
	}
	return strings.Join(out, " ")
}

func list(v any) []any { l, _ := v.([]any); return l }

// TestAskedWithinLimits: nothing is asked that searchers would refuse.
func TestAskedWithinLimits(t *testing.T) {
	f := found()
	f.result(t, `{"Q":"x","Opts":{"NumContextLines":500,"MaxDocDisplayCount":1000000,"MaxMatchDisplayCount":1000000}}`)
	f.result(t, `{"Q":"x","Opts":{"NumContextLines":-5,"MaxDocDisplayCount":-5,"MaxMatchDisplayCount":-5}}`)
	most, none := f.searched[0].Options, f.searched[1].Options
	if most.ContextLines != 20 || most.MaxFiles != testLimits.Files || most.MaxMatchesPerFile != 100_000 || most.MaxBytes != testLimits.Bytes {
		t.Errorf("asked for %v", most)
	}
	if none.ContextLines != 1 || none.MaxFiles != testLimits.Files || none.MaxMatchesPerFile != 100_000 {
		t.Errorf("without limits asked for %v", none)
	}
}

func TestDebugScoreAndEstimate(t *testing.T) {
	f := found(file("r", "a", "x\n"))
	f.list = &searchv1.ListResponse{Repos: []*searchv1.RepoEntry{{Name: "r", Documents: 3}, {Name: "s", Documents: 4}}}
	f.result(t, `{"Q":"x","Opts":{"DebugScore":true}}`)
	if !f.searched[0].Options.Explain {
		t.Error("asked without an explanation")
	}
	if got := f.result(t, `{"Q":"x","Opts":{"EstimateDocCount":true}}`); got["ShardFilesConsidered"] != 7.0 || names(got) != "" {
		t.Errorf("estimate %v", got)
	}
}

func TestWhole(t *testing.T) {
	f := found(file("r", "a", "x\n"), file("r", "b", "x\n"), file("r", "c", "x\n"))
	f.search.Files[1].Blob = []byte("another generation's")
	f.search.Files[2].SkipReason = searchv1.SkipReason_SKIP_REASON_BINARY
	f.files = map[string]string{"a": "all of a", "b": "all of b"}
	got := f.result(t, `{"Q":"x","Opts":{"Whole":true}}`)
	if content := got["Files"].([]any)[0].(map[string]any)["Content"]; content != base64.StdEncoding.EncodeToString([]byte("all of a")) {
		t.Errorf("content %v", content)
	}
	// The second gets what the first has left, so that a request holds no more than its limit.
	if len(f.fetched) != 2 || f.fetched[0]-f.fetched[1] != uint64(base64Size(len("all of a"))) {
		t.Errorf("files were fetched with the limits %v", f.fetched)
	}
	if missing := got["Trawl"].(map[string]any)["ContentsMissing"]; missing != 1.0 {
		t.Errorf("%v contents are missing", missing)
	}
	f.files["a"] = strings.Repeat("x", int(testLimits.Bytes)+1)
	if got = f.result(t, `{"Q":"x","Opts":{"Whole":true}}`); got["Trawl"].(map[string]any)["ContentsMissing"] != 2.0 {
		t.Errorf("beyond the limit: %v", got["Trawl"])
	}
	if got = f.result(t, `{"Q":"x"}`); got["Files"].([]any)[0].(map[string]any)["Content"] != nil {
		t.Errorf("content that nobody asked for")
	}
}

// TestCutAnswersSaySo: an answer reports that the server's limit of files or of bytes cut it.
func TestCutAnswersSaySo(t *testing.T) {
	f := found(file("r", "a", "x\n"))
	f.search.NextPageToken = []byte("more")
	if got := f.result(t, `{"Q":"x"}`); tell(got) != "a:1 clamped [MaxDocDisplayCount]" || got["FlushReason"] != 4.0 {
		t.Errorf("unlimited: %s, %v", tell(got), got["FlushReason"])
	}
	if got := f.result(t, `{"Q":"x","Opts":{"MaxDocDisplayCount":1}}`); tell(got) != "a:1" || got["FlushReason"] != 0.0 {
		t.Errorf("as asked: %s, %v", tell(got), got["FlushReason"])
	}
	f = found(file("r", "a", "x\n"))
	f.search.Files[0].Chunks = nil
	if got := f.result(t, `{"Q":"x"}`); tell(got) != "a:0 clamped [MaxMatchDisplayCount]" || got["FlushReason"] != 4.0 {
		t.Errorf("too many bytes: %s, %v", tell(got), got["FlushReason"])
	}
	for opts, key := range map[string]string{`{}`: "LineMatches", `{"ChunkMatches":true}`: "ChunkMatches"} {
		got := f.result(t, `{"Q":"x","Opts":`+opts+`}`)["Files"].([]any)[0].(map[string]any)
		if l, ok := got[key].([]any); !ok || len(l) != 0 || got["LineMatches"] != nil && got["ChunkMatches"] != nil {
			t.Errorf("%s: %v", opts, got)
		}
	}
}

func TestNamesThatAreNotText(t *testing.T) {
	f := found(&searchv1.FileMatch{Repo: "r", Path: []byte("a\xff\xfeb")}, &searchv1.FileMatch{Repo: "r", Path: []byte("é")})
	for _, chunks := range []string{"false", "true"} {
		files := f.result(t, `{"Q":"x","Opts":{"ChunkMatches":`+chunks+`}}`)["Files"].([]any)
		raw := base64.StdEncoding.EncodeToString([]byte("a\xff\xfeb"))
		odd, plain := files[0].(map[string]any), files[1].(map[string]any)
		if odd["FileName"] != "a\ufffd\ufffdb" || odd["TrawlPath"] != raw || plain["TrawlPath"] != nil {
			t.Errorf("%v, %v", odd, plain)
		}
		if text := fmt.Sprint(odd); !strings.Contains(text, raw) || !strings.Contains(text, "FileName:true") {
			t.Errorf("the name is not shown: %s", text)
		}
	}
}

func TestRepoIDs(t *testing.T) {
	f := found(file("r", "a", "x\n"))
	got := f.result(t, fmt.Sprintf(`{"Q":"x","RepoIDs":[%d,0,5]}`, testID("r")))
	if f.keep == nil || !f.keep("r", testID("r")) || f.keep("s", testID("s")) || f.keep("without", 0) {
		t.Error("keeps other repos")
	}
	if id := got["Files"].([]any)[0].(map[string]any)["RepositoryID"]; id != float64(testID("r")) {
		t.Errorf("id %v", id)
	}
	f.search.Files[0].Repo = "without"
	if id, has := f.result(t, `{"Q":"x"}`)["Files"].([]any)[0].(map[string]any)["RepositoryID"]; has {
		t.Errorf("a repo without an id has %v", id)
	}
	f.result(t, `{"Q":"x","RepoIDs":[]}`)
	if f.keep == nil || f.keep("r", testID("r")) {
		t.Error("an empty list allows a repo")
	}
	if f.result(t, `{"Q":"x","RepoIDs":null}`); f.keep != nil {
		t.Error("no list keeps not all")
	}
}

func TestList(t *testing.T) {
	f := &fake{list: &searchv1.ListResponse{Coverage: &searchv1.Coverage{Complete: true, Requested: 2, Searched: 2}, Repos: []*searchv1.RepoEntry{
		{
			Name: "r", Id: testID("r"), Url: "https://r", Branches: []*searchv1.BranchEntry{{Name: "main", Commit: "c0"}}, Documents: 3, ContentBytes: 40,
			IndexBytes: 50, Shards: 2, PublishedAt: &timestamppb.Timestamp{Seconds: 1000},
		},
		{Name: "s", Documents: 1, ContentBytes: 2, IndexBytes: 3, Shards: 1},
	}}}
	ask := func(body string) map[string]any {
		code, answer := post(t, f.handler().List(), body)
		if code != http.StatusOK {
			t.Fatalf("%s: %d, %v", body, code, answer)
		}
		return answer["List"].(map[string]any)
	}
	for _, body := range []string{`{}`, `{"Q":"","Opts":null}`, `{"q":"r:x","opts":{"field":0,"Minimal":true}}`} {
		got := ask(body)
		first := got["Repos"].([]any)[0].(map[string]any)
		text, err := json.Marshal(first["Repository"])
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf(`{"Branches":[{"Name":"main","Version":"c0"}],"CommitURLTemplate":"http://example.com/r/r@{{.Version}}",`+
			`"FileURLTemplate":"http://example.com/r/r@{{.Version}}/-/{{.Path}}","HasSymbols":false,`+
			`"ID":%d,"IndexOptions":"","LatestCommitDate":"0001-01-01T00:00:00Z","LineFragmentTemplate":"#L{{.LineNumber}}","Metadata":null,"Name":"r","Rank":0,`+
			`"RawConfig":null,"Source":"","SubRepoMap":null,"TenantID":0,"Tombstone":false,"URL":"https://r"}`, testID("r"))
		if string(text) != want || got["ReposMap"] != nil {
			t.Errorf("%s: %s, want %s", body, text, want)
		}
		if at := first["IndexMetadata"].(map[string]any)["IndexTime"]; at != "1970-01-01T00:16:40Z" {
			t.Errorf("published at %v", at)
		}
		if s := got["Stats"].(map[string]any); s["Repos"] != 2.0 || s["Documents"] != 4.0 || s["ContentBytes"] != 42.0 || s["IndexBytes"] != 53.0 || s["Shards"] != 3.0 {
			t.Errorf("stats %v", s)
		}
	}
	got := ask(`{"Q":"r:x","Opts":{"Field":2}}`)
	entry := got["ReposMap"].(map[string]any)[fmt.Sprint(testID("r"))]
	if got["Repos"] != nil || fmt.Sprint(entry) != "map[Branches:[map[Name:main Version:c0]] HasSymbols:false IndexTimeUnix:1000]" {
		t.Errorf("map %v", got)
	}
	f.list.Repos = append(f.list.Repos, f.list.Repos[0])
	got = ask(`{"Opts":{"Field":2}}`)
	if account := got["Trawl"].(map[string]any); fmt.Sprint(account["SharedIDs"]) != "[r]" || account["WithoutID"] != 1.0 || len(got["ReposMap"].(map[string]any)) != 1 {
		t.Errorf("a shared id, and a repo without one: %v", got)
	}
	if code, _ := post(t, f.handler().List(), `{"Opts":{"Field":1}}`); code != http.StatusBadRequest {
		t.Errorf("a form that is gone: %d", code)
	}
}
