package cli

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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

// wantedValues say what a flag of a type of pflag takes. Settings say it themselves.
var wantedValues = map[string]string{
	"bool":     "true or false",
	"float64":  "a number",
	"duration": "a duration such as 500ms, 10s or 1m30s",
	"uint32":   "a whole number from 0 to 4294967295",
}

// flagError says in plain words what is wrong with a flag.
func flagError(cmd *cobra.Command, err error) error {
	if unknown, ok := errors.AsType[*pflag.NotExistError](err); ok && unknown.GetSpecifiedShortnames() == "" {
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		err = fmt.Errorf("%w%s", err, spelledLike(unknown.GetSpecifiedName(), "--", names))
	}
	if invalid, ok := errors.AsType[*pflag.InvalidValueError](err); ok {
		if want, ok := wantedValues[invalid.GetFlag().Value.Type()]; ok {
			err = fmt.Errorf("--%s is %q: want %s", invalid.GetFlag().Name, invalid.GetValue(), want)
		}
	}
	return usageError{fmt.Errorf("%w; see %s --help", err, cmd.CommandPath())}
}

// spelledLike lists the names that are spelled like one, each after prefix: those that begin with it, or else those that differ least, in at
// most one letter of three. It is empty if there are none.
func spelledLike(name, prefix string, names []string) string {
	near := slices.DeleteFunc(slices.Clone(names), func(n string) bool { return !strings.HasPrefix(n, name) })
	if len(near) == 0 || name == "" {
		near = searchapi.Nearest(name, names)
		least := 1 + len(name)/3
		for _, n := range near {
			least = min(least, searchapi.EditDistance(n, name))
		}
		near = slices.DeleteFunc(near, func(n string) bool { return searchapi.EditDistance(n, name) > least })
	}
	if len(near) == 0 {
		return ""
	}
	return "; the nearest: " + prefix + strings.Join(near[:min(len(near), searchapi.MostNearest)], ", "+prefix)
}

// isAddress matches what can be the URL of a repository, or user@host:path.
var isAddress = regexp.MustCompile(`^[^/]*:`)

// absolute makes the path of a folder absolute. It leaves a URL as it is, and an absolute path to what is not here: Trawl may run on
// another machine.
func absolute(arg string) (string, error) {
	if isAddress.MatchString(arg) {
		return arg, nil
	}
	info, err := os.Stat(arg)
	switch {
	case err != nil && filepath.IsAbs(arg):
		return arg, nil
	case errors.Is(err, os.ErrNotExist):
		return "", fmt.Errorf("there is no folder %s here; a repository elsewhere has a URL such as https://HOST/PATH", arg)
	case err != nil:
		return "", fmt.Errorf("looking for the repository: %w", err)
	case !info.IsDir():
		return "", fmt.Errorf("%s is a file: a repository is a folder or a URL", arg)
	}
	path, err := filepath.Abs(arg)
	if err != nil {
		return "", fmt.Errorf("finding the folder %s: %w", arg, err)
	}
	return path, nil
}

// isWords matches several words without anything that the query language knows.
var isWords = regexp.MustCompile(`^\w+(?: \w+)+$`)

// asTheyStand suggests -F to somebody who may expect the words of a query in one line; it is empty for other queries.
func asTheyStand(query string) string {
	words := strings.Fields(query)
	if !isWords.MatchString(query) || slices.Contains(words, "or") {
		return ""
	}
	return fmt.Sprintf("hint: these files have each of the words somewhere; -F '%s' finds them as they stand\n", query)
}
