package cli

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/trawl-search/trawl/internal/searchapi"
)

// knownCommand refuses what is no command, with those that are spelled like it.
func knownCommand(cmd *cobra.Command, args []string) error {
	err := cobra.NoArgs(cmd, args)
	if err == nil {
		return nil
	}
	var names []string
	for _, c := range cmd.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return fmt.Errorf("%w%s", err, spelledLike(args[0], "", names))
}

// beyondUTF8 is the error of an argument that gRPC did not send, nil if err has another cause.
func beyondUTF8(args []string, err error) error {
	i := slices.IndexFunc(args, func(arg string) bool { return !utf8.ValidString(arg) })
	if i < 0 || status.Code(err) != codes.Internal || !strings.Contains(err.Error(), "UTF-8") {
		return nil
	}
	return fmt.Errorf(`%q is not in UTF-8, as names and queries are; \x{FFFD} in an expression finds bytes that are not`, args[i])
}

// wantedValues say what a flag of a type of pflag takes. Settings say it themselves.
var wantedValues = map[string]string{
	"bool":     "true or false",
	"boolfunc": "true or false",
	"float64":  "a number",
	"duration": "a duration such as 500ms, 10s or 1m30s",
	"uint32":   "a whole number from 0 to 4294967295",
}

// flagError says in plain words what is wrong with a flag among args.
func flagError(cmd *cobra.Command, args []string, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok {
		letters, takesText := unknown.GetSpecifiedShortnames(), strings.Contains(cmd.Use, " ")
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		switch {
		case letters == "":
			err = fmt.Errorf("%w%s", err, spelledLike(unknown.GetSpecifiedName(), "--", names))
		case takesText && !looksLikeFlag(letters): // such as a query that begins with a negated field
			command, text := cmd.CommandPath(), "-"+letters
			if i := slices.IndexFunc(args, func(arg string) bool { // its first letters may be flags
				return strings.HasPrefix(arg, "-") && !strings.HasPrefix(arg, "--") && strings.HasSuffix(arg, letters)
			}); i >= 0 {
				after := args[i+1:]
				flags := slices.IndexFunc(after, func(arg string) bool { return isFlag(cmd, arg) })
				if flags < 0 {
					flags = len(after)
				}
				command = shellWords(slices.Concat([]string{cmd.Root().Name()}, args[:i], after[flags:]))
				text = shellWords(args[i : i+1+flags])
			}
			err = fmt.Errorf(`%w; a text that begins with a dash comes after "--": %s -- %s`, err, command, text)
		}
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if want, ok := wantedValues[invalid.GetFlag().Value.Type()]; ok {
			err = fmt.Errorf("--%s is %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}

// looksLikeFlag reports whether unknown letters after a dash are rather a flag of ripgrep, such as -P and -uu, than a text.
func looksLikeFlag(letters string) bool {
	return letters[0] > '9' && strings.Trim(letters, letters[:1]) == ""
}

// plainWord matches arguments that a shell takes as they are.
var plainWord = regexp.MustCompile(`^[\w@%+=:,./-]+$`)

// shellWord is an argument as it is written in a shell.
func shellWord(arg string) string {
	if plainWord.MatchString(arg) {
		return arg
	}
	return "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
}

// shellWords are arguments as they are written in a shell.
func shellWords(args []string) string {
	words := make([]string, len(args))
	for i, arg := range args {
		words[i] = shellWord(arg)
	}
	return strings.Join(words, " ")
}

// isFlag reports whether an argument begins with a flag rather than with text.
func isFlag(cmd *cobra.Command, arg string) bool {
	return len(arg) > 2 && arg[:2] == "--" || len(arg) > 1 && arg[0] == '-' && cmd.Flags().ShorthandLookup(arg[1:2]) != nil
}

// spelledLike lists the names that are spelled like one, each after prefix; it is empty if there are none.
func spelledLike(name, prefix string, names []string) string {
	near := searchapi.SpelledLike(name, names)
	if len(near) == 0 {
		return ""
	}
	return "; the nearest: " + prefix + strings.Join(near, ", "+prefix)
}
