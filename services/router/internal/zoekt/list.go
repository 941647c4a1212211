package zoekt

import (
	"context"
	"net/http"
	"time"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

type listReply struct {
	List repoList `json:"List"`
}

// repoList holds Repos or ReposMap, as requested. The other is null.
type repoList struct {
	Repos    []repoEntry            `json:"Repos"`
	ReposMap map[uint32]mappedEntry `json:"ReposMap"`
	Crashes  int                    `json:"Crashes"`
	Stats    repoStats              `json:"Stats"`
	Trawl    account                `json:"Trawl"`
}

type repoEntry struct {
	Repository    repository    `json:"Repository"`
	IndexMetadata indexMetadata `json:"IndexMetadata"`
	Stats         repoStats     `json:"Stats"`
}

// repository has all of zoekt's fields, since some programs require them. Fields without
// a value in Trawl are always zero.
type repository struct {
	TenantID             int               `json:"TenantID"`
	ID                   uint32            `json:"ID"`
	Name                 string            `json:"Name"`
	URL                  string            `json:"URL"`
	Metadata             map[string]string `json:"Metadata"`
	Source               string            `json:"Source"`
	Branches             []branchEntry     `json:"Branches"`
	SubRepoMap           map[string]string `json:"SubRepoMap"`
	CommitURLTemplate    string            `json:"CommitURLTemplate"`
	FileURLTemplate      string            `json:"FileURLTemplate"`
	LineFragmentTemplate string            `json:"LineFragmentTemplate"`
	RawConfig            map[string]string `json:"RawConfig"`
	Rank                 uint16            `json:"Rank"`
	IndexOptions         string            `json:"IndexOptions"`
	HasSymbols           bool              `json:"HasSymbols"`
	Tombstone            bool              `json:"Tombstone"`
	LatestCommitDate     time.Time         `json:"LatestCommitDate"`
}

type branchEntry struct {
	Name    string `json:"Name"`
	Version string `json:"Version"`
}

// indexMetadata has the time when the served generation was published. Its other fields
// describe zoekt's files.
type indexMetadata struct {
	IndexFormatVersion    int               `json:"IndexFormatVersion"`
	IndexFeatureVersion   int               `json:"IndexFeatureVersion"`
	IndexMinReaderVersion int               `json:"IndexMinReaderVersion"`
	IndexTime             time.Time         `json:"IndexTime"`
	PlainASCII            bool              `json:"PlainASCII"`
	LanguageMap           map[string]uint16 `json:"LanguageMap"`
	ZoektVersion          string            `json:"ZoektVersion"`
	ID                    string            `json:"ID"`
}

type mappedEntry struct {
	HasSymbols    bool          `json:"HasSymbols"`
	Branches      []branchEntry `json:"Branches"`
	IndexTimeUnix int64         `json:"IndexTimeUnix"`
}

type repoStats struct {
	Repos                      int    `json:"Repos"`
	Shards                     int    `json:"Shards"`
	Documents                  int    `json:"Documents"`
	IndexBytes                 int64  `json:"IndexBytes"`
	ContentBytes               int64  `json:"ContentBytes"`
	NewLinesCount              uint64 `json:"NewLinesCount"`
	DefaultBranchNewLinesCount uint64 `json:"DefaultBranchNewLinesCount"`
	OtherBranchesNewLinesCount uint64 `json:"OtherBranchesNewLinesCount"`
}

// list answers /api/list.
func (h *Handler) list(ctx context.Context, to links, req *listRequest) (*listReply, error) {
	field := req.Opts.Field
	if field != listRepos && field != listReposMap {
		return nil, refused(http.StatusBadRequest, "Opts.Field: unknown form %d: want %d (Repos) or %d (ReposMap)", field, listRepos, listReposMap)
	}
	if err := checkQuery(req.Q); err != nil {
		return nil, err
	}
	ctx, cancel := h.limits.within(ctx, defaultWallTime)
	defer cancel()
	found, err := h.limits.list(ctx, h.open(nil), question{text: req.Q, links: to}, field)
	if err != nil {
		return nil, err
	}
	return &listReply{List: *found}, nil
}

// list finds repos, and describes them within the limits.
func (l Limits) list(ctx context.Context, answers Answers, q question, field listField) (*repoList, error) {
	found := &repoList{}
	if field == listRepos {
		found.Repos = []repoEntry{}
	} else {
		found.ReposMap = make(map[uint32]mappedEntry)
	}
	room := &room{left: int64(l.Bytes) - listFrame}
	coverage, err := answers.EachRepo(ctx, &searchv1.ListRequest{Query: q.text, Tree: q.tree}, func(entries []*searchv1.RepoEntry) error {
		for _, e := range entries {
			found.add(field, e, room, q.links)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	found.Crashes = int(coverage.GetFailed())
	own := found.Trawl
	found.Trawl = newAccount(coverage)
	found.Trawl.ReposLeftOut, found.Trawl.SharedIDs, found.Trawl.WithoutID = own.ReposLeftOut, own.SharedIDs, own.WithoutID
	return found, nil
}

// add counts a repo, and adds it to the list if there is room.
func (l *repoList) add(field listField, e *searchv1.RepoEntry, room *room, to links) {
	stats := statsOf(e)
	l.Stats.Repos++
	l.Stats.Shards += stats.Shards
	l.Stats.Documents += stats.Documents
	l.Stats.IndexBytes += stats.IndexBytes
	l.Stats.ContentBytes += stats.ContentBytes
	var linked repoLinks // a map has none
	if field == listRepos {
		linked = to.of(e.Name)
	}
	if !room.takeRepo(e, linked) {
		l.Trawl.ReposLeftOut++
		return
	}
	if field == listRepos {
		l.Repos = append(l.Repos, repoEntry{
			Repository: repository{
				ID: e.Id, Name: e.Name, URL: e.Url, Branches: branches(e),
				CommitURLTemplate: linked.commit, FileURLTemplate: linked.file, LineFragmentTemplate: linked.line,
			},
			IndexMetadata: indexMetadata{IndexTime: published(e)}, Stats: stats,
		})
		return
	}
	if e.Id == 0 {
		l.Trawl.WithoutID++
		return
	}
	if _, taken := l.ReposMap[e.Id]; taken {
		l.Trawl.SharedIDs = append(l.Trawl.SharedIDs, e.Name)
		return
	}
	l.ReposMap[e.Id] = mappedEntry{Branches: branches(e), IndexTimeUnix: e.GetPublishedAt().GetSeconds()}
}

func branches(e *searchv1.RepoEntry) []branchEntry {
	list := make([]branchEntry, len(e.Branches))
	for i, b := range e.Branches {
		list[i] = branchEntry{Name: b.Name, Version: b.Commit}
	}
	return list
}

// published is the time of publication, zero if unknown.
func published(e *searchv1.RepoEntry) (at time.Time) {
	if e.PublishedAt != nil {
		at = e.PublishedAt.AsTime()
	}
	return at
}

func statsOf(e *searchv1.RepoEntry) repoStats {
	return repoStats{
		Shards: int(e.Shards), Documents: int(e.Documents),
		IndexBytes: int64(e.IndexBytes), ContentBytes: int64(e.ContentBytes),
	}
}
