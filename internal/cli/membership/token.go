package membership

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
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/client-go/rest"
	bootstrapapi "k8s.io/cluster-bootstrap/token/api"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/agent"
	"karmada.io/karmada/internal/registration"
)

// NewToken returns the command that groups the token commands.
func NewToken(program *command.Program) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage bootstrap tokens for the registration of clusters",
		Long: `Manage bootstrap tokens for the registration of clusters in pull mode.

Anyone who knows a token can register a cluster under an unused name. A token can register
any number of clusters until it expires or is deleted. Registered clusters no longer need
the token.`,
		Example: program.Examples(`
			# Create a token and print a complete register command
			{{program}} token create --print-register-command`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newTokenCreate(program), newTokenList(program), newTokenDelete(program))
	return cmd
}

func newTokenCreate(program *command.Program) *cobra.Command {
	var (
		karmadaContext string
		token          registration.Token
		ttl            time.Duration
		printCommand   bool
	)
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it",
		Long:  "Create a token with which clusters can register, and print the token or a complete register command.",
		Example: program.Examples(`
			# Create a token that is valid for a day
			{{program}} token create

			# Print a register command that is valid for an hour
			{{program}} token create --print-register-command --ttl=1h --description="for the edge team"

			# Create a token that registers only the cluster "east", with this label and in this region
			{{program}} token create --cluster-name=east --cluster-labels=tier=bronze --cluster-region=eu-west`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := validateTokenCreate(token, ttl, printCommand); err != nil {
				return err
			}
			karmada, err := program.KarmadaKubeconfig(karmadaContext).Config()
			if err != nil {
				return err
			}
			var (
				endpoint string
				pins     []registration.Pin
			)
			if printCommand {
				if endpoint, err = registerEndpoint(karmada); err != nil {
					return err
				}
				if pins, err = registration.CAPins(karmada); err != nil {
					return err
				}
			}
			if ttl > 0 {
				token.Expires = time.Now().Add(ttl)
			}
			created, err := registration.CreateToken(cmd.Context(), karmada, token)
			if err != nil {
				return appendAdvice(err)
			}
			if printCommand {
				fmt.Fprintln(program.Out, registerCommand(program.Name, endpoint, created, pins))
				return nil
			}
			fmt.Fprintln(program.Out, created)
			return nil
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	flags := cmd.Flags()
	flags.StringVar(&token.Description, "description", "", "description of the token")
	flags.StringSliceVar(&token.Groups, "groups", []string{agent.BootstrapGroup},
		"groups of the requests with the token; the default group may register clusters")
	addTokenScopeFlags(flags, &token.Scope)
	flags.BoolVar(&printCommand, "print-register-command", false, "print a complete register command instead of the token")
	flags.DurationVar(&ttl, "ttl", registration.DefaultTokenTTL, "lifetime of the token; 0 means that it does not expire")
	flags.StringSliceVar(&token.Usages, "usages", []string{registration.UsageSigning, registration.UsageAuthentication},
		"usages of the token: signing, authentication; registration needs both")
	return cmd
}

// addTokenScopeFlags adds the flags that limit which clusters can be registered with a token.
func addTokenScopeFlags(flags *pflag.FlagSet, scope *agent.Scope) {
	flags.StringVar(&scope.ClusterName, "cluster-name", "",
		"only name of a cluster that can be registered with the token; any free name if empty")
	const others = "; if one of labels, provider, region and zones is given, the clusters of the token have exactly the given ones"
	flags.StringToStringVar(&scope.Labels, "cluster-labels", nil,
		"labels of the clusters that are registered with the token, such as tier=bronze,team=edge"+others)
	flags.StringVar(&scope.Provider, "cluster-provider", "", "provider of the clusters that are registered with the token"+others)
	flags.StringVar(&scope.Region, "cluster-region", "", "region of the clusters that are registered with the token"+others)
	flags.StringSliceVar(&scope.Zones, "cluster-zones", nil, "zones of the clusters that are registered with the token"+others)
}

func validateTokenCreate(token registration.Token, ttl time.Duration, printCommand bool) error {
	if ttl < 0 {
		return command.NewUsageError("--ttl must not be negative: %s; 0 means that the token does not expire", ttl)
	}
	if err := token.Validate(); err != nil {
		return command.NewUsageError("%w", err)
	}
	for _, usage := range []string{registration.UsageSigning, registration.UsageAuthentication} {
		if printCommand && len(token.Usages) > 0 && !slices.Contains(token.Usages, usage) {
			return command.NewUsageError("--print-register-command needs a token with usage %s, which --usages does not contain", usage)
		}
	}
	return nil
}

// registerEndpoint returns the address of the control plane as host:port, as the command register requires.
func registerEndpoint(karmada *rest.Config) (string, error) {
	server, err := url.Parse(registration.Endpoint(karmada))
	if err != nil {
		return "", fmt.Errorf("reading the address of the control plane: %w", err)
	}
	if strings.Trim(server.Path, "/") != "" {
		return "", fmt.Errorf("the kubeconfig has the address %s, but clusters register at host and port without a path: choose a kubeconfig or context with the address of the API server itself", karmada.Host)
	}
	return net.JoinHostPort(server.Hostname(), cmp.Or(server.Port(), "443")), nil
}

// RegisterCommand returns the command line that registers a cluster with the token. It contains the address and the pins of
// the certificate authorities in karmada, the client configuration of the control plane.
func RegisterCommand(program string, karmada *rest.Config, token registration.Token) (string, error) {
	endpoint, err := registerEndpoint(karmada)
	if err != nil {
		return "", err
	}
	pins, err := registration.CAPins(karmada)
	if err != nil {
		return "", err
	}
	return registerCommand(program, endpoint, token, pins), nil
}

func registerCommand(program, endpoint string, token registration.Token, pins []registration.Pin) string {
	hashes := make([]string, 0, len(pins))
	for _, pin := range pins {
		hashes = append(hashes, pin.String())
	}
	line := fmt.Sprintf("%s register %s --token %s --discovery-token-ca-cert-hash %s", program, endpoint, token, strings.Join(hashes, ","))
	if token.Scope.ClusterName != "" {
		line += " --cluster-name " + token.Scope.ClusterName
	}
	return line
}

func newTokenList(program *command.Program) *cobra.Command {
	var (
		karmadaContext string
		format         console.Format
	)
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List tokens",
		Long:  "List the tokens of the control plane. Anyone who sees a token can use it.",
		Example: program.Examples(`
			# List all tokens
			{{program}} token list

			# Delete all tokens
			{{program}} token list -o name | xargs {{program}} token delete`),
		Args: command.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			karmada, err := program.KarmadaKubeconfig(karmadaContext).Config()
			if err != nil {
				return err
			}
			tokens, malformed, err := registration.ListTokens(cmd.Context(), karmada)
			if err != nil {
				return appendAdvice(err)
			}
			for _, problem := range malformed {
				program.Messagef("skipped: %v", problem)
			}
			return format.Print(program.Out, newTokenOutput(tokens, time.Now()))
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	format.AddFlag(cmd)
	return cmd
}

func newTokenDelete(program *command.Program) *cobra.Command {
	var karmadaContext string
	cmd := &cobra.Command{
		Use:   "delete [token-value] ...",
		Short: "Delete tokens",
		Long:  "Delete tokens, so that no cluster can register with them. Registered clusters stay.",
		Example: program.Examples(`
			# Delete a token by its first six characters
			{{program}} token delete abcdef`),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return command.NewUsageError("the token is missing: pass the whole token or its first six characters")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var ids []string
			for _, arg := range args {
				id, err := registration.ParseTokenID(arg)
				if err != nil {
					// The error does not contain the argument, because the argument may be a
					// mistyped secret.
					return command.NewUsageError("argument %d: %w", len(ids)+1, err)
				}
				ids = append(ids, id)
			}
			karmada, err := program.KarmadaKubeconfig(karmadaContext).Config()
			if err != nil {
				return err
			}
			for _, id := range ids {
				if err := registration.DeleteToken(cmd.Context(), karmada, id); err != nil {
					return appendAdvice(err)
				}
				fmt.Fprintf(program.Out, "bootstrap token %q deleted\n", id)
			}
			return nil
		},
		ValidArgsFunction: func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			return completeTokenIDs(cmd.Context(), program.KarmadaKubeconfig(karmadaContext), args), cobra.ShellCompDirectiveNoFileComp
		},
	}
	program.AddKarmadaContext(cmd, &karmadaContext)
	return cmd
}

