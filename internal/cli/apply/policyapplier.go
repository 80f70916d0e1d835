package apply

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
)

// policyApplier applies objects, and for each object a policy that propagates the object to
// members.
type policyApplier struct {
	options *kubectlapply.ApplyOptions
	factory cmdutil.Factory
	// clusters are the members. Empty means all.
	clusters []string
	messagef func(format string, args ...any)
}

// run applies each object, and right after it the policy of this object. If an object is rejected,
// run applies no policy for it, and continues with the other objects. The final steps of kubectl,
// printing a list and pruning, run once for all objects.
func (p *policyApplier) run() error {
	kinds, err := p.findPolicyMappings()
	if err != nil {
		return err
	}
	objects, err := p.options.GetObjects()
	if err == nil && len(objects) == 0 {
		return errors.New("no objects passed to apply")
	}
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	finish := p.options.PostProcessorFn
	p.options.PostProcessorFn = nil
	var applied []*resource.Info
	for _, object := range objects {
		done, err := p.applyWithPolicy(object, kinds)
		applied = append(applied, done...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	p.options.SetObjects(applied)
	return finish()
}

// applyWithPolicy applies an object and its policy, and returns the applied objects.
func (p *policyApplier) applyWithPolicy(object *resource.Info, kinds policyMappings) ([]*resource.Info, error) {
	if err := p.apply(object); err != nil {
		return nil, err
	}
	applied := []*resource.Info{object}
	kind := object.Mapping.GroupVersionKind
	if tenancy.DefaultSkippedAPIs().Skips(kind) {
		p.messagef("%s %q belongs to the control plane and is not propagated", kind.Kind, object.Name)
		return applied, nil
	}
	policyInfo, err := p.newPolicyInfo(object, kinds)
	if err != nil {
		return applied, err
	}
	if err := p.apply(policyInfo); err != nil {
		return applied, err
	}
	p.warnAboutOtherPolicy(object, policyInfo)
	return append(applied, policyInfo), nil
}

// warnAboutOtherPolicy prints a warning if another policy has claimed the object. The new policy
// then has no effect, because a policy does not preempt another policy by default.
func (p *policyApplier) warnAboutOtherPolicy(object, policyInfo *resource.Info) {
	stored, err := meta.Accessor(object.Object)
	if err != nil {
		return
	}
	claim, claimed := policy.ClaimedBy(stored)
	if claimed && (claim.Name != policyInfo.Name || claim.Namespace != policyInfo.Namespace) {
		p.messagef("warning: %s %q belongs to policy %q, which decides where it is propagated: change or delete that policy",
			object.Mapping.GroupVersionKind.Kind, object.Name, claim)
	}
}

func (p *policyApplier) apply(object *resource.Info) error {
	p.options.SetObjects([]*resource.Info{object})
	return p.options.Run()
}

// policyMappings are the REST mappings of both kinds of policies.
type policyMappings struct{ namespaced, clusterWide *meta.RESTMapping }

// findPolicyMappings returns the REST mappings of policies. It runs before any object is applied,
// and returns an error if the control plane does not serve policies.
func (p *policyApplier) findPolicyMappings() (kinds policyMappings, err error) {
	find := func(kind string) (mapping *meta.RESTMapping) {
		if err == nil {
			mapping, err = p.options.Mapper.RESTMapping(schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: kind}, policyv1alpha1.GroupVersion.Version)
		}
		return mapping
	}
	kinds.namespaced = find(policyv1alpha1.ResourceKindPropagationPolicy)
	kinds.clusterWide = find(policyv1alpha1.ResourceKindClusterPropagationPolicy)
	if err != nil {
		return kinds, fmt.Errorf("looking for policies in the control plane: %w\nCheck that this is a Karmada control plane: --kubeconfig sets its kubeconfig, --karmada-context its context", err)
	}
	return kinds, nil
}

func (p *policyApplier) newPolicyInfo(object *resource.Info, kinds policyMappings) (*resource.Info, error) {
	mapping := kinds.clusterWide
	if object.Namespaced() {
		mapping = kinds.namespaced
	}
	karmadaClient, err := p.factory.UnstructuredClientForMapping(mapping)
	if err != nil {
		return nil, fmt.Errorf("creating a client for %s: %w", mapping.Resource.Resource, err)
	}
	content := newPolicy(mapping.GroupVersionKind, object, p.clusters)
	stored, err := resource.NewHelper(karmadaClient, mapping).Get(content.GetNamespace(), content.GetName())
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("reading %s %q: %w", mapping.GroupVersionKind.Kind, content.GetName(), err)
	}
	if err == nil && !policy.SelectsObjectByName(stored, object.Mapping.GroupVersionKind, object.Namespace, object.Name) {
		content.SetName(policy.UnambiguousName(object.Mapping.GroupVersionKind, object.Namespace, object.Name))
	}
	return &resource.Info{
		Client: karmadaClient, Mapping: mapping, Source: object.Source,
		Namespace: content.GetNamespace(), Name: content.GetName(), Object: content,
	}, nil
}
