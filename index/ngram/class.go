package ngram

const (
	letters    = 26
	firstDigit = letters
	firstPunct = firstDigit + 10
	classMask  = 1<<classBits - 1
)

// punctuation lists the bytes of each class after the digits. In Go's own source
// tree, a byte with a class of its own is at least 0.06 % of all bytes, and
// bytes that share a class rarely occur next to the same text. Control
// characters share the tab's class.
var punctuation = [1<<classBits - firstPunct]string{
	" ", "\n", "\t", ",", ".", "/", "(", ")", ":", "\"", "=", "_", "{", "}",
	"\\", "[", "]", "*", "-", "&", "+", "<", ">", ";",
	"'`", "#@^~", "%$|", "!?",
}

const tabClass = firstPunct + 2

// asciiClass has the class of each ASCII byte, and 0 for other bytes.
var asciiClass = func() (table [256]uint8) {
	for c := range 128 {
		table[c] = tabClass
	}
	for i := range uint8(letters) {
		table['A'+i], table['a'+i] = i, i
	}
	for i := range uint8(10) {
		table['0'+i] = firstDigit + i
	}
	for class, members := range punctuation {
		for _, c := range []byte(members) {
			table[c] = uint8(firstPunct + class)
		}
	}
	return table
}()
