package kubectl

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
)

type topQuotaOptions struct {
	command.ClientFlags
	allNamespaces, noHeaders bool
}

func newTopQuota(program *command.Program) *cobra.Command {
	o := &topQuotaOptions{ClientFlags: command.ClientFlags{Program: program}}
	cmd := &cobra.Command{
		Use:     "quota [NAME]",
		Aliases: []string{"quotas", "frq"},
		Short:   "Show the usage of FederatedResourceQuotas",
		Long: `Show how much of each FederatedResourceQuota is used, in all clusters together and in each cluster
that has an assignment. The values are those of the quota's status.`,
		Example: program.Examples(`
			# Quotas of a namespace
			{{program}} top quota -n shop

			# All quotas
			{{program}} top quota -A`),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return command.NewUsageError("only one name can be given, not %d", len(args))
			}
			return nil
		},
		RunE:              func(cmd *cobra.Command, args []string) error { return o.run(cmd.Context(), args) },
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.AddFlags(cmd)
	o.AddNamespaceFlag(cmd, o.NewFactory(&command.Target{}, 0))
	cmd.Flags().BoolVarP(&o.allNamespaces, "all-namespaces", "A", false, "show the quotas of all namespaces")
	cmd.Flags().BoolVar(&o.noHeaders, "no-headers", false, "do not print the header line")
	return cmd
}

func (o *topQuotaOptions) run(ctx context.Context, args []string) error {
	if err := o.VerifyKubeconfig(); err != nil {
		return err
	}
	factory := o.NewFactory(&command.Target{}, 0)
	namespace, _, err := factory.ToRawKubeConfigLoader().Namespace()
	if err != nil {
		return err
	}
	if o.allNamespaces {
		namespace = ""
	}
	config, err := factory.ToRESTConfig()
	if err != nil {
		return err
	}
	karmada, err := command.NewKindClient(config, policyv1alpha1.GroupVersion.WithKind(policyv1alpha1.ResourceKindFederatedResourceQuota),
		meta.RESTScopeNamespace, policyv1alpha1.AddToScheme)
	if err != nil {
		return err
	}
	quotas, err := readQuotas(ctx, karmada, namespace, args)
	if err != nil {
		return err
	}
	if len(quotas) == 0 {
		o.Program.Messagef("No FederatedResourceQuotas found")
		return nil
	}
	return printTable(o.Program.Out, o.noHeaders, newQuotaTable(quotas, o.allNamespaces))
}

// readQuotas reads the quotas of a namespace, or of all namespaces if it is empty. args contains at most
// the name of a quota.
func readQuotas(
	ctx context.Context, karmada client.Reader, namespace string, args []string,
) ([]policyv1alpha1.FederatedResourceQuota, error) {
	if len(args) == 1 && namespace != "" {
		found := policyv1alpha1.FederatedResourceQuota{}
		err := karmada.Get(ctx, client.ObjectKey{Namespace: namespace, Name: args[0]}, &found)
		return []policyv1alpha1.FederatedResourceQuota{found}, err
	}
	var quotas []policyv1alpha1.FederatedResourceQuota
	err := command.ForEachPage(ctx, karmada, func(page *policyv1alpha1.FederatedResourceQuotaList) {
		for i := range page.Items {
			if len(args) == 0 || page.Items[i].Name == args[0] {
				quotas = append(quotas, page.Items[i])
			}
		}
	}, client.InNamespace(namespace))
	if err != nil {
		return nil, fmt.Errorf("listing FederatedResourceQuotas: %w", err)
	}
	return quotas, nil
}

// allClusters is the cluster in rows about all clusters together.
const allClusters = "(all)"

func newQuotaTable(quotas []policyv1alpha1.FederatedResourceQuota, showsNamespace bool) table {
	result := table{header: []string{"NAME", "CLUSTER", "RESOURCE", "USED", "LIMIT", "USED%"}}
	if showsNamespace {
		result.header = append([]string{"NAMESPACE"}, result.header...)
	}
	for i := range quotas {
		quota := &quotas[i]
		addRows := func(cluster string, limits, used corev1.ResourceList) {
			for _, name := range slices.Sorted(maps.Keys(limits)) {
				limit, usage := limits[name], used[name]
				row := []string{quota.Name, cluster, string(name), usage.String(), limit.String(), formatPercentage(usage, limit)}
				if showsNamespace {
					row = append([]string{quota.Namespace}, row...)
				}
				result.rows = append(result.rows, row)
			}
		}
		addRows(allClusters, quota.Spec.Overall, quota.Status.OverallUsed)
		for _, reported := range quota.Status.AggregatedStatus {
			addRows(reported.ClusterName, reported.Hard, reported.Used)
		}
	}
	return result
}
