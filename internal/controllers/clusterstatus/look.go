package clusterstatus

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// sight is what one look at a member found out.
type sight struct {
	ready  metav1.Condition
	target *member.Member
	// hopeful tells that a member which is not healthy may be any moment.
	hopeful bool
	// identity is which cluster the member is, unidentified why that is not the right one.
	identity     domain.Identity
	unidentified string

	// asked tells that the member was asked for its APIs.
	asked       bool
	version     string
	enablements []clusterv1alpha1.APIEnablement
	complete    bool
	// unheard tells of which group versions the member did not say whether it serves
	// them; nil is none.
	unheard   func(groupVersion string) bool
	nodes     *clusterv1alpha1.NodeSummary
	resources *clusterv1alpha1.ResourceSummary
	// settling tells that the first lists of nodes and Pods are on their way, late
	// that they have been for longer than they may.
	settling bool
	late     error
}

func (s sight) healthy() bool { return s.ready.Status == metav1.ConditionTrue }

// probe asks the member for its health.
func (c *controller) probe(ctx context.Context, cluster *clusterv1alpha1.Cluster) sight {
	now := metav1.NewTime(c.now())
	target, health, err := c.health(ctx, cluster)
	if err != nil {
		return sight{ready: domain.Uncollected(err.Error(), cluster.Generation, now)}
	}
	if known, ok := target.Credentials(); ok && known.Refused && health.Refused {
		return sight{ready: domain.Uncollected(domain.Refusal(known), cluster.Generation, now), target: target}
	}
	if of := health.Identity; of.Seen != "" || of.Unknown != "" {
		return sight{ready: domain.Unidentified(of, health.Cause, cluster.Generation, now), target: target, identity: of, unidentified: health.Cause}
	}
	return sight{
		identity: health.Identity,
		ready:    domain.Seen(health.Reachable, health.Healthy, health.Cause, cluster.Generation, now),
		target:   target,
		hopeful:  !health.Healthy && !health.Refused,
	}
}

// health asks a member that refuses its credentials twice, for they are read again
// in between.
func (c *controller) health(ctx context.Context, cluster *clusterv1alpha1.Cluster) (target *member.Member, health member.Health, err error) {
	for range 2 {
		if target, err = c.members.For(ctx, cluster); err != nil {
			return nil, health, err
		}
		if health = target.Probe(ctx); !health.Refused {
			break
		}
	}
	return target, health, nil
}

// ask asks a healthy member what it is and can do.
func (c *controller) ask(ctx context.Context, cluster *clusterv1alpha1.Cluster, seen *sight) {
	logger := klog.FromContext(ctx)
	if info, err := seen.target.Version(); err != nil {
		logger.V(2).Info("Version is not known", "cause", err)
	} else {
		seen.version = info.GitVersion
	}
	var err error
	if seen.enablements, seen.complete, err = seen.target.APIs(ctx); err != nil {
		logger.V(2).Info("APIs are not known completely", "cause", err)
		seen.unheard = unheardBy(err)
	}
	seen.asked = true
	if c.options.Inventory {
		c.count(ctx, cluster, seen)
	}
}

// unheardBy tells of which group versions a discovery that failed says nothing.
func unheardBy(err error) func(groupVersion string) bool {
	failed, named := discovery.GroupDiscoveryFailedErrorGroups(err)
	return func(groupVersion string) bool {
		version, err := schema.ParseGroupVersion(groupVersion)
		_, without := failed[version]
		return !named || without || err != nil
	}
}

// count sums up the nodes and Pods of the member.
func (c *controller) count(ctx context.Context, cluster *clusterv1alpha1.Cluster, seen *sight) {
	var models []clusterv1alpha1.ResourceModel
	if c.options.Models {
		models = cluster.Spec.ResourceModels
	}
	nodes, resources, waited, err := seen.target.Inventory(models)
	switch {
	case err != nil:
		klog.FromContext(ctx).V(2).Info("Resources are not known", "cause", err)
	case nodes != nil:
		seen.nodes, seen.resources = nodes, resources
	case c.options.Settle > 0 && waited > c.options.Settle:
		seen.late = fmt.Errorf("resources of the cluster are not known: its nodes and Pods could not be listed within %s", c.options.Settle)
	default:
		seen.settling = true
	}
}
