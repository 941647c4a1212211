package ngram

const (
	letters    = 26
	firstDigit = letters
	firstPunct = firstDigit + 10
	classMask  = 1<<classBits - 1
)

// punctuation lists the bytes of each class after the digits. In Go's own source
// tree the classes of one byte are each at least 0.06 % of all bytes, and those
// that share a class are seldom neighbours of the same text. Control
// characters share the tab's class.
var punctuation = [1<<classBits - firstPunct]string{
	" ", "\n", "\t", ",", ".", "/", "(", ")", ":", "\"", "=", "_", "{", "}",
	"\\", "[", "]", "*", "-", "&", "+", "<", ">", ";",
	"'`", "#@^~", "%$|", "!?",
}

const tabClass = firstPunct + 2

// An entry of asciiEntry has a byte's class in its low half and its shape in its
// high half, at the same distance, so that one shift moves a window of both.
const (
	shapeShift = 32
	shapeUpper = 1
	shapeLower = 2

	windowMask = 1<<(windowSize*classBits) - 1
	titleShape = shapeUpper<<(2*classBits) | shapeLower<<classBits | shapeLower
)

// asciiEntry has the class and shape of each ASCII byte, and 0 for the others.
var asciiEntry = buildASCIIEntries()

func buildASCIIEntries() (table [256]uint64) {
	for c := range 128 {
		table[c] = tabClass
	}
	for i := range uint64(letters) {
		table['A'+i] = i | shapeUpper<<shapeShift
		table['a'+i] = i | shapeLower<<shapeShift
	}
	for i := range uint64(10) {
		table['0'+i] = firstDigit + i
	}
	for class, members := range punctuation {
		for _, c := range []byte(members) {
			table[c] = uint64(firstPunct + class)
		}
	}
	return table
}

// isTitle reports whether the three entries shifted into window have the shape
// [A-Z][a-z][a-z].
func isTitle(window uint64) bool {
	return window>>shapeShift&windowMask == titleShape
}
