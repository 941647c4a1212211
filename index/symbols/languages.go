package symbols

// flags are the differences between languages of one family.
type flags uint32

// Flags of languages with and without keywords for declarations.
const (
	groups        flags = 1 << iota // const ( … )
	receivers                       // func (r T) name
	goTypes                         // type name struct { … }
	colonFields                     // name: Type
	dollarFields                    // $name
	variants                        // the names in an enum are constants
	constructors                    // class name(val field: Type)
	constFields                     // a constant within a type is a field
	typedConsts                     // const int NAME
	valueTypes                      // const name = struct { … }
	dottedModules                   // package a.b
	inHTML                          // code is between <? and ?>
	heredocs                        // <<<EOT
	typeFirst                       // Java, C#: types are announced by their keywords only
	packages                        // package a.b;
	operators                       // operator+
	localTypes                      // bodies have types and functions
	properties                      // int Name { get; set; }
	objectiveC
)

var slashes = lexis{line: []string{"//"}, open: "/*", close: "*/"}

func curly(change func(*lexis)) *lexis {
	x := slashes
	change(&x)
	return x.ready()
}

var (
	goLexis     = curly(func(x *lexis) { x.rune, x.raw = true, '`' })
	cLexis      = curly(func(x *lexis) { x.rune, x.preprocessor, x.rawCpp, x.extra = true, true, true, "$" })
	javaLexis   = curly(func(x *lexis) { x.rune, x.triple, x.extra = true, true, "$" })
	csLexis     = curly(func(x *lexis) { x.rune, x.triple, x.verbatim, x.preprocessor = true, true, true, true })
	rustLexis   = curly(func(x *lexis) { x.rune, x.nested, x.multiline, x.rawRust = true, true, true, true })
	swiftLexis  = curly(func(x *lexis) { x.nested, x.triple = true, true })
	kotlinLexis = curly(func(x *lexis) { x.rune, x.nested, x.triple = true, true, true })
	zigLexis    = curly(func(x *lexis) { x.rune, x.open, x.close = true, "", ""; x.line = []string{"//", `\\`}; x.extra = "@" })
	phpLexis    = curly(func(x *lexis) { x.single, x.multiline, x.line, x.extra = true, true, []string{"//"}, "$" })
	jsLexis     = curly(func(x *lexis) { x.single, x.template, x.regexps, x.extra = true, true, true, "$" })
	pyLexis     = (&lexis{line: []string{"#"}, single: true, triple: true, tripleSingle: true}).ready()
	rubyLexis   = (&lexis{line: []string{"#"}, single: true, regexps: true, extra: "@$"}).ready()
	lineLexis   = (&lexis{}).ready()
)

