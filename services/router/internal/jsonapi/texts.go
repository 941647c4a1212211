package jsonapi

import (
	"strings"

	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// addTexts adds to paths and contents, which are base64 in JSON, what they are as text.
func addTexts(m proto.Message) {
	switch m := m.(type) {
	case *searchv1.SearchResponse:
		addTextsOfFiles(m.Files)
		addTextsOfFacets(m.Facets)
	case *searchv1.StreamSearchResponse:
		addTextsOfFiles(m.Files)
		addTextsOfFacets(m.Facets)
	case *searchv1.DefinitionsResponse:
		addTextsOfRepos(m.Repos)
	case *searchv1.ReferencesResponse:
		addTextsOfRepos(m.Repos)
	case *searchv1.GetFileResponse:
		m.Text = text(m.Content)
	case *searchv1.GetFilesResponse:
		for _, answer := range m.Files {
			if f := answer.GetFile(); f != nil {
				f.Text = text(f.Content)
			}
		}
	case *searchv1.ListTreeResponse:
		for _, e := range m.Entries {
			e.PathText = text(e.Path)
		}
	case *searchv1.ListResponse:
		addTextsOfEntries(m.Repos)
	case *searchv1.StreamListResponse:
		addTextsOfEntries(m.Repos)
	}
}

func addTextsOfFiles(files []*searchv1.FileMatch) {
	for _, f := range files {
		f.PathText = text(f.Path)
		for _, c := range f.Chunks {
			c.Text = text(c.Content)
		}
	}
}

func addTextsOfFacets(facets []*searchv1.FacetCounts) {
	for _, f := range facets {
		for _, v := range f.Values {
			v.DirectoryText = text(v.Directory)
		}
	}
}

func addTextsOfRepos(repos []*searchv1.RepoMatches) {
	for _, r := range repos {
		addTextsOfFiles(r.Files)
	}
}

func addTextsOfEntries(repos []*searchv1.RepoEntry) {
	for _, r := range repos {
		for _, f := range r.SkippedFiles {
			f.PathText = text(f.Path)
		}
	}
}

// text is bytes as text, with U+FFFD in place of what is not UTF-8.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }
