package clusterclient

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	domaincluster "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/registration"
)

// formatBlockers returns the lines as a list that can be appended to a message.
func formatBlockers(blockers []string) string {
	if len(blockers) == 0 {
		return " no object that blocks the deletion was found"
	}
	return "\n- " + strings.Join(blockers, "\n- ")
}

// blockers describes each object that blocks the Cluster's deletion, one per line. If objects cannot be
// read, the last line contains the error.
func (c *Client) blockers(ctx context.Context, removal Removal) []string {
	leaving, err := c.readLeavingCluster(ctx, removal.Cluster)
	blockers := leaving.Blockers()
	if removal.ExtraBlockers != nil {
		blockers = append(blockers, removal.ExtraBlockers(ctx, leaving.WorkCount)...)
	}
	switch {
	case err != nil && !areAllDenied(err):
		blockers = append(blockers, fmt.Sprintf("not all objects could be read: %v", err))
	case err != nil && len(blockers) == 0:
		blockers = append(blockers, fmt.Sprintf("the deletion may be blocked by an object that these credentials may not read: %v", err))
	}
	return blockers
}

// areAllDenied reports whether each of the joined errors is Forbidden or Unauthorized.
func areAllDenied(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return isDenied(err)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(each error) bool { return !isDenied(each) })
}

// readLeavingCluster reads the objects that can block the Cluster's deletion.
func (c *Client) readLeavingCluster(ctx context.Context, cluster *clusterv1alpha1.Cluster) (domaincluster.DeletingCluster, error) {
	leaving := domaincluster.DeletingCluster{Cluster: cluster}
	stored, err := c.Get(ctx, cluster)
	if current, ok := stored.(*clusterv1alpha1.Cluster); ok {
		leaving.Cluster = current
	}
	namespace, namespaceErr := c.Get(ctx, registration.NewExecutionNamespace(cluster.Name))
	if current, ok := namespace.(*corev1.Namespace); ok {
		leaving.ExecutionNamespace = current
	}
	worksErr := c.readWorks(ctx, &leaving)
	bindingsErr := c.readBindings(ctx, &leaving)
	return leaving, errors.Join(err, namespaceErr, worksErr, bindingsErr)
}

// readWorks reads the first page of the Cluster's Works and the warning events about them.
func (c *Client) readWorks(ctx context.Context, leaving *domaincluster.DeletingCluster) error {
	inNamespace := client.InNamespace(registration.NewExecutionNamespace(leaving.Cluster.Name).Name)
	works := &workv1alpha1.WorkList{}
	if err := c.API.List(ctx, works, inNamespace, client.Limit(pageSize)); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	leaving.Works, leaving.WorkCount = works.Items, len(works.Items)
	if works.RemainingItemCount != nil {
		leaving.WorkCount += int(*works.RemainingItemCount)
	}
	if leaving.WorkCount == 0 {
		return nil
	}
	events := &corev1.EventList{}
	if err := c.API.List(ctx, events, inNamespace, client.Limit(pageSize),
		client.MatchingFields{"type": corev1.EventTypeWarning}); err != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	leaving.Warnings = events.Items
	return nil
}

// readBindings reads the first bindings that target the Cluster.
func (c *Client) readBindings(ctx context.Context, leaving *domaincluster.DeletingCluster) error {
	lists := []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}}
	for _, list := range lists {
		for next := true; next && len(leaving.Bindings) <= maxListedBindings; next = list.GetContinue() != "" {
			if err := c.API.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue())); err != nil {
				return fmt.Errorf("listing bindings: %w", err)
			}
			leaving.Bindings = append(leaving.Bindings, bindingsTargeting(list, leaving.Cluster.Name)...)
		}
	}
	if len(leaving.Bindings) > maxListedBindings {
		leaving.Bindings, leaving.MoreBindings = leaving.Bindings[:maxListedBindings], true
	}
	return nil
}

// bindingsTargeting returns the list's bindings that name the cluster in spec.clusters.
func bindingsTargeting(list client.ObjectList, cluster string) (bindings []binding.Object) {
	add := func(bound binding.Object) {
		if slices.ContainsFunc(bound.BindingSpec().Clusters, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster }) {
			bindings = append(bindings, bound)
		}
	}
	switch list := list.(type) {
	case *workv1alpha2.ResourceBindingList:
		for i := range list.Items {
			add(&list.Items[i])
		}
	case *workv1alpha2.ClusterResourceBindingList:
		for i := range list.Items {
			add(&list.Items[i])
		}
	}
	return bindings
}
