package side

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	domaincluster "karmada.io/karmada/internal/domain/cluster"
	"karmada.io/karmada/internal/registration"
)

const (
	// lookTimeout bounds finding out what holds a Cluster.
	lookTimeout = 10 * time.Second
	// tellPause is how long a Cluster may leave in silence.
	tellPause = 5 * time.Second
	// pageSize is how many objects are listed at once.
	pageSize = 500
	// namedBindings is how many bindings are named of those that hold a Cluster.
	namedBindings = 3
	// releases is how many Works are let go at once.
	releases = 16
)

// Removal takes a Cluster out of the control plane.
type Removal struct {
	Cluster *clusterv1alpha1.Cluster
	// Wait is how long it may take to go.
	Wait time.Duration
	// Force takes its finalizers off when it has not gone by then.
	Force bool
}

// Remove deletes a Cluster and waits until it is gone, or makes it go. It ends
// within twice the wait and some seconds, whoever does not answer.
func (s *Side) Remove(ctx context.Context, of Removal) error {
	if why := domaincluster.Stays(of.Cluster); why != "" {
		s.Log.Printf("Cluster %s is not Ready (%s): unless it comes back by then, what was propagated to it stays there", of.Cluster.Name, why)
	}
	waiting, cancel := context.WithTimeout(ctx, of.Wait)
	defer cancel()
	// Only the Cluster that was looked at may be deleted.
	if err := s.Delete(waiting, of.Cluster); err != nil {
		return err
	}
	err := s.awaitRemoval(waiting, of.Cluster)
	if err == nil || waiting.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cluster %q was deleted and goes on leaving, the command does not wait for it: %w", of.Cluster.Name, err)
	}
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	holders := s.holders(looking, of.Cluster)
	if !of.Force {
		return fmt.Errorf("cluster %q was deleted and is not gone after %s:%s\nIt goes on leaving. Give it more time with --wait, or repeat with --force to leave what was propagated in the member",
			of.Cluster.Name, of.Wait, listed(holders))
	}
	s.Log.Printf("Cluster %s is not gone after %s:%s\nTaking off its finalizers: what was propagated to it stays there", of.Cluster.Name, of.Wait, listed(holders))
	forcing, cancel := context.WithTimeout(ctx, max(of.Wait, UndoTimeout))
	defer cancel()
	return s.Release(forcing, of.Cluster)
}

// awaitRemoval waits until a Cluster is gone, and tells what holds it while that takes
// long, whenever that is something else.
func (s *Side) awaitRemoval(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	for told := ""; ; {
		silent, cancel := context.WithTimeout(ctx, tellPause)
		err := s.AwaitGone(silent, cluster)
		silence := silent.Err()
		cancel()
		if err == nil || silence == nil || ctx.Err() != nil {
			return err
		}
		if holds := listed(s.holders(ctx, cluster)); holds != told && ctx.Err() == nil {
			s.Log.Printf("waiting until Cluster %s is gone:%s", cluster.Name, holds)
			told = holds
		}
	}
}

func listed(holders []string) string {
	if len(holders) == 0 {
		return " nothing that can be seen holds it"
	}
	return "\n- " + strings.Join(holders, "\n- ")
}

// holders finds out what keeps a Cluster. What cannot be found out is told instead.
func (s *Side) holders(ctx context.Context, cluster *clusterv1alpha1.Cluster) []string {
	leaving, err := s.leaving(ctx, cluster)
	holders := leaving.Holders()
	if err != nil {
		holders = append(holders, fmt.Sprintf("not all could be found out: %v", err))
	}
	return holders
}