var (
	goWords = newKeywords(map[action][]string{isFunc: {"func"}, isAlias: {"type"}, isConst: {"const"}, isVar: {"var"}})

	rustWords = newKeywords(map[action][]string{
		isFunc: {"fn"}, isType: {"struct", "trait", "union"}, isEnum: {"enum"}, isAlias: {"type"}, isModule: {"mod"},
		isConst: {"const"}, isVar: {"static"}, isMacro: {"macro_rules"}, isImpl: {"impl"},
		isAttribute: {"pub", "unsafe", "async", "extern", "default"}, isIgnored: {"mut"},
	})
	swiftWords = newKeywords(map[action][]string{
		isFunc: {"func"}, isType: {"class", "struct", "protocol", "actor"}, isEnum: {"enum"}, isAlias: {"typealias", "associatedtype"},
		isImpl: {"extension"}, isCase: {"case"}, isConst: {"let"}, isVar: {"var"},
	})
	kotlinWords = newKeywords(map[action][]string{
		isFunc: {"fun"}, isType: {"class", "interface", "object"}, isEnum: {"enum"}, isAlias: {"typealias"}, isModule: {"package"},
		isConst: {"val"}, isVar: {"var"},
	})
	scalaWords = newKeywords(map[action][]string{
		isFunc: {"def"}, isType: {"class", "trait", "object", "enum"}, isAlias: {"type"}, isModule: {"package"},
		isConst: {"val"}, isVar: {"var"},
	})
	zigWords = newKeywords(map[action][]string{isFunc: {"fn"}, isConst: {"const"}, isVar: {"var"}, isAttribute: {"pub", "export", "inline"}})
	phpWords = newKeywords(map[action][]string{
		isFunc: {"function"}, isType: {"class", "interface", "trait"}, isEnum: {"enum"}, isModule: {"namespace"}, isConst: {"const"}, isCase: {"case"},
		isAttribute: {"public", "private", "protected", "static", "final", "abstract", "readonly", "var"},
	})

	cWords = newKeywords(map[action][]string{
		isType: {"struct", "union"}, isEnum: {"enum"}, isTypedef: {"typedef"}, isExtern: {"extern"},
		isIgnored:   {"if", "for", "while", "switch", "return", "do", "else", "goto", "case", "asm", "__asm__"},
		isAttribute: {"__attribute__", "__declspec", "_Alignas", "__aligned"},
	})
	cppWords = newKeywords(map[action][]string{
		isType: {"struct", "union", "class"}, isEnum: {"enum"}, isTypedef: {"typedef"}, isExtern: {"extern"}, isModule: {"namespace"},
		isIgnored:   {"if", "for", "while", "switch", "return", "do", "else", "goto", "case", "asm", "using", "friend", "static_assert", "__asm__"},
		isAttribute: {"__attribute__", "__declspec", "alignas", "noexcept", "throw", "decltype", "explicit", "const", "override", "final", "requires"},
	})
	javaWords = newKeywords(map[action][]string{
		isType: {"class", "interface", "record"}, isEnum: {"enum"}, isModule: {"package"},
		isIgnored: {"if", "for", "while", "switch", "return", "do", "else", "case", "import", "try", "catch", "finally", "throw", "new", "synchronized", "assert"},
	})
	csWords = newKeywords(map[action][]string{
		isType: {"class", "interface", "struct", "record", "delegate"}, isEnum: {"enum"}, isModule: {"namespace"},
		isIgnored: {"if", "for", "while", "switch", "return", "do", "else", "case", "using", "try", "catch", "finally", "throw", "lock", "foreach", "fixed"},
	})
	jsWords = newKeywords(map[action][]string{
		isFunc: {"function"}, isType: {"class"}, isConst: {"const"}, isVar: {"let", "var"},
		isAttribute: {"static", "async", "get", "set"},
		isIgnored:   {"if", "for", "while", "switch", "return", "do", "else", "case", "catch", "with", "super", "typeof", "new", "await"},
	})
	tsWords = newKeywords(map[action][]string{
		isFunc: {"function"}, isType: {"class", "interface"}, isEnum: {"enum"}, isModule: {"namespace", "module"}, isAlias: {"type"},
		isConst: {"const"}, isVar: {"let", "var"},
		isAttribute: {"static", "async", "get", "set", "public", "private", "protected", "readonly", "abstract", "override", "declare", "accessor"},
		isIgnored:   {"if", "for", "while", "switch", "return", "do", "else", "case", "catch", "with", "super", "typeof", "new", "await"},
	})
	pyWords = newKeywords(map[action][]string{
		isFunc: {"def", "cdef", "cpdef"}, isType: {"class"}, isAttribute: {"async"},
		isIgnored: {"if", "elif", "else", "for", "while", "try", "except", "finally", "with", "return", "raise", "import", "from", "pass", "lambda", "print", "assert", "del", "global", "match", "case"},
	})
	rubyWords = newKeywords(map[action][]string{
		isFunc: {"def"}, isType: {"class"}, isModule: {"module"}, isVar: {"attr_reader", "attr_writer", "attr_accessor", "attr"}, isAlias: {"alias", "alias_method"},
	})
)

// languages are the rules, by linguist name.
var languages = func() map[string]*Language {
	all := []*Language{
		{"Go", goLexis, announced, goWords, groups | receivers | goTypes},
		{"Rust", rustLexis, announced, rustWords, colonFields | variants},
		{"Swift", swiftLexis, announced, swiftWords, 0},
		{"Kotlin", kotlinLexis, announced, kotlinWords, constructors | constFields | variants | dottedModules},
		{"Scala", kotlinLexis, announced, scalaWords, constructors | constFields | dottedModules},
		{"Zig", zigLexis, announced, zigWords, colonFields | variants | valueTypes},
		{"PHP", phpLexis, announced, phpWords, dollarFields | typedConsts | inHTML | heredocs | dottedModules},
		{"C", cLexis, declared, cWords, 0},
		{"C++", cLexis, declared, cppWords, operators},
		{"CUDA", cLexis, declared, cppWords, operators},
		{"Objective-C", cLexis, declared, cWords, objectiveC},
		{"Objective-C++", cLexis, declared, cppWords, objectiveC | operators},
		{"Java", javaLexis, declared, javaWords, typeFirst | packages | localTypes},
		{"C#", csLexis, declared, csWords, typeFirst | packages | properties | operators},
		{"JavaScript", jsLexis, script, jsWords, 0},
		{"JSX", jsLexis, script, jsWords, 0},
		{"TypeScript", jsLexis, script, tsWords, 0},
		{"TSX", jsLexis, script, tsWords, 0},
		{"Python", pyLexis, python, pyWords, 0},
		{"Cython", pyLexis, python, pyWords, 0},
		{"Ruby", rubyLexis, ruby, rubyWords, 0},
		{"Shell", lineLexis, lines(line.shell), nil, 0},
		{"Perl", lineLexis, lines(line.perl), nil, 0},
		{"Lua", lineLexis, lines(line.lua), nil, 0},
		{"Elixir", lineLexis, lines(line.elixir), nil, 0},
		{"Haskell", lineLexis, lines(line.haskell), nil, 0},
		{"R", lineLexis, lines(line.r), nil, 0},
		{"SQL", lineLexis, lines(line.sql), nil, 0},
		{"PLpgSQL", lineLexis, lines(line.sql), nil, 0},
		{"PLSQL", lineLexis, lines(line.sql), nil, 0},
		{"TSQL", lineLexis, lines(line.sql), nil, 0},
	}
	byName := make(map[string]*Language, len(all))
	for _, l := range all {
		byName[l.name] = l
	}
	return byName
}()

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
