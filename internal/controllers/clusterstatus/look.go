package clusterstatus

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/member"
	domain "karmada.io/karmada/internal/domain/cluster"
)

// sight is what one look at a member found out.
type sight struct {
	ready       metav1.Condition
	version     string
	enablements []clusterv1alpha1.APIEnablement
	complete    bool
	nodes       *clusterv1alpha1.NodeSummary
	resources   *clusterv1alpha1.ResourceSummary
	// settling tells that the first lists of nodes and Pods are on their way.
	settling bool
}

// look probes the member and, when it is healthy, asks what it can do.
func (c *controller) look(ctx context.Context, cluster *clusterv1alpha1.Cluster) sight {
	now := metav1.NewTime(c.now())
	target, err := c.members.For(ctx, cluster)
	if err != nil {
		return sight{ready: domain.Uncollected(err.Error(), cluster.Generation, now)}
	}
	health := target.Probe(ctx)
	seen := sight{ready: domain.Seen(health.Reachable, health.Healthy, health.Cause, cluster.Generation, now)}
	if !health.Healthy {
		return seen
	}
	logger := klog.FromContext(ctx)
	if info, err := target.Version(); err != nil {
		logger.V(2).Info("Version is not known", "cause", err)
	} else {
		seen.version = info.GitVersion
	}
	lists, err := target.Resources()
	if err != nil {
		logger.V(2).Info("APIs are not known completely", "cause", err)
	}
	seen.enablements, seen.complete = domain.Enablements(lists), err == nil
	if c.options.Inventory {
		c.count(ctx, target, cluster, &seen)
	}
	return seen
}

func (c *controller) count(ctx context.Context, target *member.Member, cluster *clusterv1alpha1.Cluster, seen *sight) {
	nodes, pods, complete, err := target.Inventory()
	if err != nil {
		klog.FromContext(ctx).V(2).Info("Resources are not known", "cause", err)
		return
	}
	if !complete {
		seen.settling = true
		return
	}
	var models []clusterv1alpha1.ResourceModel
	if c.options.Models {
		models = cluster.Spec.ResourceModels
	}
	seen.nodes, seen.resources = domain.Summarise(nodes, pods, models)
}
