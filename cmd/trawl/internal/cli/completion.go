package cli

import (
	"context"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/index/query"
	searchv1 "github.com/trawl-search/trawl/proto/trawl/search/v1"
)

// completionTime is how long a shell may wait for names.
const completionTime = 2 * time.Second

// namesFor lists what may stand where typed stands, in any order. The shell leaves out what does not begin with it.
type namesFor func(ctx context.Context, c client, typed string) ([]string, error)

// completeNames has the shell complete the arguments and flags of a command that are names of what is indexed, of which it asks the router. It
// goes by the command's usage line and the names of its flags, which must be declared.
func completeNames(cmd *cobra.Command, at *routerAt) {
	switch {
	case strings.Contains(cmd.Use, "REPO:PATH"), strings.Contains(cmd.Use, "REPO[:PATH"):
		cmd.ValidArgsFunction = completion(at, filesToOffer)
	case strings.Contains(cmd.Use, "REPO"):
		cmd.ValidArgsFunction = completion(at, reposToOffer)
	case strings.Contains(cmd.Use, "QUERY"):
		cmd.ValidArgsFunction = completion(at, termsToOffer)
	}
	for flag, names := range map[string]namesFor{
		"repo": reposToOffer, "branch": branchesToOffer, "type": languagesToOffer, "type-not": languagesToOffer,
	} {
		if cmd.Flags().Lookup(flag) != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag, completion(at, names)) // it fails for a flag that is not declared
		}
	}
}

func completion(at *routerAt, names namesFor) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
		defer cancel()
		var found []string
		err := withClient(ctx, *at, func(ctx context.Context, c client) (err error) {
			found, err = names(ctx, c, typed)
			return err
		})
		if err != nil {
			return nil, cobra.ShellCompDirectiveError | cobra.ShellCompDirectiveNoFileComp
		}
		directive := cobra.ShellCompDirectiveNoFileComp
		found = slices.DeleteFunc(found, func(name string) bool { return !strings.HasPrefix(name, typed) })
		if slices.ContainsFunc(found, func(name string) bool { return strings.HasSuffix(name, "/") || strings.HasSuffix(name, ":") }) {
			directive |= cobra.ShellCompDirectiveNoSpace // more may follow
		}
		slices.Sort(found)
		return slices.Compact(found), directive
	}
}

// reposLike lists repos whose names begin with a prefix, as many as one answer has.
func reposLike(ctx context.Context, c client, prefix string) ([]*searchv1.RepoEntry, error) {
	answer, err := c.search.List(ctx, &searchv1.ListRequest{Query: "repo:" + query.Quote("^"+regexp.QuoteMeta(prefix))})
	return answer.GetRepos(), err
}

func reposToOffer(ctx context.Context, c client, typed string) (names []string, err error) {
	repos, err := reposLike(ctx, c, typed)
	for _, r := range repos {
		names = append(names, r.GetName())
	}
	return names, err
}

func branchesToOffer(ctx context.Context, c client, _ string) (names []string, err error) {
	repos, err := reposLike(ctx, c, "")
	for _, r := range repos {
		for _, b := range r.GetBranches() {
			names = append(names, b.GetName())
		}
	}
	return names, err
}

// languagesToOffer are in lower case if that is how typed begins.
func languagesToOffer(ctx context.Context, c client, typed string) (names []string, err error) {
	repos, err := reposLike(ctx, c, "")
	for _, r := range repos {
		for _, l := range r.GetLanguages() {
			if name := l.GetLanguage(); typed == strings.ToLower(typed) {
				names = append(names, strings.ToLower(name))
			} else {
				names = append(names, name)
			}
		}
	}
	return names, err
}

// filesToOffer completes REPO:PATH, a folder at a time.
func filesToOffer(ctx context.Context, c client, typed string) (names []string, err error) {
	if repo, path, ok := strings.Cut(typed, ":"); ok {
		folder := path[:strings.LastIndex(path, "/")+1]
		tree, err := c.search.ListTree(ctx, &searchv1.ListTreeRequest{Repo: repo, Path: []byte(folder)})
		for _, e := range tree.GetEntries() {
			names = append(names, repo+":"+string(e.GetPath()))
		}
		return names, err
	}
	repos, err := reposToOffer(ctx, c, typed)
	for _, repo := range repos {
		names = append(names, repo+":")
	}
	return names, err
}

// termsToOffer completes the last term of a query if it is a field for a repo, a branch or a language.
func termsToOffer(ctx context.Context, c client, typed string) (names []string, err error) {
	at := strings.LastIndexAny(typed, " (") + 1
	field, value, ok := strings.Cut(typed[at:], ":")
	of, known := map[string]namesFor{
		"r": reposToOffer, "repo": reposToOffer, "b": branchesToOffer, "branch": branchesToOffer, "lang": languagesToOffer,
	}[strings.TrimPrefix(field, "-")]
	if !ok || !known {
		return nil, nil
	}
	names, err = of(ctx, c, value)
	for i, name := range names {
		names[i] = typed[:at] + field + ":" + name
	}
	return names, err
}
