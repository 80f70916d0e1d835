package detector

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
)

// policyCatalog indexes the policies of both kinds, so that no lookup scans all policies. The
// watches of policies update the catalog before they queue a policy. Policies in the catalog must
// not be changed.
type policyCatalog struct {
	mu    sync.RWMutex
	index *policy.Index
	// preemptors are the policies that may preempt other policies.
	preemptors map[types.NamespacedName]policy.Object
	// byPriorityClass contains the policies by the name of the PriorityClass to which they refer.
	byPriorityClass map[string]map[types.NamespacedName]policy.Object
}

// newPolicyCatalog returns an empty catalog.
func newPolicyCatalog() *policyCatalog {
	return &policyCatalog{
		index: policy.NewIndex(), preemptors: map[types.NamespacedName]policy.Object{},
		byPriorityClass: map[string]map[types.NamespacedName]policy.Object{},
	}
}

// put adds or replaces a policy.
func (c *policyCatalog) put(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(policyKey(p))
	c.index.Put(p)
	if policy.CanPreempt(p) {
		c.preemptors[policyKey(p)] = p
	}
	if priority := p.PropagationSpec().SchedulePriority; priority != nil {
		if c.byPriorityClass[priority.PriorityClassName] == nil {
			c.byPriorityClass[priority.PriorityClassName] = map[types.NamespacedName]policy.Object{}
		}
		c.byPriorityClass[priority.PriorityClassName][policyKey(p)] = p
	}
}

// delete removes a policy.
func (c *policyCatalog) delete(p policy.Object) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.removeLocked(policyKey(p))
}

func (c *policyCatalog) removeLocked(key types.NamespacedName) {
	p := c.index.Get(key.Namespace, key.Name)
	if p == nil {
		return
	}
	c.index.Delete(key.Namespace, key.Name)
	delete(c.preemptors, key)
	if priority := p.PropagationSpec().SchedulePriority; priority != nil {
		delete(c.byPriorityClass[priority.PriorityClassName], key)
		if len(c.byPriorityClass[priority.PriorityClassName]) == 0 {
			delete(c.byPriorityClass, priority.PriorityClassName)
		}
	}
}

// get returns a policy by name, or nil. The namespace of a ClusterPropagationPolicy is empty.
func (c *policyCatalog) get(namespace, name string) policy.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.Get(namespace, name)
}

// decide returns which policy claims a template, or why no policy does.
func (c *policyCatalog) decide(template *unstructured.Unstructured) policy.Decision {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return policy.Decide(template, c.index)
}

// nearestMiss returns the policy that comes closest to selecting a template. It returns false if no
// policy comes close.
func (c *policyCatalog) nearestMiss(template *unstructured.Unstructured) (policy.NearMiss, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.index.NearestMiss(template)
}

// withPriorityClass returns the policies that refer to a PriorityClass, in any order.
func (c *policyCatalog) withPriorityClass(class string) []policy.Object {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Collect(maps.Values(c.byPriorityClass[class]))
}

// preemptorsAfterUpdate returns the policies that may preempt a policy because its explicit
// priority was lowered. The policy with the highest priority comes first.
func (c *policyCatalog) preemptorsAfterUpdate(before, after policy.Object) []policy.Object {
	oldPriority, newPriority := policy.ExplicitPriority(before), policy.ExplicitPriority(after)
	if newPriority >= oldPriority {
		return nil
	}
	c.mu.RLock()
	defer c.mu.RUnlock()
	var peers []policy.Object
	for _, p := range c.preemptors {
		if p.GetNamespace() == after.GetNamespace() {
			peers = append(peers, p)
		}
	}
	return policy.PreemptionCandidates(oldPriority, newPriority, peers)
}

// policyKey returns the namespace and name of a policy.
func policyKey(p policy.Object) types.NamespacedName {
	return types.NamespacedName{Namespace: p.GetNamespace(), Name: p.GetName()}
}

// policyScope describes one of the two kinds of policies.
type policyScope struct {
	// controllerName is the name of the controller in logs and metrics. plural is the plural of the
	// kind.
	controllerName, plural string
	isCluster              bool
	// finalizer is the finalizer of the policies. It is removed from a deleted policy when the
	// policy claims no template any more.
	finalizer string
	// newPolicy returns an empty policy.
	newPolicy func() policy.Object
}

// policyScopes returns both kinds of policies, PropagationPolicies first.
func policyScopes() []policyScope {
	return []policyScope{
		{
			controllerName: "propagation-policy-detector", plural: "PropagationPolicies",
			finalizer: policyv1alpha1.PropagationPolicyControllerFinalizer,
			newPolicy: func() policy.Object { return &policyv1alpha1.PropagationPolicy{} },
		},
		{
			controllerName: "cluster-propagation-policy-detector", plural: "ClusterPropagationPolicies", isCluster: true,
			finalizer: policyv1alpha1.ClusterPropagationPolicyControllerFinalizer,
			newPolicy: func() policy.Object { return &policyv1alpha1.ClusterPropagationPolicy{} },
		},
	}
}

// newPolicyFor returns an empty policy of the kind to which a claim belongs.
func newPolicyFor(claim policy.Claim) policy.Object {
	if claim.IsCluster() {
		return &policyv1alpha1.ClusterPropagationPolicy{}
	}
	return &policyv1alpha1.PropagationPolicy{}
}
