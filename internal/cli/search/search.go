// Package search prints the objects of all members that match a query. It sends the query to
// karmada-search, which responds from its cache: no member is queried.
//
// The command parses the query before it sends a request, so that it can show the position of a syntax error. The server, which
// may have another version, parses the query again.
package search

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/console"
	"karmada.io/karmada/internal/domain/searchquery"
)

// The limits of the number of objects.
const (
	defaultLimit = 500
	// maxPage is the maximum number of objects in one response.
	maxPage = 5000
)

type options struct {
	command.ClientFlags
	timeout command.RequestTimeout
	format  console.Format

	clusters []string
	watch    bool
	all      bool
	limit    int
	// query is the query with the conditions of the flags.
	query string
}

// New returns the command that searches objects in all members.
func New(program *command.Program) *cobra.Command {
	o := &options{ClientFlags: command.ClientFlags{Program: program}}
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Search objects in all members",
		Long: `Search objects in all members. karmada-search responds from its cache, which contains the
kinds and clusters that ResourceRegistries select. You see the objects that you may list in each member.

A query has terms that must all match: text that is a word of the object, or a field with an
operator and a value. OR, NOT and parentheses are possible.

  nginx "image pull"        words, a phrase; * is a wildcard
  kind:Pod image:nginx:1.19 the field contains the words; * is a wildcard
  name=web phase!=Running   the field has exactly this value, or another one
  restarts>3 age<1h         numbers, quantities and times; also >= and <=
  label.app=web -node:n1    a label; a leading - or NOT negates a term
  spec.replicas>=3          any field

Other fields: ` + fieldList() + `.
Quote a query in the shell, because it can contain < > * and ( ). Write -- before a query that
begins with -.

The output is sorted by cluster, namespace, name and kind. With -o name, a line is
CLUSTER/NAMESPACE/KIND.GROUP/NAME, with - as the namespace of an object without namespace.`,
		Example: program.Examples(`
			# Pods that do not run, in all clusters whose name begins with eu-
			{{program}} search 'kind:Pod phase!=Running cluster:eu-*'

			# All objects that contain a word, in one namespace
			{{program}} search -n shop nginx

			# Watch the Pods that restart
			{{program}} search 'kind:Pod restarts>3' --watch

			# All matches for a program
			{{program}} search label.app=web --all -o json`),
		Args:              func(_ *cobra.Command, args []string) error { return o.validate(args) },
		RunE:              func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
		ValidArgsFunction: o.complete,
		SuggestFor:        []string{"find", "query"},
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error {
		return command.NewUsageError("%w; a query that begins with - needs -- before it", err)
	})
	o.AddFlags(cmd)
	o.timeout.AddFlag(cmd)
	o.format.AddFlag(cmd)
	flags := cmd.Flags()
	o.AddNamespaceFlag(cmd, o.NewFactory(&command.Target{}, 0))
	cmd.Flag("namespace").Usage = "only objects in this namespace; all namespaces if empty"
	flags.StringSliceVarP(&o.clusters, "cluster", "C", nil, "only objects of these members, comma separated; * is a wildcard")
	o.Program.CompleteClusters(cmd, "cluster", &o.Context)
	flags.BoolVarP(&o.watch, "watch", "w", false, "watch for changes after the current matches")
	flags.IntVar(&o.limit, "limit", defaultLimit, "maximum number of objects to show")
	flags.BoolVar(&o.all, "all", false, "show all matches, without a limit")
	cmd.MarkFlagsMutuallyExclusive("all", "limit")
	cmd.MarkFlagsMutuallyExclusive("watch", "limit")
	cmd.MarkFlagsMutuallyExclusive("watch", "all")
	return cmd
}

func fieldList() string {
	names := slices.DeleteFunc(searchquery.FieldNames(), func(name string) bool { return strings.HasSuffix(name, ".") })
	return strings.Join(names, ", ") + ", label.KEY, annotation.KEY"
}