// completeTokenIDs returns the IDs and descriptions of the tokens whose ID is not among the given arguments. It returns nil if
// the control plane does not respond.
func completeTokenIDs(ctx context.Context, karmada command.Kubeconfig, given []string) []string {
	config, err := karmada.Config()
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, command.CompletionTimeout)
	defer cancel()
	tokens, _, err := registration.ListTokens(ctx, config)
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

// appendAdvice adds to err what the user can do, if that is known.
func appendAdvice(err error) error {
	if advice := registration.Advice(err, "the control plane"); advice != "" {
		return fmt.Errorf("%w\n%s", err, advice)
	}
	return err
}

// listedToken is a token in JSON and YAML output. It has the same fields as the output of kubeadm.
type listedToken struct {
	Token       string     `json:"token"`
	Description string     `json:"description,omitempty"`
	Expires     *time.Time `json:"expires,omitempty"` // nil means never
	Usages      []string   `json:"usages,omitempty"`
	Groups      []string   `json:"groups,omitempty"`
	// Scope limits which clusters can be registered with the token.
	Scope *agent.Scope `json:"scope,omitempty"`
}

// newTokenOutput returns the tokens for all output formats. The name of a token is its ID, which "token delete" accepts.
func newTokenOutput(tokens []registration.Token, now time.Time) console.Output {
	list := console.Output{
		Header:        []string{"TOKEN", "TTL", "EXPIRES", "USAGES", "DESCRIPTION", "EXTRA GROUPS", "SECRET", "SCOPE"},
		NarrowColumns: 6, ColumnGap: 3,
	}
	objects := make([]listedToken, 0, len(tokens))
	for _, token := range tokens {
		ttl, expires := formatLifetime(token, now)
		list.Rows = append(list.Rows, []string{
			token.String(), ttl, expires,
			console.OrNone(strings.Join(token.Usages, ",")), console.OrNone(token.Description), console.OrNone(strings.Join(token.Groups, ",")),
			"kube-system/" + bootstrapapi.BootstrapTokenSecretPrefix + token.ID, console.OrNone(token.Scope.String()),
		})
		list.Names = append(list.Names, token.ID)
		object := listedToken{Token: token.String(), Description: token.Description, Usages: token.Usages, Groups: token.Groups}
		if !token.Expires.IsZero() {
			object.Expires = &token.Expires
		}
		if !token.Scope.IsEmpty() {
			object.Scope = &token.Scope
		}
		objects = append(objects, object)
	}
	list.Object = map[string]any{"tokens": objects}
	return list
}

// formatLifetime returns the remaining lifetime and the expiration time of a token.
func formatLifetime(token registration.Token, now time.Time) (ttl, expires string) {
	if token.Expires.IsZero() {
		return "<forever>", "<never>"
	}
	expires = token.Expires.Format(time.RFC3339)
	remaining := token.Expires.Sub(now)
	if remaining <= 0 {
		return "<expired>", expires
	}
	return duration.ShortHumanDuration(remaining), expires
}
