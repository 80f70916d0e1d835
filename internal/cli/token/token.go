// Package token answers: who may register a cluster? Its commands make, list and
// delete the bootstrap tokens that are passed on to those who may.
package token

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
	"karmada.io/karmada/internal/registration/bootstraptoken"
)

// completionTimeout is how long a shell waits for IDs after a press of Tab.
const completionTimeout = 3 * time.Second

// New is the command that holds those about tokens.
func New(program *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage the tokens with which clusters register themselves",
		Long: `Manage the tokens with which clusters register themselves.

Whoever holds a token can register a cluster under a name that is free. A token is
good for any number of clusters until it expires or is deleted; clusters that are
registered need it no more.`,
		Example: program.Examples(`
			# Print a command that registers the cluster in which it is run
			{{program}} token create --print-register-command`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newCreate(program), newList(program), newDelete(program))
	return cmd
}

func newCreate(program *command.Program) *cobra.Command {
	var (
		karmadaContext string
		token          bootstraptoken.Token
		ttl            time.Duration
		printCommand   bool
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Make a token and print it",
		Long:  "Make a token with which clusters can register themselves, and print it or a whole register command.",
		Example: program.Examples(`
			# Make a token for a day
			{{program}} token create

			# Print a register command that is good for an hour
			{{program}} token create --print-register-command --ttl=1h --description="for the edge team"`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := check(token, ttl, printCommand); err != nil {
				return err
			}
			karmada, err := program.Karmada(karmadaContext).Config()
			if err != nil {
				return err
			}
			var (
				endpoint string
				pins     []bootstraptoken.Pin
			)
			if printCommand {
				if endpoint, err = endpointOf(karmada); err != nil {
					return err
				}
				if pins, err = bootstraptoken.Pins(karmada); err != nil {
					return err
				}
			}
			if ttl > 0 {
				token.Expires = time.Now().Add(ttl)
			}
			made, err := bootstraptoken.Create(cmd.Context(), karmada, token)
			if err != nil {
				return advised(err)
			}
			if printCommand {
				fmt.Fprintln(program.Out, registerCommand(program.Name, endpoint, made, pins))
				return nil
			}
			fmt.Fprintln(program.Out, made)
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	flags := cmd.Flags()
	flags.StringVar(&token.Description, "description", "", "what the token is for, for people")
	flags.StringSliceVar(&token.Groups, "groups", []string{agent.BootstrapGroup}, "groups of those who hold the token; the default one may register clusters")
	flags.BoolVar(&printCommand, "print-register-command", false, "print a whole register command instead of the token")
	flags.DurationVar(&ttl, "ttl", bootstraptoken.DefaultTTL, "how long the token lives; 0 is endless")
	flags.StringSliceVar(&token.Usages, "usages", []string{bootstraptoken.Signing, bootstraptoken.Authentication}, "what the token is good for: signing, authentication; registration needs both")
	return cmd
}

func check(token bootstraptoken.Token, ttl time.Duration, printCommand bool) error {
	if ttl < 0 {
		return command.Wrong("--ttl must not be negative, as %s is; 0 is endless", ttl)
	}
	if err := token.Validate(); err != nil {
		return command.Wrong("%w", err)
	}
	for _, usage := range []string{bootstraptoken.Signing, bootstraptoken.Authentication} {
		if printCommand && len(token.Usages) > 0 && !slices.Contains(token.Usages, usage) {
			return command.Wrong("--print-register-command needs a token of usage %s, which --usages leaves out", usage)
		}
	}
	return nil
}

// endpointOf is the control plane as register takes it: host:port.
func endpointOf(karmada *rest.Config) (string, error) {
	server, err := url.Parse(registration.Endpoint(karmada))
	if err != nil {
		return "", fmt.Errorf("reading the address of the control plane: %w", err)
	}
	if strings.Trim(server.Path, "/") != "" {
		return "", fmt.Errorf("the kubeconfig leads to the control plane by %s, and clusters register at host and port without a path: choose a kubeconfig or context that leads to its API server directly", karmada.Host)
	}
	return net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")), nil
}

// registerCommand is what the administrator of a cluster runs to register it.
func registerCommand(program, endpoint string, token bootstraptoken.Token, pins []bootstraptoken.Pin) string {
	hashes := make([]string, 0, len(pins))
	for _, pin := range pins {
		hashes = append(hashes, pin.String())
	}
	return fmt.Sprintf("%s register %s --token %s --discovery-token-ca-cert-hash %s", program, endpoint, token, strings.Join(hashes, ","))
}

func newList(program *command.Program) *cobra.Command {
	var (
		karmadaContext string
		format         console.Format
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens",
		Long:  "List the tokens of the control plane. Anybody who sees them can use them.",
		Example: program.Examples(`
			# List all tokens
			{{program}} token list

			# Delete all tokens
			{{program}} token list -o name | xargs {{program}} token delete`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			karmada, err := program.Karmada(karmadaContext).Config()
			if err != nil {
				return err
			}
			tokens, malformed, err := bootstraptoken.List(cmd.Context(), karmada)
			if err != nil {
				return advised(err)
			}
			for _, problem := range malformed {
				program.Tell("skipped: %v", problem)
			}
			return format.Print(program.Out, listOf(tokens, time.Now()))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	format.AddFlag(cmd)
	return cmd
}

func newDelete(program *command.Program) *cobra.Command {
	var karmadaContext string
	cmd := &cobra.Command{
		Use:   "delete [token-value] ...",
		Short: "Delete tokens",
		Long:  "Delete tokens, so that nobody can register clusters with them. Clusters that are registered stay.",
		Example: program.Examples(`
			# Delete a token by its first six characters
			{{program}} token delete abcdef`),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.Wrong("the token is missing: the whole of it or its first six characters")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []string
			for _, arg := range args {
				id, err := bootstraptoken.ParseID(arg)
				if err != nil {
					// The argument may be a secret with a slip in it.
					return command.Wrong("argument %d: %w", len(ids)+1, err)
				}
				ids = append(ids, id)
			}
			karmada, err := program.Karmada(karmadaContext).Config()
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := bootstraptoken.Delete(cmd.Context(), karmada, id); err != nil {
					return advised(err)
				}
				fmt.Fprintf(program.Out, "bootstrap token %q deleted\n", id)
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeIDs(cmd.Context(), program.Karmada(karmadaContext), args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	return cmd
}

// completeIDs are the IDs that were not given yet, with what the tokens are for;
// nothing if the control plane does not answer.
func completeIDs(ctx context.Context, karmada command.Access, given []string) []string {
	config, err := karmada.Config()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	tokens, _, err := bootstraptoken.List(ctx, config)
	if err != nil {
		return nil
	}
	var ids []string
	for _, token := range tokens {
		if !slices.Contains(given, token.ID) {
			ids = append(ids, cobra.CompletionWithDesc(token.ID, token.Description))
		}
	}
	return ids
}

func advised(err error) error {
	if advice := registration.Advice(err, "the control plane"); advice != "" {
		return fmt.Errorf("%w\n%s", err, advice)
	}
	return err
}
