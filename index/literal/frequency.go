package literal

import "unicode/utf8"

// frequencies has how often the bytes of ASCII occur in source code, in parts
// per 10,000, counted over the source tree of Go 1.26.
var frequencies = [utf8.RuneSelf]uint16{
	'\t': 407, '\n': 316, ' ': 1503, '!': 12, '"': 89, '#': 2, '$': 5, '%': 9, '&': 11, '\'': 7, '(': 117, ')': 117, '*': 20, '+': 12, ',': 247, '-': 19,
	'.': 123, '/': 123, '0': 343, '1': 136, '2': 105, '3': 73, '4': 77, '5': 45, '6': 70, '7': 38, '8': 59, '9': 40, ':': 103, ';': 10, '<': 10, '=': 85,
	'>': 7, '?': 1, 'A': 68, 'B': 34, 'C': 54, 'D': 47, 'E': 67, 'F': 37, 'G': 19, 'H': 17, 'I': 54, 'J': 2, 'K': 9, 'L': 39, 'M': 42, 'N': 36, 'O': 54,
	'P': 48, 'Q': 8, 'R': 66, 'S': 78, 'T': 70, 'U': 22, 'V': 37, 'W': 12, 'X': 40, 'Y': 12, 'Z': 5, '[': 25, '\\': 54, ']': 25, '^': 1, '_': 76, '`': 5,
	'a': 291, 'b': 78, 'c': 176, 'd': 151, 'e': 485, 'f': 164, 'g': 95, 'h': 85, 'i': 276, 'j': 6, 'k': 39, 'l': 179, 'm': 102, 'n': 312, 'o': 245,
	'p': 124, 'q': 7, 'r': 329, 's': 258, 't': 398, 'u': 150, 'v': 62, 'w': 36, 'x': 222, 'y': 65, 'z': 9, '{': 66, '|': 8, '}': 66,
}

// Frequency returns about how many in 10,000 bytes of source code are b.
func Frequency(b byte) int {
	if b >= utf8.RuneSelf {
		return 0
	}
	return int(frequencies[b])
}
