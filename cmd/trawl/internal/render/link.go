package render

import (
	"strings"

	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// Link gives the address of a line of a file, or with line 0 that of the file. A nil Link makes no hyperlinks.
type Link func(f *searchv1.FileMatch, line uint32) string

// Hyperlink makes text, which is safe to print, a hyperlink for terminals: the control sequence OSC 8. The address is in printable ASCII.
func Hyperlink(address, text string) string {
	return "\x1b]8;;" + address + "\x1b\\" + text + "\x1b]8;;\x1b\\"
}

// linked prints what text prints, as a hyperlink if there is a Link.
func (l Link) linked(b *strings.Builder, f *searchv1.FileMatch, line uint32, text func(*strings.Builder)) {
	if l == nil {
		text(b)
		return
	}
	var printed strings.Builder
	text(&printed)
	b.WriteString(Hyperlink(l(f, line), printed.String()))
}
