package registration

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	domaincluster "karmada.io/karmada/internal/domain/cluster"
)

const (
	// lookTimeout bounds finding out what holds a Cluster.
	lookTimeout = 10 * time.Second
	// pageSize is how many objects are listed at once.
	pageSize = 500
	// namedBindings is how many bindings are named of those that hold a Cluster.
	namedBindings = 3
	// releases is how many Works are let go at once.
	releases = 16
)

// removal takes a Cluster out of the control plane.
type removal struct {
	cluster *clusterv1alpha1.Cluster
	// wait is how long it may take to go.
	wait time.Duration
	// force takes its finalizers off when it has not gone by then.
	force bool
}

// remove deletes a Cluster and waits until it is gone, or makes it go. It ends
// within twice the wait and some seconds, whoever does not answer.
func (s *side) remove(ctx context.Context, of removal) error {
	if why := domaincluster.Stays(of.cluster); why != "" {
		s.log.printf("Cluster %s is not Ready (%s): unless it comes back by then, what was propagated to it stays there", of.cluster.Name, why)
	}
	waiting, cancel := context.WithTimeout(ctx, of.wait)
	defer cancel()
	// Only the Cluster that was looked at may be deleted.
	if err := s.delete(waiting, of.cluster); err != nil {
		return err
	}
	err := s.awaitGone(waiting, of.cluster)
	if err == nil || waiting.Err() == nil || ctx.Err() != nil {
		return err
	}
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	holders := s.holders(looking, of.cluster)
	if !of.force {
		return fmt.Errorf("cluster %q was deleted and is not gone after %s:%s\nIt goes on leaving. Give it more time with --wait, or repeat with --force to leave what was propagated in the member",
			of.cluster.Name, of.wait, listed(holders))
	}
	s.log.printf("Cluster %s is not gone after %s:%s\nTaking off its finalizers: what was propagated to it stays there", of.cluster.Name, of.wait, listed(holders))
	forcing, cancel := context.WithTimeout(ctx, max(of.wait, undoTimeout))
	defer cancel()
	return s.release(forcing, of.cluster)
}

func listed(holders []string) string {
	if len(holders) == 0 {
		return " nothing that can be seen holds it"
	}
	return "\n- " + strings.Join(holders, "\n- ")
}

// holders finds out what keeps a Cluster. What cannot be found out is told instead.
func (s *side) holders(ctx context.Context, cluster *clusterv1alpha1.Cluster) []string {
	leaving, err := s.leaving(ctx, cluster)
	holders := leaving.Holders()
	if err != nil {
		holders = append(holders, fmt.Sprintf("not all could be found out: %v", err))
	}
	return holders
}

func (s *side) leaving(ctx context.Context, cluster *clusterv1alpha1.Cluster) (domaincluster.Leaving, error) {
	leaving := domaincluster.Leaving{Cluster: cluster}
	stored, err := s.get(ctx, cluster)
	if now, ok := stored.(*clusterv1alpha1.Cluster); ok {
		leaving.Cluster = now
	}
	space, spaceErr := s.get(ctx, executionSpace(cluster.Name))
	leaving.SpaceStays = space != nil && space.GetDeletionTimestamp().IsZero()
	works := &workv1alpha1.WorkList{}
	worksErr := s.api.List(ctx, works, client.InNamespace(executionSpace(cluster.Name).Name), client.Limit(pageSize))
	if leaving.Works = len(works.Items); leaving.Works > 0 {
		leaving.Work = works.Items[0].Namespace + "/" + works.Items[0].Name
	}
	if works.RemainingItemCount != nil {
		leaving.Works += int(*works.RemainingItemCount)
	}
	var bindingsErr error
	leaving.Bindings, bindingsErr = s.bindingsTo(ctx, cluster.Name)
	return leaving, errors.Join(err, spaceErr, worksErr, bindingsErr)
}

// bindingsTo names some bindings that are scheduled to a cluster.
func (s *side) bindingsTo(ctx context.Context, cluster string) (names []string, err error) {
	lists := []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}}
	for _, list := range lists {
		for next := true; next && len(names) < namedBindings; next = list.GetContinue() != "" {
			if err := s.api.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue())); err != nil {
				return names, fmt.Errorf("listing bindings: %w", err)
			}
			names = append(names, s.targeting(list, cluster)...)
		}
	}
	return names[:min(len(names), namedBindings)], nil
}

// targeting names the bindings of a list that are scheduled to a cluster.
func (s *side) targeting(list client.ObjectList, cluster string) (names []string) {
	lists := func(targets []workv1alpha2.TargetCluster) bool {
		return slices.ContainsFunc(targets, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster })
	}
	switch bindings := list.(type) {
	case *workv1alpha2.ResourceBindingList:
		for i := range bindings.Items {
			if lists(bindings.Items[i].Spec.Clusters) {
				names = append(names, s.describe(&bindings.Items[i]))
			}
		}
	case *workv1alpha2.ClusterResourceBindingList:
		for i := range bindings.Items {
			if lists(bindings.Items[i].Spec.Clusters) {
				names = append(names, s.describe(&bindings.Items[i]))
			}
		}
	}
	return names
}

func executionSpace(cluster string) *corev1.Namespace {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: clusterv1alpha1.ExecutionSpacePrefix + cluster}}
}

// release lets the Works, the execution namespace and the Cluster go. The
// namespace is deleted first, so that no controller puts a finalizer back. What
// fails on the way does not keep the Cluster: its controller lets go of the rest.
func (s *side) release(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	space := executionSpace(cluster.Name)
	failures := []error{s.delete(ctx, space), s.releaseWorks(ctx, space.Name)}
	for _, object := range []client.Object{space, cluster} {
		failures = append(failures, s.takeFinalizers(ctx, object))
	}
	err := s.awaitGone(ctx, cluster)
	if failed := errors.Join(failures...); failed != nil && err == nil {
		s.log.printf("warning: Cluster %s is gone, and some of what it had is left: %v", cluster.Name, failed)
		return nil
	}
	if wait.Interrupted(err) {
		err = fmt.Errorf("cluster %q is still there although its finalizers were taken off; somebody puts them back: %w", cluster.Name, err)
	}
	return errors.Join(append(failures, err)...)
}

// releaseWorks deletes the Works of a namespace and takes their finalizers off.
func (s *side) releaseWorks(ctx context.Context, namespace string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(releases)
	works := &workv1alpha1.WorkList{}
	for next := true; next; next = works.Continue != "" {
		if err := s.api.List(ctx, works, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(works.Continue)); err != nil {
			return errors.Join(group.Wait(), fmt.Errorf("listing the Works in %s: %w", namespace, err))
		}
		for i := range works.Items {
			of := works.Items[i].DeepCopy()
			group.Go(func() error { return s.releaseWork(ctx, of) })
		}
	}
	return group.Wait()
}

func (s *side) releaseWork(ctx context.Context, of *workv1alpha1.Work) error {
	if of.DeletionTimestamp == nil {
		uid := of.UID
		if err := s.api.Delete(ctx, of.DeepCopy(), client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return s.explain("deleting", of, err)
		}
	}
	return s.takeFinalizers(ctx, of)
}
