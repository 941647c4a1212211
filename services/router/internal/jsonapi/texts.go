package jsonapi

import (
	"strings"

	"google.golang.org/protobuf/proto"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// addTexts adds to paths and contents, which are base64 in JSON, what they are as text, and says so in the errors of several files.
func addTexts(m proto.Message) {
	switch m := m.(type) {
	case interface {
		GetFiles() []*searchv1.FileMatch
		GetFacets() []*searchv1.FacetCounts
	}:
		addTextsOfFiles(m.GetFiles())
		for _, f := range m.GetFacets() {
			for _, v := range f.Values {
				v.DirectoryText = text(v.Directory)
			}
		}
	case interface {
		GetRepos() []*searchv1.RepoMatches
	}:
		for _, r := range m.GetRepos() {
			addTextsOfFiles(r.Files)
		}
	case interface{ GetRepos() []*searchv1.RepoEntry }:
		for _, r := range m.GetRepos() {
			for _, f := range r.SkippedFiles {
				f.PathText = text(f.Path)
			}
		}
	case *searchv1.GetFileResponse:
		m.Text = text(m.Content)
	case *searchv1.GetFilesResponse:
		for _, answer := range m.Files {
			if f := answer.GetFile(); f != nil {
				f.Text = text(f.Content)
			}
			if e := answer.GetError(); e.GetNotFound().GetField() == "path" {
				e.Message += pathsInBodies
			}
		}
	case *searchv1.ListTreeResponse:
		for _, e := range m.Entries {
			e.PathText = text(e.Path)
		}
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

// text is bytes as text, with U+FFFD in place of what is not UTF-8.
func text(b []byte) string { return strings.ToValidUTF8(string(b), "\ufffd") }
