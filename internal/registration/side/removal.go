package side

import (
	"context"
	"errors"
	"fmt"
	"time"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
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
	// RefusedIsGone reports whether a refused request means that the Cluster is gone:
	// the rights of an agent go with its Cluster.
	RefusedIsGone bool
	// More returns further lines about what holds the Cluster while that many Works
	// are left. It may be nil.
	More func(ctx context.Context, works int) []string
}

// HeldError reports that a Cluster was deleted and is not gone in time.
type HeldError struct {
	Cluster string
	Wait    time.Duration
	// Holders has a line for each object that keeps the Cluster.
	Holders []string
}

func (e *HeldError) Error() string {
	return fmt.Sprintf("cluster %q was deleted and is not gone after %s:%s\nIt goes on leaving. Give it more time with --wait, or repeat with --force to leave what was propagated in the member",
		e.Cluster, e.Wait, listed(e.Holders))
}

// Remove deletes a Cluster and waits until it is gone, or makes it go. It ends
// within twice the wait and some seconds, whoever does not answer.
func (s *Side) Remove(ctx context.Context, of Removal) error {
	err := s.Leave(ctx, of)
	var held *HeldError
	if !of.Force || !errors.As(err, &held) {
		return err
	}
	s.LogForce(held)
	forcing, cancel := context.WithTimeout(ctx, max(of.Wait, UndoTimeout))
	defer cancel()
	return s.Release(forcing, of.Cluster)
}

// LogForce logs that the finalizers of a Cluster are taken off, and what held it.
func (s *Side) LogForce(held *HeldError) {
	s.Log.Printf("Cluster %s is not gone after %s:%s\nTaking off its finalizers: what was propagated to it stays there", held.Cluster, held.Wait, listed(held.Holders))
}

// Leave deletes a Cluster and waits until it is gone. It returns a *HeldError if that
// takes longer than the wait; Force has no effect.
func (s *Side) Leave(ctx context.Context, of Removal) error {
	if why := domaincluster.Stays(of.Cluster); why != "" && of.Cluster.DeletionTimestamp.IsZero() {
		s.Log.Printf("Cluster %s is not Ready (%s): unless it comes back by then, what was propagated to it stays there", of.Cluster.Name, why)
	}
	waiting, cancel := context.WithTimeout(ctx, of.Wait)
	defer cancel()
	// Only the Cluster that was looked at may be deleted.
	if err := s.Delete(waiting, of.Cluster); err != nil {
		return err
	}
	err := s.awaitRemoval(waiting, of)
	if err == nil || waiting.Err() == nil {
		return err
	}
	if ctx.Err() != nil {
		return fmt.Errorf("cluster %q was deleted and goes on leaving, the command does not wait for it: %w", of.Cluster.Name, err)
	}
	looking, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	return &HeldError{Cluster: of.Cluster.Name, Wait: of.Wait, Holders: s.holders(looking, of)}
}

// awaitRemoval waits until a Cluster is gone, and logs what holds it while that takes
// long, each time that this has changed.
func (s *Side) awaitRemoval(ctx context.Context, of Removal) error {
	for told := ""; ; {
		silent, cancel := context.WithTimeout(ctx, tellPause)
		err := s.AwaitGone(silent, of.Cluster)
		silence := silent.Err()
		cancel()
		if of.RefusedIsGone && isRefused(err) {
			return nil
		}
		if err == nil || silence == nil || ctx.Err() != nil {
			return err
		}
		if holds := listed(s.holders(ctx, of)); holds != told && ctx.Err() == nil {
			s.Log.Printf("waiting until Cluster %s is gone:%s", of.Cluster.Name, holds)
			told = holds
		}
	}
}

func isRefused(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

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
