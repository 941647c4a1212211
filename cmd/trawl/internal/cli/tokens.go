package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/trawl-search/trawl/cmd/trawl/internal/render"
	"github.com/trawl-search/trawl/internal/access"
	"github.com/trawl-search/trawl/internal/config"
	catalogv1 "github.com/trawl-search/trawl/proto/trawl/catalog/v1"
)

// tokensRole names the environment variables of these commands.
const tokensRole = "tokens"

func newTokens(p Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "tokens",
		Short: "Make, list and revoke the tokens of callers",
		Long: `Make, list and revoke the tokens by which routers know their callers. They are kept in etcd, as digests only: these
commands talk to etcd, not to a router.

  trawl tokens create --name ci --allow 'github.com/org/*' --deny 'github.com/org/secret*' > token
  trawl search --token-file token 'func main'
  trawl tokens revoke ID`,
	}
	return withSubcommands(cmd, newTokensCreate(p), newTokensList(p), newTokensRevoke(p))
}

type createSettings struct {
	Name    string        `config:"name" doc:"owner or purpose of the token"`
	Allow   []string      `config:"allow" doc:"patterns of the repos that its caller may see: * is anything but a slash, ** is anything"`
	Deny    []string      `config:"deny" doc:"patterns of repos that its caller may not see, whatever is allowed"`
	Scopes  []string      `config:"scopes" doc:"what its caller may do: search, ingest, or admin for everything"`
	Expires time.Duration `config:"expires" doc:"lifetime of the token; 0: until it is revoked"`
	Out     string        `config:"out" doc:"new file that the token is written to, instead of standard output; only its owner may read it"`
	Replace bool          `config:"replace" doc:"revoke the other tokens with this name, and replace the file --out"`
	Etcd    etcdConfig    `config:"etcd"`
}

// SetDefaults implements config.Settings.
func (s *createSettings) SetDefaults() {
	s.Scopes = []string{string(access.ScopeSearch)}
	s.Etcd.SetDefaults()
}

// Validate implements config.Settings.
func (s *createSettings) Validate() error {
	var check config.Check
	check.NotEmpty("name", s.Name)
	check.That(len(s.Allow) > 0, "allow", "", "a pattern of the repos that its caller may see: ** stands for all")
	check.Nested("etcd", &s.Etcd)
	if err := check.Err(); err != nil {
		return err
	}
	return s.spec().Check()
}

func (s *createSettings) spec() access.Spec {
	spec := access.Spec{Name: s.Name, Allow: s.Allow, Deny: s.Deny, Lifetime: s.Expires}
	for _, scope := range s.Scopes {
		spec.Scopes = append(spec.Scopes, access.Scope(scope))
	}
	return spec
}

func newTokensCreate(p Process) *cobra.Command {
	var s createSettings
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it, which happens only once",
		Long: `Create a token and print it to standard output, or into the file --out. It cannot be shown again, since nothing stores it.
Its details go to standard error.`,
	}
	return configuredAs(p, cmd, tokensRole, &s, func(cmd *cobra.Command) error {
		return withTokens(cmd.Context(), s.Etcd, func(store *access.Store) error { return s.create(cmd.Context(), p, store) })
	})
}

// create makes the token, hands it out, and revokes those that it replaces.
func (s *createSettings) create(ctx context.Context, p Process, store *access.Store) error {
	if _, err := os.Lstat(s.Out); err == nil && !s.Replace {
		return fmt.Errorf("%s exists, and may hold a token that nothing else stores: name a new file; --replace writes it anew and revokes the other tokens named %s", s.Out, s.Name)
	}
	text, record, err := store.Create(ctx, s.spec())
	if err != nil {
		return err
	}
	if err := s.handOut(p, text); err != nil {
		return errors.Join(fmt.Errorf("handing out the token, which is revoked again: %w", err), store.Revoke(ctx, record.GetId()))
	}
	fmt.Fprintf(p.Err, "created token %s; it will not be shown again\n", record.GetId())
	if !s.Replace {
		return nil
	}
	tokens, err := store.List(ctx)
	for _, t := range tokens {
		if t.GetName() == s.Name && t.GetId() != record.GetId() {
			err = errors.Join(err, store.Revoke(ctx, t.GetId()))
		}
	}
	return err
}

// handOut writes a token where the settings say.
func (s *createSettings) handOut(p Process, text access.Text) error {
	if s.Out == "" {
		_, err := fmt.Fprintln(p.Out, string(text))
		return err
	}
	return writeFile(s.Out, 0o600, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, string(text))
		return err
	})
}

