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
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/registration"
)

// CompletionTimeout is how long a shell waits for names after a press of Tab.
const CompletionTimeout = 3 * time.Second

// Clusters are the Clusters of a control plane.
type Clusters struct {
	// Karmada reads and writes Clusters, and nothing else.
	Karmada client.Client
	host    string
}

// OpenClusters makes a client of the control plane. Nothing is asked yet.
func OpenClusters(config *rest.Config) (Clusters, error) {
	scheme := runtime.NewScheme()
	if err := clusterv1alpha1.AddToScheme(scheme); err != nil {
		return Clusters{}, fmt.Errorf("registering API types: %w", err)
	}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster), meta.RESTScopeRoot)
	karmada, err := client.New(config, client.Options{Scheme: scheme, Mapper: mapper})
	if err != nil {
		return Clusters{}, fmt.Errorf("making a client of the control plane (%s): %w", config.Host, err)
	}
	return Clusters{Karmada: karmada, host: config.Host}, nil
}

// ProxyURL is where a member is reached through the control plane at host, with
// the caller's own credentials.
func ProxyURL(host, cluster string) string {
	return fmt.Sprintf("%s/apis/%s/clusters/%s/proxy", strings.TrimRight(host, "/"), clusterv1alpha1.GroupVersion, cluster)
}

// Get returns a Cluster. If there is none of that name, the error lists those
// that there are.
func (c Clusters) Get(ctx context.Context, name string) (*clusterv1alpha1.Cluster, error) {
	cluster := &clusterv1alpha1.Cluster{}
	err := c.Karmada.Get(ctx, client.ObjectKey{Name: name}, cluster)
	if apierrors.IsNotFound(err) {
		if names, listErr := c.Names(ctx); listErr == nil {
			return nil, Missing([]string{name}, names)
		}
	}
	if err != nil {
		return nil, c.Explain(fmt.Sprintf("reading Cluster %q", name), err)
	}
	// The client drops the kind, which errors name later.
	cluster.SetGroupVersionKind(clusterv1alpha1.GroupVersion.WithKind(clusterv1alpha1.ResourceKindCluster))
	return cluster, nil
}

// Names are the names of all Clusters, sorted.
func (c Clusters) Names(ctx context.Context) ([]string, error) {
	return c.Selected(ctx, labels.Everything())
}

// Selected are the names of the Clusters with certain labels, sorted.
func (c Clusters) Selected(ctx context.Context, selector labels.Selector) ([]string, error) {
	list := &clusterv1alpha1.ClusterList{}
	if err := c.Karmada.List(ctx, list, client.MatchingLabelsSelector{Selector: selector}); err != nil {
		return nil, c.Explain("listing Clusters", err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// Explain says what could not be done, where, and what helps.
func (c Clusters) Explain(doing string, err error) error {
	err = fmt.Errorf("%s in the control plane (%s): %w", doing, c.host, err)
	if apierrors.IsNotFound(err) {
		return fmt.Errorf("%w\nIs this a Karmada control plane? Its kubeconfig is chosen with --kubeconfig, its context with --karmada-context", err)
	}
	if advice := registration.Advice(err, "the control plane"); advice != "" {
		return fmt.Errorf("%w\n%s", err, advice)
	}
	return err
}

// Missing returns an error that lists the wanted Clusters that do not exist, nil
// if all do.
func Missing(wanted, existing []string) error {
	var absent []string
	for _, name := range wanted {
		if !slices.Contains(existing, name) {
			absent = append(absent, name)
		}
	}
	if len(absent) == 0 {
		return nil
	}
	there := "the control plane has " + strings.Join(existing, ", ")
	if len(existing) == 0 {
		there = "the control plane has no members yet"
	}
	errs := make([]string, 0, len(absent))
	for _, name := range absent {
		errs = append(errs, apierrors.NewNotFound(clusterv1alpha1.Resource(clusterv1alpha1.ResourcePluralCluster), name).Error())
	}
	return fmt.Errorf("%s: %s", strings.Join(errs, ", "), there)
}

// CompleteCluster completes the name of a Cluster as the first argument.
func (p *Program) CompleteCluster(karmadaContext *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return p.clusterNames(cmd.Context(), *karmadaContext), cobra.ShellCompDirectiveNoFileComp
	}
}

// CompleteTaint completes the type and then names of Clusters.
func (p *Program) CompleteTaint(karmadaContext *string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) == 0 {
			return []string{"clusters"}, cobra.ShellCompDirectiveNoFileComp
		}
		return p.clusterNames(cmd.Context(), *karmadaContext), cobra.ShellCompDirectiveNoFileComp
	}
}

// clusterNames are what a shell may complete: nothing if the control plane does
// not answer.
func (p *Program) clusterNames(ctx context.Context, karmadaContext string) []string {
	config, err := p.Karmada(karmadaContext).Config()
	if err != nil {
		return nil
	}
	clusters, err := OpenClusters(config)
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

// CompleteClusters completes a flag that names a Cluster, or lists some with
// commas between them.
func (p *Program) CompleteClusters(cmd *cobra.Command, flag string, karmadaContext *string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(cmd *cobra.Command, _ []string, begun string) ([]string, cobra.ShellCompDirective) {
		return continued(begun, p.clusterNames(cmd.Context(), *karmadaContext)), cobra.ShellCompDirectiveNoFileComp
	})
}

// continued are the lists that begin as a user began, each with one more name.
func continued(begun string, names []string) []string {
	before := begun[:strings.LastIndex(begun, ",")+1]
	listed := strings.Split(before, ",")
	var lists []string
	for _, name := range names {
		if !slices.Contains(listed, name) {
			lists = append(lists, before+name)
		}
	}
	return lists
}

func (p *Program) completeContexts(cmd *cobra.Command, flag string, path func() string) {
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		contexts, err := Access{Path: path()}.Contexts()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return contexts, cobra.ShellCompDirectiveNoFileComp
	})
}
