package web

import (
	"bytes"
	"context"
	"html/template"
	"net/url"
	"path"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	mdtext "github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/trawl-search/trawl/internal/lazyregexp"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// readme is the file that says what is in a folder.
type readme struct {
	Name template.HTML
	URL  string
	Text template.HTML
	// Plain: the text is not HTML, but lines.
	Plain bool
	// Cut: the file goes on.
	Cut bool
}

var (
	isReadme   = lazyregexp.New(`^(?i:readme(\.(md|markdown|txt|rst|adoc|org))?)$`)
	isMarkdown = lazyregexp.New(`\.(?i:md|markdown)$`)
)

// Bounds of a README in bytes: what is read of it, and what it takes as HTML. Hostile Markdown takes time with the square of its length:
// that of this length up to a quarter of a second (BenchmarkReadme).
const (
	readmeBytes = 16 << 10
	readmeHTML  = 256 << 10
)

// says is a README as a page shows it; nil if there is none or it cannot be read.
func (l located) says(ctx context.Context, answers Answers, name string) *readme {
	if name == "" {
		return nil
	}
	resp, err := answers.GetFile(ctx, &searchv1.GetFileRequest{Repo: l.repo, Path: []byte(name), Branch: l.branch, MaxBytes: readmeBytes})
	if err != nil || len(resp.GetContent()) == 0 {
		return nil
	}
	r := &readme{Name: code([]byte(cutFront(name, nameBytes)), nil, nil), URL: l.at(name).address(), Cut: uint64(len(resp.GetContent())) < resp.GetSizeBytes()}
	content := resp.GetContent()
	if r.Cut {
		content = content[:bytes.LastIndexByte(content, '\n')+1]
	}
	if isMarkdown().MatchString(name) {
		r.Text = l.markdown(content, folder(name))
	}
	if r.Plain = r.Text == ""; r.Plain {
		for line := range bytes.Lines(content) {
			r.Text += code(trimEnd(line), nil, nil) + "\n"
		}
	}
	return r
}

// maxCells bounds the cells of tables: each row has as many as the head, so two bytes can make thousands.
const maxCells = 20_000

// cells is an upper bound of the cells that tables in a text have.
func cells(source []byte) int {
	lines, most := 0, 0
	for line := range bytes.Lines(source) {
		lines, most = lines+1, max(most, bytes.Count(line, []byte("|"))+1)
	}
	return lines * most
}

// markdown is a Markdown text in a folder as HTML; empty if that is too large. Tags in the text are left out.
func (l located) markdown(source []byte, dir string) template.HTML {
	if cells(source) > maxCells {
		return ""
	}
	tables := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)) // the page's policy forbids styles
	md := goldmark.New(
		goldmark.WithExtensions(tables, extension.Strikethrough, extension.Linkify, extension.TaskList),
		goldmark.WithParserOptions(parser.WithASTTransformers(util.Prioritized(ownLinks{l, dir}, lastTransformer))),
	)
	var html bytes.Buffer
	if err := md.Convert(source, &html); err != nil || html.Len() > readmeHTML {
		return ""
	}
	lines := strings.Split(html.String(), "\n")
	for i, line := range lines {
		lines[i] = plain(line)
	}
	return template.HTML(strings.Join(lines, "\n")) //nolint:gosec // goldmark escapes the text, and leaves out its tags
}

// lastTransformer puts a transformer behind goldmark's own.
const lastTransformer = 1000

// ownLinks makes the links of a text in a folder lead to pages of the same revision. Images are links, as a page loads nothing from elsewhere.
type ownLinks struct {
	at  located
	dir string
}

// Transform implements parser.ASTTransformer.
func (o ownLinks) Transform(doc *ast.Document, source mdtext.Reader, _ parser.Context) {
	var links []ast.Node
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) { // returns what the function does
		if kind := n.Kind(); entering && (kind == ast.KindLink || kind == ast.KindImage || kind == ast.KindAutoLink) {
			links = append(links, n)
		}
		return ast.WalkContinue, nil
	})
	for _, n := range links {
		var to, title []byte
		switch n := n.(type) {
		case *ast.Link:
			to, title = n.Destination, n.Title
		case *ast.Image:
			to, title = n.Destination, n.Title
			if n.FirstChild() == nil {
				n.AppendChild(n, ast.NewString([]byte(path.Base(string(to)))))
			}
		case *ast.AutoLink:
			if to = n.URL(source.Source()); n.AutoLinkType == ast.AutoLinkEmail {
				to = append([]byte("mailto:"), to...)
			}
			n.AppendChild(n, ast.NewString(n.Label(source.Source())))
		}
		parent := n.Parent()
		if address := o.address(string(to)); address != "" && !inLink(parent) {
			link := ast.NewLink()
			link.Destination, link.Title = []byte(address), title
			link.SetAttributeString("rel", []byte("noreferrer noopener nofollow"))
			parent.InsertBefore(parent, n, link)
			moveChildren(n, func(child ast.Node) { link.AppendChild(link, child) })
		} else {
			moveChildren(n, func(child ast.Node) { parent.InsertBefore(parent, n, child) })
		}
		parent.RemoveChild(parent, n)
	}
}

// moveChildren takes the children of a node elsewhere.
func moveChildren(n ast.Node, to func(ast.Node)) {
	for child := n.FirstChild(); child != nil; child = n.FirstChild() {
		n.RemoveChild(n, child)
		to(child)
	}
}

// inLink reports whether a node is a link or within one.
func inLink(n ast.Node) bool {
	for ; n != nil; n = n.Parent() {
		if n.Kind() == ast.KindLink {
			return true
		}
	}
	return false
}

// address is where a link leads; empty for nowhere, and for one that is too long.
func (o ownLinks) address(to string) string {
	u, err := url.Parse(to)
	switch {
	case err != nil || len(to) > maxURL:
		return ""
	case u.Scheme == "http" || u.Scheme == "https" || u.Scheme == "mailto":
		return to
	case u.Scheme != "" || u.Host != "" || u.Path == "":
		return ""
	}
	below := path.Clean("/" + u.Path)
	if !strings.HasPrefix(u.Path, "/") {
		below = path.Clean("/" + o.dir + u.Path)
	}
	below = strings.TrimPrefix(below, "/")
	if strings.HasSuffix(u.Path, "/") && below != "" {
		below += "/"
	}
	address := o.at.at(below).address()
	if u.Fragment != "" {
		address += "#" + u.EscapedFragment()
	}
	return address
}