// flagValue matches values that need no quotes in a query.
var flagValue = regexp.MustCompile(`^[a-zA-Z0-9.*-]+$`)

// validate returns a usage error if the query or flags are wrong. It sends no request.
func (o *options) validate(args []string) error {
	text := strings.TrimSpace(strings.Join(args, " "))
	if text == "" && o.Namespace == "" && len(o.clusters) == 0 {
		return command.NewUsageError("the query is missing; \"%s search kind:Pod\" shows all Pods", o.Program.Name)
	}
	if o.limit < 1 {
		return command.NewUsageError("--limit %d: must be at least 1", o.limit)
	}
	for flag, values := range map[string][]string{"--namespace": {o.Namespace}, "--cluster": o.clusters} {
		for _, value := range values {
			if value != "" && !flagValue.MatchString(value) {
				return command.NewUsageError("%s %q: only letters, digits, -, . and * are allowed", flag, value)
			}
		}
	}
	if text != "" {
		if _, err := searchquery.Parse(text); err != nil {
			return command.NewUsageError("%w", explainSyntax(text, err))
		}
	}
	o.query = o.withFlags(text)
	return nil
}

// withFlags returns the query with terms for the flags --namespace and --cluster.
func (o *options) withFlags(text string) string {
	var terms []string
	if text != "" {
		terms = append(terms, text)
	}
	if o.Namespace != "" || len(o.clusters) > 0 {
		if text != "" {
			terms[0] = "(" + text + ")"
		}
	}
	if o.Namespace != "" {
		terms = append(terms, "namespace="+o.Namespace)
	}
	if len(o.clusters) > 0 {
		var clusters []string
		for _, cluster := range o.clusters {
			clusters = append(clusters, clusterTerm(cluster))
		}
		terms = append(terms, "("+strings.Join(clusters, " OR ")+")")
	}
	return strings.Join(terms, " ")
}

// clusterTerm returns the term that matches the cluster, which can contain wildcards.
func clusterTerm(cluster string) string {
	if strings.Contains(cluster, "*") {
		return "cluster:" + cluster
	}
	return "cluster=" + cluster
}

func (o *options) run(ctx context.Context) error {
	if err := o.VerifyKubeconfig(); err != nil {
		return err
	}
	if o.watch {
		return o.watchResults(ctx)
	}
	return o.list(ctx)
}

// explainSyntax returns an error that shows the position of a syntax error below the query.
func explainSyntax(query string, err error) error {
	var syntax *searchquery.SyntaxError
	if !errors.As(err, &syntax) {
		return err
	}
	return pointAt(query, syntax.Column, err)
}

// pointAt returns an error that shows the query with a caret below the column. Column 1 is the first character.
func pointAt(query string, column int, err error) error {
	if column < 1 || strings.ContainsAny(query, "\n\r\t") {
		return err
	}
	return fmt.Errorf("%w\n  %s\n  %s^", err, query, strings.Repeat(" ", column-1))
}

// complete completes the last word of the query with fields, or with names of clusters after cluster:.
func (o *options) complete(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if typed, isCluster := strings.CutPrefix(prefix, "cluster:"); isCluster {
		return o.completeClusters(cmd.Context(), typed), cobra.ShellCompDirectiveNoFileComp
	}
	var fields []string
	for _, name := range searchquery.FieldNames() {
		if !strings.HasPrefix(name, prefix) {
			continue
		}
		if !strings.HasSuffix(name, ".") {
			name += ":"
		}
		fields = append(fields, name)
	}
	return fields, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

func (o *options) completeClusters(ctx context.Context, typed string) []string {
	clusters, err := o.ClusterClient()
	if err != nil {
		return nil
	}
	names, err := clusters.Names(ctx)
	if err != nil {
		return nil
	}
	var terms []string
	for _, name := range names {
		if strings.HasPrefix(name, typed) {
			terms = append(terms, "cluster:"+name)
		}
	}
	return terms
}
