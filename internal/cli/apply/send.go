package apply

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/reach"
)

// sending applies objects, each with a policy that sends it to members.
type sending struct {
	options *kubectlapply.ApplyOptions
	factory cmdutil.Factory
	// clusters are the members; empty means all.
	clusters []string
	tell     func(format string, args ...any)
}

// run applies every object of the files and right after it its policy. An object
// that is refused has no policy, and keeps no other one from being applied. What
// kubectl does at the end, printing a list and pruning, is done once, for all.
func (s *sending) run() error {
	kinds, err := s.policyKinds()
	if err != nil {
		return err
	}
	objects, err := s.options.GetObjects()
	if err == nil && len(objects) == 0 {
		return errors.New("no objects passed to apply")
	}
	var errs []error
	if err != nil {
		errs = append(errs, err)
	}
	finish := s.options.PostProcessorFn
	s.options.PostProcessorFn = nil
	var applied []*resource.Info
	for _, object := range objects {
		done, err := s.applyWithPolicy(object, kinds)
		applied = append(applied, done...)
		if err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) > 0 {
		return utilerrors.NewAggregate(errs)
	}
	s.options.SetObjects(applied)
	return finish()
}

// applyWithPolicy returns what it applied.
func (s *sending) applyWithPolicy(object *resource.Info, kinds policyKinds) ([]*resource.Info, error) {
	if err := s.apply(object); err != nil {
		return nil, err
	}
	applied := []*resource.Info{object}
	kind := object.Mapping.GroupVersionKind
	if reach.DefaultSkippedAPIs().Skips(kind) {
		s.tell("%s %q is for the control plane: it is sent nowhere", kind.Kind, object.Name)
		return applied, nil
	}
	made, err := s.policyFor(object, kinds)
	if err != nil {
		return applied, err
	}
	if err := s.apply(made); err != nil {
		return applied, err
	}
	s.tellOfOther(object, made)
	return append(applied, made), nil
}

// tellOfOther warns when the object belongs to another policy than the one made for
// it, which then has no effect: no policy takes an object from another unasked.
func (s *sending) tellOfOther(object, made *resource.Info) {
	stored, err := meta.Accessor(object.Object)
	if err != nil {
		return
	}
	claim, claimed := policy.ClaimedBy(stored)
	if claimed && (claim.Name != made.Name || claim.Namespace != made.Namespace) {
		s.tell("warning: %s %q belongs to policy %q, which decides where it goes: change that one, or delete it",
			object.Mapping.GroupVersionKind.Kind, object.Name, claim)
	}
}

func (s *sending) apply(object *resource.Info) error {
	s.options.SetObjects([]*resource.Info{object})
	return s.options.Run()
}

// policyKinds are how both kinds of policies are reached.
type policyKinds struct{ namespaced, clusterWide *meta.RESTMapping }

// policyKinds makes sure that the control plane knows policies, before anything is
// applied.
func (s *sending) policyKinds() (kinds policyKinds, err error) {
	find := func(kind string) (mapping *meta.RESTMapping) {
		if err == nil {
			mapping, err = s.options.Mapper.RESTMapping(schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: kind}, policyv1alpha1.GroupVersion.Version)
		}
		return mapping
	}
	kinds.namespaced = find(policyv1alpha1.ResourceKindPropagationPolicy)
	kinds.clusterWide = find(policyv1alpha1.ResourceKindClusterPropagationPolicy)
	if err != nil {
		return kinds, fmt.Errorf("looking for policies in the control plane: %w\nIs this a Karmada control plane? Its kubeconfig is chosen with --kubeconfig, its context with --karmada-context", err)
	}
	return kinds, nil
}

func (s *sending) policyFor(object *resource.Info, kinds policyKinds) (*resource.Info, error) {
	mapping := kinds.clusterWide
	if object.Namespaced() {
		mapping = kinds.namespaced
	}
	karmadaClient, err := s.factory.UnstructuredClientForMapping(mapping)
	if err != nil {
		return nil, fmt.Errorf("making a client for %s: %w", mapping.Resource.Resource, err)
	}
	content := newPolicy(mapping.GroupVersionKind, object, s.clusters)
	return &resource.Info{
		Client: karmadaClient, Mapping: mapping, Source: object.Source,
		Namespace: content.GetNamespace(), Name: content.GetName(), Object: content,
	}, nil
}