func (s *Side) leaving(ctx context.Context, cluster *clusterv1alpha1.Cluster) (domaincluster.Leaving, error) {
	leaving := domaincluster.Leaving{Cluster: cluster}
	stored, err := s.Get(ctx, cluster)
	if now, ok := stored.(*clusterv1alpha1.Cluster); ok {
		leaving.Cluster = now
	}
	space, spaceErr := s.Get(ctx, registration.ExecutionSpace(cluster.Name))
	leaving.SpaceStays = space != nil && space.GetDeletionTimestamp().IsZero()
	works := &workv1alpha1.WorkList{}
	worksErr := s.API.List(ctx, works, client.InNamespace(registration.ExecutionSpace(cluster.Name).Name), client.Limit(pageSize))
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
func (s *Side) bindingsTo(ctx context.Context, cluster string) (names []string, err error) {
	lists := []client.ObjectList{&workv1alpha2.ResourceBindingList{}, &workv1alpha2.ClusterResourceBindingList{}}
	for _, list := range lists {
		for next := true; next && len(names) < namedBindings; next = list.GetContinue() != "" {
			if err := s.API.List(ctx, list, client.Limit(pageSize), client.Continue(list.GetContinue())); err != nil {
				return names, fmt.Errorf("listing bindings: %w", err)
			}
			names = append(names, s.targeting(list, cluster)...)
		}
	}
	return names[:min(len(names), namedBindings)], nil
}

// targeting names the bindings of a list that are scheduled to a cluster.
func (s *Side) targeting(list client.ObjectList, cluster string) (names []string) {
	lists := func(targets []workv1alpha2.TargetCluster) bool {
		return slices.ContainsFunc(targets, func(target workv1alpha2.TargetCluster) bool { return target.Name == cluster })
	}
	switch bindings := list.(type) {
	case *workv1alpha2.ResourceBindingList:
		for i := range bindings.Items {
			if lists(bindings.Items[i].Spec.Clusters) {
				names = append(names, s.Describe(&bindings.Items[i]))
			}
		}
	case *workv1alpha2.ClusterResourceBindingList:
		for i := range bindings.Items {
			if lists(bindings.Items[i].Spec.Clusters) {
				names = append(names, s.Describe(&bindings.Items[i]))
			}
		}
	}
	return names
}

// Release lets the Works, the execution namespace and the Cluster go. The
// namespace is deleted first, so that no controller puts a finalizer back. What
// fails on the way does not keep the Cluster: its controller lets go of the rest.
func (s *Side) Release(ctx context.Context, cluster *clusterv1alpha1.Cluster) error {
	space := registration.ExecutionSpace(cluster.Name)
	failures := []error{s.Delete(ctx, space), s.releaseWorks(ctx, space.Name)}
	for _, object := range []client.Object{space, cluster} {
		failures = append(failures, s.TakeFinalizers(ctx, object))
	}
	err := s.AwaitGone(ctx, cluster)
	if failed := errors.Join(failures...); failed != nil && err == nil {
		s.Log.Printf("warning: Cluster %s is gone, and some of what it had is left: %v", cluster.Name, failed)
		return nil
	}
	if wait.Interrupted(err) {
		err = fmt.Errorf("cluster %q is still there although its finalizers were taken off; somebody puts them back: %w", cluster.Name, err)
	}
	return errors.Join(append(failures, err)...)
}

// releaseWorks deletes the Works of a namespace and takes their finalizers off.
func (s *Side) releaseWorks(ctx context.Context, namespace string) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(releases)
	works := &workv1alpha1.WorkList{}
	for next := true; next; next = works.Continue != "" {
		if err := s.API.List(ctx, works, client.InNamespace(namespace), client.Limit(pageSize), client.Continue(works.Continue)); err != nil {
			return errors.Join(group.Wait(), fmt.Errorf("listing the Works in %s: %w", namespace, err))
		}
		for i := range works.Items {
			of := works.Items[i].DeepCopy()
			group.Go(func() error { return s.releaseWork(ctx, of) })
		}
	}
	return group.Wait()
}

func (s *Side) releaseWork(ctx context.Context, of *workv1alpha1.Work) error {
	if of.DeletionTimestamp == nil {
		uid := of.UID
		if err := s.API.Delete(ctx, of.DeepCopy(), client.Preconditions{UID: &uid}); client.IgnoreNotFound(err) != nil {
			return s.Explain("deleting", of, err)
		}
	}
	return s.TakeFinalizers(ctx, of)
}

// Clusters lists the Clusters of the control plane.
func (s *Side) Clusters(ctx context.Context) ([]clusterv1alpha1.Cluster, error) {
	list := &clusterv1alpha1.ClusterList{}
	err := s.API.List(ctx, list)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%s serves no %s: is it a Karmada control plane? Choose its kubeconfig or context (%w)", s.Host, clusterv1alpha1.GroupVersion, err)
	}
	if err != nil {
		return nil, fmt.Errorf("listing Clusters in %s (%s): %w%s", s.Name, s.Host, err, onNewLine(registration.Advice(err, s.Name)))
	}
	return list.Items, nil
}

func onNewLine(advice string) string {
	if advice == "" {
		return ""
	}
	return "\n" + advice
}
