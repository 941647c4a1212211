package build

import (
	"bytes"
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// Text returns the text of a content, which is what is indexed and shown: without its byte order mark, and if that says UTF-16, in
// UTF-8. It shares memory with content unless that is UTF-16; then it has up to one and a half times as many bytes.
func Text(content []byte) []byte {
	switch {
	case bytes.HasPrefix(content, []byte("\xef\xbb\xbf")):
		return content[3:]
	case bytes.HasPrefix(content, []byte("\xff\xfe")):
		return decodeUTF16(content[2:], binary.LittleEndian)
	case bytes.HasPrefix(content, []byte("\xfe\xff")):
		return decodeUTF16(content[2:], binary.BigEndian)
	}
	return content
}

// decodeUTF16 turns UTF-16 into UTF-8. Invalid text becomes U+FFFD.
func decodeUTF16(content []byte, order binary.ByteOrder) []byte {
	text := make([]byte, 0, len(content))
	for len(content) >= 2 {
		r := rune(order.Uint16(content))
		content = content[2:]
		if utf16.IsSurrogate(r) {
			if len(content) < 2 {
				return utf8.AppendRune(text, utf8.RuneError) // for half a rune and half of another
			}
			r2 := rune(order.Uint16(content))
			if r = utf16.DecodeRune(r, r2); r != utf8.RuneError {
				content = content[2:]
			}
		}
		text = utf8.AppendRune(text, r)
	}
	if len(content) > 0 {
		text = utf8.AppendRune(text, utf8.RuneError)
	}
	return text
}
