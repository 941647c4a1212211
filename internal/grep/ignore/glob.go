package ignore

import "strings"

const (
	// maxGlob bounds the size of a glob, in bytes. No path is longer.
	maxGlob = 4096
	// maxAlternatives bounds how many globs one with braces may stand for.
	maxAlternatives = 1000
)

// alternatives returns the globs without braces that a glob with ripgrep's {a,b} stands for. It returns none if the glob is not
// valid or too long, or if there are more than maxAlternatives.
func alternatives(glob string) []string {
	if len(glob) > maxGlob {
		return nil
	}
	open, depth, all := 0, 0, []string(nil)
	var cuts []int // the brace that opens first, the commas in it, and the brace that closes it
	for i := 0; i < len(glob); i++ {
		switch c := glob[i]; {
		case c == '\\':
			if i++; i == len(glob) {
				return nil
			}
		case c == '[':
			_, size := class(glob[i:], 0)
			if size == 0 {
				return nil
			}
			i += size - 1
		case c == '{':
			if depth++; depth == 1 {
				open, cuts = i, append(cuts, i)
			}
		case c == '}' && depth == 0:
			return nil
		case c == ',' && depth == 1:
			cuts = append(cuts, i)
		case c == '}':
			if depth--; depth > 0 {
				continue
			}
			cuts = append(cuts, i)
			for n, from := range cuts[:len(cuts)-1] {
				more := alternatives(glob[:open] + glob[from+1:cuts[n+1]] + glob[i+1:])
				if all = append(all, more...); more == nil || len(all) > maxAlternatives {
					return nil
				}
			}
			return all
		}
	}
	if depth > 0 {
		return nil
	}
	return []string{glob}
}

// match reports whether a glob matches a whole path. It compares bytes, as Git and ripgrep do, and takes time in proportion to the
// product of both lengths for each ** of the glob.
func match(glob, path string) bool {
	g, p := 0, 0
	star, starAt := -1, 0 // after the last *, and how far it reaches
	deep, deepAt := -1, 0 // after the last **/, and how far it reaches
	for {
		switch {
		case g == len(glob):
			if p == len(path) {
				return true
			}
		case (g == 0 || glob[g-1] == '/') && strings.HasPrefix(glob[g:], "**/"):
			g += len("**/")
			deep, deepAt, star = g, p, -1
			continue
		case (g == 0 || glob[g-1] == '/') && glob[g:] == "**":
			return true // all that is in a folder
		case glob[g] == '*':
			g++
			star, starAt = g, p
			continue
		case p < len(path) && path[p] != '/' || p < len(path) && glob[g] == '/':
			if ok, size := one(glob[g:], path[p]); ok {
				g, p = g+size, p+1
				continue
			}
		}
		next := strings.IndexByte(path[deepAt:], '/')
		switch {
		case star >= 0 && starAt < len(path) && path[starAt] != '/':
			starAt++
			g, p = star, starAt
		case deep >= 0 && next >= 0:
			deepAt += next + 1
			g, p, star = deep, deepAt, -1
		default:
			return false
		}
	}
}

// one reports whether c matches the first element of a glob, and how many bytes the element has.
func one(glob string, c byte) (ok bool, size int) {
	switch glob[0] {
	case '?':
		return true, 1
	case '\\':
		return glob[1] == c, 2
	case '[':
		return class(glob, c)
	}
	return glob[0] == c, 1
}

// classes are the classes of ASCII that have names, as Git has them: [[:digit:]] is one digit. Ripgrep has none.
var classes = map[string]func(c byte) bool{
	"alnum":  func(c byte) bool { return letter(c|0x20) || digit(c) },
	"alpha":  func(c byte) bool { return letter(c | 0x20) },
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < ' ' || c == 0x7f },
	"digit":  digit,
	"graph":  graph,
	"lower":  letter,
	"print":  func(c byte) bool { return graph(c) || c == ' ' },
	"punct":  func(c byte) bool { return graph(c) && !letter(c|0x20) && !digit(c) },
	"space":  func(c byte) bool { return strings.IndexByte(" \t\n\r", c) >= 0 },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return digit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func letter(c byte) bool { return 'a' <= c && c <= 'z' }

func digit(c byte) bool { return '0' <= c && c <= '9' }

func graph(c byte) bool { return ' ' < c && c < 0x7f }

// class reports whether c is in the class that begins a glob, and how many bytes the class has, 0 if it does not end or
// holds a class whose name is unknown. A ] that comes first is a member.
func class(glob string, c byte) (in bool, size int) {
	i := 1
	not := i < len(glob) && (glob[i] == '!' || glob[i] == '^')
	if not {
		i++
	}
	member := func() (b byte) { // the one at i, which may be escaped
		if glob[i] == '\\' && i+1 < len(glob) {
			i++
		}
		b = glob[i]
		i++
		return b
	}
	for first := i; i < len(glob); {
		if glob[i] == ']' && i > first {
			return in != not, i + 1
		}
		if name, named := strings.CutPrefix(glob[i:], "[:"); named {
			name, _, ends := strings.Cut(name, "]")
			if name, named = strings.CutSuffix(name, ":"); named || !ends {
				holds := classes[name]
				if holds == nil {
					return false, 0
				}
				in = in || holds(c)
				i += len("[::]") + len(name)
				continue
			}
		}
		low := member()
		high := low
		if i+1 < len(glob) && glob[i] == '-' && glob[i+1] != ']' {
			i++
			high = member()
		}
		in = in || c == low || low <= c && c <= high // Git takes x of [x-a]
	}
	return false, 0
}
