package command

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
)

// CompletionTimeout limits how long a shell waits for completions.
const CompletionTimeout = 3 * time.Second

// ClusterClient reads and writes the Clusters of a control plane.
type ClusterClient struct {
	// Karmada is a client that knows only the kind Cluster.
	Karmada client.Client
	host    string
}

// NewClusterClient returns a client of the control plane. It sends no request.
func NewClusterClient(config *rest.Config) (ClusterClient, error) {
	kind := clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster)
	karmada, err := NewKindClient(config, kind, meta.RESTScopeRoot, clusterv1alpha1.AddToScheme)
	if err != nil {
		return ClusterClient{}, err
	}
	return ClusterClient{Karmada: karmada, host: config.Host}, nil
}

// ProxyURL returns the URL of a member in the cluster proxy, which uses the caller's credentials. host is the address of the
// control plane.
func ProxyURL(host, cluster string) string {
	return fmt.Sprintf("%s/apis/%s/clusters/%s/proxy", strings.TrimRight(host, "/"), clusterv1alpha1.GroupVersion, cluster)
}

// Get returns the named Cluster. If it does not exist, the error lists the existing Clusters.
func (c ClusterClient) Get(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := c.Karmada.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		if names, listErr := c.Names(ctx); listErr == nil {
			return nil, VerifyClustersExist([]string{name}, names)
		}
	}
	if err != nil {
		return nil, c.WrapError(fmt.Sprintf("reading Cluster %q", name), err)
	}
	// The client removes the kind from the object, but later errors need it.
	cluster.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster))
	return cluster, nil
}

// Names returns the names of all Clusters, sorted.
func (c ClusterClient) Names(ctx context.Context) ([]string, error) {
	return c.SelectNames(ctx, labels.Everything())
}

// SelectNames returns the names of the Clusters with matching labels, sorted.
func (c ClusterClient) SelectNames(ctx context.Context, selector labels.Selector) ([]string, error) {
	list := &clusterv1alpha1.ClusterList{}
	if err := c.Karmada.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, c.WrapError("listing Clusters", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// WrapError adds to err the failed action, the control plane and, if there is one, a remedy.
func (c ClusterClient) WrapError(action string, err error) error {
	err = fmt.Errorf("%s in the control plane (%s): %w", action, c.host, err)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w\nCheck that this is a Karmada control plane: --kubeconfig sets its kubeconfig, --karmada-context its context", err)
	}
	if advice := registration.Advice(err, "the control plane"); advice != "" {
		return fmt.Errorf("%w\n%s", err, advice)
	}
	return err
}

// VerifyClustersExist returns an error if a wanted Cluster does not exist. The error lists the missing and the existing
// Clusters.
func VerifyClustersExist(wanted, existing []string) error {
	var missing []string
	for _, name := range wanted {
		if !slices.Contains(existing, name) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	available := "the control plane has " + strings.Join(existing, ", ")
	if len(existing) == 0 {
		available = "the control plane has no members yet"
	}
	errs := make([]string, 0, len(missing))
	for _, name := range missing {
		errs = append(errs, apierrors.NewNotFound(clusterv1alpha1.Resource(clusterv1alpha1.ResourcePluralCluster), name).Error())
	}
	return fmt.Errorf("%s: %s", strings.Join(errs, ", "), available)
}

// CompleteCluster completes the first argument with the names of Clusters.
func (p *Program) CompleteCluster(karmadaContext *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.clusterNames(cmd.Context(), *karmadaContext), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteTaint completes the first argument with the type clusters, and all others with names of Clusters.
func (p *Program) CompleteTaint(karmadaContext *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []string{"clusters"}, cobra.ShellCompDirectiveNoFileComp
		}
		return p.clusterNames(cmd.Context(), *karmadaContext), cobra.ShellCompDirectiveNoFileComp
	}
}

// clusterNames returns the names of the Clusters for completion, or nil if the control plane does not respond.
func (p *Program) clusterNames(ctx context.Context, karmadaContext string) []string {
	config, err := p.KarmadaKubeconfig(karmadaContext).Config()
	if err != nil {
		return nil
	}
	clusters, err := NewClusterClient(config)
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, CompletionTimeout)
	defer cancel()
	names, err := clusters.Names(ctx)
	if err != nil {
		return nil
	}
	return names
}

// CompleteClusters completes a flag whose value is a name of a Cluster or a comma-separated list of names.
func (p *Program) CompleteClusters(cmd *cobra.Command, flag string, karmadaContext *string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		return completeList(prefix, p.clusterNames(cmd.Context(), *karmadaContext)), cobra.ShellCompDirectiveNoFileComp
	})
}

// CompleteClusterPrefix completes a flag whose value starts with the name of a Cluster and the separator.
func (p *Program) CompleteClusterPrefix(cmd *cobra.Command, flag, separator string, karmadaContext *string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if strings.Contains(prefix, separator) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names := p.clusterNames(cmd.Context(), *karmadaContext)
		for i := range names {
			names[i] += separator
		}
		return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
	})
}

// completeList returns one completion for each name that the comma-separated list in prefix does not contain yet.
func completeList(prefix string, names []string) []string {
	before := prefix[:strings.LastIndex(prefix, ",")+1]
	listed := strings.Split(before, ",")
	var lists []string
	for _, name := range names {
		if !slices.Contains(listed, name) {
			lists = append(lists, before+name)
		}
	}
	return lists
}

// completeContexts completes a flag with the contexts of the kubeconfig at path.
func (p *Program) completeContexts(cmd *cobra.Command, flag string, path func() string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		contexts, err := Kubeconfig{Path: path()}.Contexts()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return contexts, cobra.ShellCompDirectiveNoFileComp
	})
}
