package side

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

func listed(holders []string) string {
	if len(holders) == 0 {
		return " nothing that can be seen holds it"
	}
	return "\n- " + strings.Join(holders, "\n- ")
}

// holders returns what keeps a Cluster, a line for each object. The last line says what
// could not be read.
func (s *Side) holders(ctx context.Context, of Removal) []string {
	leaving, err := s.leaving(ctx, of.Cluster)
	holders := leaving.Holders()
	if of.More != nil {
		holders = append(holders, of.More(ctx, leaving.WorksLeft)...)
	}
	switch {
	case err != nil && !onlyRefused(err):
		holders = append(holders, fmt.Sprintf("not all could be found out: %v", err))
	case err != nil && len(holders) == 0:
		holders = append(holders, fmt.Sprintf("it may be an object that these credentials may not see: %v", err))
	}
	return holders
}

// onlyRefused reports whether all errors that were joined are refusals.
func onlyRefused(err error) bool {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return isRefused(err)
	}
	return !slices.ContainsFunc(joined.Unwrap(), func(each error) bool { return !isRefused(each) })
}

// leaving reads the objects that can keep a Cluster.
func (s *Side) leaving(ctx context.Context, cluster *clusterv1alpha1.Cluster) (domaincluster.LeavingCluster, error) {
	leaving := domaincluster.LeavingCluster{Cluster: cluster}
	stored, err := s.Get(ctx, cluster)
	if now, ok := stored.(*clusterv1alpha1.Cluster); ok {
		leaving.Cluster = now
	}
	space, spaceErr := s.Get(ctx, registration.ExecutionSpace(cluster.Name))
	if now, ok := space.(*corev1.Namespace); ok {
		leaving.Space = now
	}
	worksErr := s.readWorks(ctx, &leaving)
	bindingsErr := s.readBindings(ctx, &leaving)
	return leaving, errors.Join(err, spaceErr, worksErr, bindingsErr)
}

// readWorks reads the first Works of the Cluster, and the warnings about them.
func (s *Side) readWorks(ctx context.Context, leaving *domaincluster.LeavingCluster) error {
	inSpace := client.InNamespace(registration.ExecutionSpace(leaving.Cluster.Name).Name)
	works := &workv1alpha1.WorkList{}
	if err := s.API.List(ctx, works, inSpace, client.Limit(pageSize)); err != nil {
		return fmt.Errorf("listing Works: %w", err)
	}
	leaving.Works, leaving.WorksLeft = works.Items, len(works.Items)
	if works.RemainingItemCount != nil {
		leaving.WorksLeft += int(*works.RemainingItemCount)
	}
	if leaving.WorksLeft == 0 {
		return nil
	}
	events := &corev1.EventList{}
	if err := s.API.List(ctx, events, inSpace, client.Limit(pageSize), client.MatchingFields{"type": corev1.EventTypeWarning}); err != nil {
		return fmt.Errorf("listing events: %w", err)
	}
	leaving.Warnings = events.Items
	return nil
}

// readBindings reads the first bindings that list the Cluster.
func (s *Side) readBindings(ctx context.Context, leaving *domaincluster.LeavingCluster) error {
	lists := []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}}
	for _, list := range lists {
		for next := true; next && len(leaving.Bindings) <= namedBindings; next = list.GetContinue() != "" {
			if err := s.API.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue())); err != nil {
				return fmt.Errorf("listing bindings: %w", err)
			}
			leaving.Bindings = append(leaving.Bindings, targeting(list, leaving.Cluster.Name)...)
		}
	}
	if len(leaving.Bindings) > namedBindings {
		leaving.Bindings, leaving.MoreBindings = leaving.Bindings[:namedBindings], true
	}
	return nil
}

// targeting returns the bindings of a list that list the cluster in spec.clusters.
func targeting(list client.ObjectList, cluster string) (bindings []binding.Object) {
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
