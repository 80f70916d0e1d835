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
	"karmada.io/karmada/internal/access/report"
	"karmada.io/karmada/internal/domain/work"
)

// holdBack leaves the member as it is, since changes of the Work are held back.
// What was applied before is watched all the same, for its status goes on to be
// told. A member that has the present version is said to, also where that it was
// applied is not told yet; one that has an earlier version keeps the condition that
// says of which generation it is.
func (c *controller) holdBack(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) error {
	holds, err := c.holdsAll(ctx, cluster, stored)
	if holds {
		// Before the other: whoever reads that one takes this one for the last word.
		c.report(stored, report.Now, work.Applied(stored, nil))
	}
	c.report(stored, report.Now, work.Dispatching(stored))
	return err
}

// holdsAll tells whether the member has every manifest as the Work has it now, and
// watches them. What this process applied is known without the member.
func (c *controller) holdsAll(ctx context.Context, cluster *clusterv1alpha1.Cluster, stored *workv1alpha1.Work) (bool, error) {
	var target *member.Member
	failure := fmt.Errorf("cluster(%s) %w", cluster.Name, errNotReady)
	if c.usable(cluster) {
		target, failure = c.members.For(ctx, cluster)
	}
	all, failures := true, []error{failure}
	for _, raw := range stored.Spec.Workload.Manifests {
		manifest, err := work.Decode(raw)
		if err != nil {
			all = false // it is told of when it is to be applied
			continue
		}
		holds := c.applied.took(keyOf(stored, manifest), manifest)
		if failure == nil {
			holds, err = c.holds(ctx, target, stored, manifest)
			failures = append(failures, err)
		}
		all = all && holds
	}
	return all, errors.Join(failures...)
}

// holds tells whether the member has one manifest, and watches its kind.
func (c *controller) holds(ctx context.Context, target *member.Member, of *workv1alpha1.Work, manifest *unstructured.Unstructured) (bool, error) {
	kind, key := manifest.GroupVersionKind(), keyOf(of, manifest)
	if err := target.Watch(ctx, kind); err != nil {
		return false, fmt.Errorf("watching %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	if c.applied.took(key, manifest) {
		return true, nil
	}
	target.AwaitSync(ctx, kind, syncPatience)
	observed, _, err := target.Get(ctx, kind, client.ObjectKeyFromObject(manifest))
	if apierrors.IsNotFound(err) || meta.IsNoMatchError(err) {
		// What the member does not show was not applied; nothing is deleted for it.
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading %s in cluster %s: %w", describe(manifest), target.Name, err)
	}
	if ok, _ := work.MayWrite(of, observed, manifest); !ok {
		return false, nil
	}
	desired, err := work.Desired(manifest, observed, c.retain(ctx, manifest))
	if err != nil {
		return false, fmt.Errorf("cluster %s: %w", target.Name, err)
	}
	if !work.Same(desired, observed) {
		return false, nil
	}
	c.applied.remember(key, manifest, observed)
	return true, nil
}