// tokensSettings are those of all commands for tokens.
type tokensSettings struct {
	Etcd etcdConfig `config:"etcd"`
}

// SetDefaults implements config.Settings.
func (s *tokensSettings) SetDefaults() { config.Defaults(s) }

// Validate implements config.Settings.
func (s *tokensSettings) Validate() error { return config.Validate(s) }

type listSettings struct {
	JSON bool `config:"json" doc:"print one JSON object a line"`

	tokensSettings
}

func newTokensList(p Process) *cobra.Command {
	var s listSettings
	cmd := &cobra.Command{Use: "list", Short: "List the tokens, the oldest first"}
	return configuredAs(p, cmd, tokensRole, &s, func(cmd *cobra.Command) error {
		return withTokens(cmd.Context(), s.Etcd, func(store *access.Store) error {
			tokens, err := store.List(cmd.Context())
			if err != nil {
				return err
			}
			if s.JSON {
				return printTokensJSON(p.Out, tokens)
			}
			return printTokens(p.Out, tokens)
		})
	})
}

func newTokensRevoke(p Process) *cobra.Command {
	var s tokensSettings
	cmd := &cobra.Command{Use: "revoke ID", Short: "Revoke a token, so that no router accepts it any more"}
	cmd = configuredAs(p, cmd, tokensRole, &s, func(cmd *cobra.Command) error {
		return withTokens(cmd.Context(), s.Etcd, func(store *access.Store) error {
			id := cmd.Flags().Arg(0)
			err := store.Revoke(cmd.Context(), id)
			if errors.Is(err, access.ErrNoToken) {
				err = cmp.Or(byName(cmd.Context(), store, id), err)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(p.Out, "%s is revoked; a router that loses sight of etcd accepts it until its --access-staleness and --access-outage-grace are over\n", id)
			return err
		})
	})
	cmd.Args = named(cobra.ExactArgs(1))
	return cmd
}

// byName is the error about the name of a token in place of its ID; nil if no token has the name.
func byName(ctx context.Context, store *access.Store, name string) error {
	tokens, _ := store.List(ctx)
	for _, t := range tokens {
		if t.GetName() == name {
			return fmt.Errorf("%q is the name of the token %s: names may be shared, so a token is revoked by its ID", name, t.GetId())
		}
	}
	return nil
}

// withTokens runs f with the store of tokens. It fails within seconds unless etcd answers.
func withTokens(ctx context.Context, cfg etcdConfig, f func(*access.Store) error) error {
	client, err := cfg.connect(slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	if err = cfg.await(ctx, client); err == nil {
		err = f(access.NewStore(client, cfg.Prefix))
	}
	return errors.Join(err, client.Close())
}

func printTokens(out io.Writer, tokens []*catalogv1.Token) error {
	return table(out, "tokens", func(w io.Writer) {
		fmt.Fprintln(w, "ID\tNAME\tSCOPES\tALLOW\tDENY\tCREATED\tEXPIRES")
		for _, t := range tokens {
			expires := "never"
			if end := t.GetExpiresAt(); end != nil {
				expires = moment(end)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", t.GetId(), render.Safe([]byte(t.GetName())), strings.Join(t.GetScopes(), ","),
				shown(t.GetAllow()), shown(t.GetDeny()), moment(t.GetCreatedAt()), expires)
		}
	})
}

func shown(patterns []string) string { return dash(render.Safe([]byte(strings.Join(patterns, ",")))) }

type tokenJSON struct {
	ID        string     `json:"id"`
	Name      string     `json:"name"`
	Scopes    []string   `json:"scopes"`
	Allow     []string   `json:"allow"`
	Deny      []string   `json:"deny"`
	CreatedAt time.Time  `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"`
}

func printTokensJSON(out io.Writer, tokens []*catalogv1.Token) error {
	enc := json.NewEncoder(out)
	for _, t := range tokens {
		row := tokenJSON{
			ID: t.GetId(), Name: t.GetName(), Scopes: t.GetScopes(), Allow: t.GetAllow(),
			Deny: slices.Concat([]string{}, t.GetDeny()), CreatedAt: t.GetCreatedAt().AsTime(),
		}
		if end := t.GetExpiresAt(); end != nil {
			at := end.AsTime()
			row.ExpiresAt = &at
		}
		if err := enc.Encode(row); err != nil {
			return fmt.Errorf("printing the tokens: %w", err)
		}
	}
	return nil
}
