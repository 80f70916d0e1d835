package execution

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	"karmada.io/karmada/internal/domain/work"
	"karmada.io/karmada/internal/loop"
)

// reportSuspended reports the state of a suspended Work and changes nothing in the member. It keeps
// the watches of objects that were applied before the suspension, so that their status is still
// reported. If the member has the current manifests, it sets the Applied condition for the current
// generation. Otherwise the condition keeps its earlier generation.
func (c *controller) reportSuspended(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) error {
	hasAll, err := c.hasAllManifests(ctx, cluster, stored)
	if hasAll {
		// Applied is reported before Dispatching, because readers of Dispatching assume that
		// Applied is current.
		c.reportConditions(stored, loop.StatusFailed, work.AppliedCondition(stored, nil))
	}
	c.reportConditions(stored, loop.StatusFailed, work.DispatchingCondition(stored))
	return err
}

// hasAllManifests reports whether the member has every manifest of the Work in its current version.
// It also starts the watches of the kinds of the manifests. For manifests that this process
// applied, it sends no request to the member.
func (c *controller) hasAllManifests(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (bool, error) {
	var target *member.Member
	failure := fmt.Errorf("cluster(%s) %w", cluster.Name, errClusterNotReady)
	if c.isReachable(cluster) {
		target, failure = c.members.GetForCluster(ctx, cluster)
	}
	hasAll, failures := true, []error{failure}
	for _, raw := range stored.Spec.Workload.Manifests {
		manifest, err := work.DecodeManifest(raw)
		if err != nil {
			hasAll = false // the error is reported when the manifest is applied
			continue
		}
		hasCurrent := c.tracker.wasApplied(keyOf(stored, manifest), manifest)
		if failure == nil {
			hasCurrent, err = c.hasManifest(ctx, target, stored, manifest)
			failures = append(failures, err)
		}
		hasAll = hasAll && hasCurrent
	}
	return hasAll, errors.Join(failures...)
}

// hasManifest reports whether the member has one manifest in its current version. It also starts
// the watch of the kind of the manifest.
func (c *controller) hasManifest(ctx context.Context, target *member.Member, karmadaWork *workv1alpha1.Work,
	manifest *unstructured.Unstructured) (bool, error) {
	kind, key := manifest.GroupVersionKind(), keyOf(karmadaWork, manifest)
	c.interpreted.Add(workKey(karmadaWork), kind)
	if err := target.Watch(kind); err != nil {
		return false, fmt.Errorf("watching %s in cluster %s: %w", describeObject(manifest), target.Name, err)
	}
	if c.tracker.wasApplied(key, manifest) {
		return true, nil
	}
	target.WaitForList(ctx, kind, listSyncTimeout)
	observed, _, err := target.Get(ctx, kind, client.ObjectKeyFromObject(manifest))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		// The manifest counts as not applied, because the cache does not contain the object. No
		// deletion depends on this result.
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s in cluster %s: %w", describeObject(manifest), target.Name, err)
	}
	if ok, _ := work.MayWrite(karmadaWork, observed, manifest); !ok {
		return false, nil
	}
	desired, err := work.DesiredObject(manifest, observed, c.retainRule(ctx, manifest))
	if err != nil {
		return false, fmt.Errorf("cluster %s: %w", target.Name, err)
	}
	if !work.IsInSync(desired, observed) {
		return false, nil
	}
	c.tracker.recordApplied(key, manifest, observed)
	return true, nil
}
