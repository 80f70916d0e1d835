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

type probeResult struct {
	ready  metav1.Condition
	target *member.Member
	// mayRecover is true if an unhealthy member may become healthy at any moment.
	mayRecover bool
	// identity is the result of the identity check. identityCause describes why the member is not the
	// registered cluster.
	identity      domain.IdentityCheck
	identityCause string

	// apisRead is true if the member's APIs were read.
	apisRead    bool
	version     string
	enablements []clusterv1alpha1.APIEnablement
	complete    bool
	// isUnknown reports whether discovery returned no result for the group version. Nil means that
	// discovery returned results for all group versions.
	isUnknown func(groupVersion string) bool
	nodes     *clusterv1alpha1.NodeSummary
	resources *clusterv1alpha1.ResourceSummary
	// inventoryPending is true while the first lists of nodes and Pods have not been received.
	// inventoryErr is set if they take too long.
	inventoryPending bool
	inventoryErr     error
}

func (p probeResult) healthy() bool { return p.ready.Status == metav1.ConditionTrue }

// probe determines the member's health and the resulting condition Ready.
func (c *controller) probe(ctx context.Context, cluster *clusterv1alpha1.Cluster) probeResult {
	now := metav1.NewTime(c.now())
	target, health, err := c.probeHealth(ctx, cluster)
	if err != nil {
		return probeResult{ready: domain.CollectionFailedCondition(err.Error(), cluster.Generation, now)}
	}
	if credentials, ok := target.Credentials(); ok && credentials.Rejected && health.CredentialsRejected {
		return probeResult{ready: domain.CollectionFailedCondition(domain.RejectedMessage(credentials), cluster.Generation, now), target: target}
	}
	if identity := health.Identity; identity.OtherID != "" || identity.UnknownCause != "" {
		return probeResult{ready: domain.UnidentifiedCondition(identity, health.Cause, cluster.Generation, now), target: target,
			identity: identity, identityCause: health.Cause}
	}
	return probeResult{
		identity:   health.Identity,
		ready:      domain.ReadyCondition(health.Reachable, health.Healthy, health.Cause, cluster.Generation, now),
		target:     target,
		mayRecover: !health.Healthy && !health.CredentialsRejected,
	}
}

// probeHealth probes a member. If the member rejects the credentials, probeHealth reads the credentials
// again and retries once.
func (c *controller) probeHealth(ctx context.Context,
	cluster *clusterv1alpha1.Cluster) (target *member.Member, health member.Health, err error) {
	for range 2 {
		if target, err = c.members.GetForCluster(ctx, cluster); err != nil {
			return nil, health, err
		}
		if health = target.Probe(ctx); !health.CredentialsRejected {
			break
		}
	}
	return target, health, nil
}

// readDetails reads the version, APIs and resources of a healthy member.
func (c *controller) readDetails(ctx context.Context, cluster *clusterv1alpha1.Cluster, result *probeResult) {
	logger := klog.FromContext(ctx)
	if info, err := result.target.Version(); err != nil {
		logger.V(2).Info("Cannot read the version of the member", "cause", err)
	} else {
		result.version = info.GitVersion
	}
	var err error
	if result.enablements, result.complete, err = result.target.APIs(ctx); err != nil {
		logger.V(2).Info("Cannot read all APIs of the member", "cause", err)
		result.isUnknown = unknownGroupVersions(err)
	}
	result.apisRead = true
	if c.options.Inventory {
		c.readInventory(ctx, cluster, result)
	}
}

// unknownGroupVersions returns a function that reports whether discovery, which failed with err,
// returned no result for a group version.
func unknownGroupVersions(err error) func(groupVersion string) bool {
	failed, named := discovery.GroupDiscoveryFailedErrorGroups(err)
	return func(groupVersion string) bool {
		version, err := schema.ParseGroupVersion(groupVersion)
		_, without := failed[version]
		return !named || without || err != nil
	}
}

// readInventory reads the member's nodes and resources.
func (c *controller) readInventory(ctx context.Context, cluster *clusterv1alpha1.Cluster, result *probeResult) {
	var models []clusterv1alpha1.ResourceModel
	if c.options.Models {
		models = cluster.Spec.ResourceModels
	}
	nodes, resources, waited, err := result.target.Inventory(models)
	switch {
	case err != nil:
		klog.FromContext(ctx).V(2).Info("Cannot read the resources of the member", "cause", err)
	case nodes != nil:
		result.nodes, result.resources = nodes, resources
	case c.options.InventoryTimeout > 0 && waited > c.options.InventoryTimeout:
		result.inventoryErr = fmt.Errorf("the resources of the cluster are unknown: its nodes and Pods could not be listed within %s",
			c.options.InventoryTimeout)
	default:
		result.inventoryPending = true
	}
}
