package diagnose

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/work"
)

// diagnoseMember checks that the object exists in the member. If the member was not queried, the condition of
// the Work decides.
func (c *clusterFacts) diagnoseMember() Link {
	link := Link{Stage: StageMember, Cluster: c.name, Result: NotApplicable}
	if !c.isQueried {
		link.Reason, link.Message = c.workLink.Reason, "the member was not queried, because nothing is applied"
		if c.workLink.Result == OK {
			link.Result, link.Reason, link.Message = OK, ReasonApplied, "the member has the object, according to its Work"
		}
		return link
	}
	observed := c.observed.Object
	switch {
	case observed.Err != nil:
		link = link.unreadable("the object in cluster "+c.name, observed.Err)
		link.Remedy = fmt.Sprintf("check that the cluster responds, and that you have access to clusters/proxy of cluster %s", c.name)
	case observed.Value == nil && c.workLink.Result != OK:
		link.Reason, link.Message = ReasonObjectMissing, "the object does not exist in the member"
	case observed.Value == nil:
		link.Result, link.Reason = Failed, ReasonObjectMissing
		link.Message = "the object does not exist in the member, although its Work is applied"
		link.Remedy = "wait some seconds, because Karmada creates a deleted object again; if it stays missing: kubectl describe " +
			kubectlWork(c.work)
	default:
		return c.explainOwner(link, observed.Value)
	}
	return link
}

// explainOwner describes whether the cluster's Work owns the member object.
func (c *clusterFacts) explainOwner(link Link, memberObject *unstructured.Unstructured) Link {
	link.Result, link.Reason, link.Message = OK, ReasonExists, "the object exists in the member"
	if c.work == nil || len(c.work.Spec.Workload.Manifests) == 0 {
		return link
	}
	manifest, err := work.DecodeManifest(c.work.Spec.Workload.Manifests[0])
	if err != nil {
		return link.unreadable("the manifest of Work "+objectPath(c.work), err)
	}
	if ok, owner := work.MayWrite(c.work, memberObject, manifest); !ok {
		link.Result, link.Reason = Failed, ReasonConflict
		link.Message = work.NewConflict(c.name, memberObject, owner).Error()
		link.Remedy = fmt.Sprintf("delete the object in cluster %s, or permit the takeover with conflictResolution: Overwrite in the policy",
			c.name)
		return link
	}
	if c.workLink.Result != OK {
		link.Message += " in an earlier version"
	}
	return link
}
