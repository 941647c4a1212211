package symbols

// action is what a keyword announces.
type action uint8

// Actions.
const (
	noAction  action = iota
	isType           // a type with members
	isEnum           // a type with constants
	isModule         // a namespace, package or module
	isAlias          // a type without a body of its own
	isFunc           // a function
	isConst          // a constant
	isVar            // a variable
	isMacro          // a macro
	isTypedef        // C's typedef
	isImpl           // Rust's impl, Swift's and Kotlin's extension: a scope, no symbol
	isIgnored        // not the name of a function: if, for, while
	isExtern
	isAttribute // skip what is in its brackets
	isCase      // Swift's cases of an enum
)

// keywords are the words with a meaning in a language. The first byte and the length are
// enough to reject most other words.
type keywords struct {
	lengths [256]uint32 // bit n: a keyword of n bytes starts with this byte
	actions map[string]action
}

func newKeywords(groups map[action][]string) *keywords {
	k := &keywords{actions: map[string]action{}}
	for a, words := range groups {
		for _, word := range words {
			k.actions[word] = a
			k.lengths[word[0]] |= 1 << min(len(word), 31)
		}
	}
	return k
}

func (k *keywords) action(word []byte) action {
	if k.lengths[word[0]]>>min(len(word), 31)&1 == 0 {
		return noAction
	}
	return k.actions[string(word)]
}

// kindOfValue returns the kind of what isConst or isVar announces.
func kindOfValue(act action) Kind {
	if act == isVar {
		return Variable
	}
	return Constant
}
