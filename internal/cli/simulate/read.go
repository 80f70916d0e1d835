package simulate

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/chain"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/simulation"
)

// reader reads the objects of the control plane.
type reader struct {
	karmada client.Client
	mapper  meta.RESTMapper
}

func (o *options) newReader() (*reader, error) {
	mapper, err := o.factory.ToRESTMapper()
	if err != nil {
		return nil, fmt.Errorf("reading the types of the control plane: %w", err)
	}
	config, err := o.factory.ToRESTConfig()
	if err != nil {
		return nil, err
	}
	config.Timeout = o.timeout.HTTPTimeout()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clusterv1alpha1.AddToScheme, policyv1alpha1.AddToScheme, workv1alpha2.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("registering API types: %w", err)
		}
	}
	known := meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{chain.NewMapper(), mapper}}
	karmada, err := client.New(config, client.Options{Scheme: scheme, Mapper: known})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	return &reader{karmada, mapper}, nil
}

// readControlPlane reads the clusters, the policies, the bindings, and the templates that the given
// objects concern. It returns them together with the given objects.
func (o *options) readControlPlane(ctx context.Context, given givenObjects) (in simulation.Input, err error) {
	r, err := o.newReader()
	if err != nil {
		return in, err
	}
	if err := r.readLists(ctx, &in); err != nil {
		return in, err
	}
	in.GivenTemplates = given.templates
	stored := policy.NewIndex()
	for _, each := range in.Policies {
		stored.Put(each)
	}
	for _, each := range given.policies {
		prepared, err := simulation.PreparePolicy(each, stored.Get(each.GetNamespace(), each.GetName()))
		if err != nil {
			return in, fmt.Errorf("the control plane would reject %s: %w", policy.DisplayName(each), err)
		}
		in.GivenPolicies = append(in.GivenPolicies, prepared)
	}
	for _, each := range r.collections(&in) {
		if err := r.readTemplates(ctx, each, &in); err != nil {
			return in, err
		}
	}
	return in, nil
}

// readLists reads the clusters, policies and bindings.
func (r *reader) readLists(ctx context.Context, in *simulation.Input) error {
	for _, each := range []struct {
		what string
		err  error
	}{
		{"Clusters", chain.ForEachPage(ctx, r.karmada, func(list *clusterv1alpha1.ClusterList) {
			for i := range list.Items {
				in.Clusters = append(in.Clusters, &list.Items[i])
			}
		})},
		{"PropagationPolicies", chain.ForEachPage(ctx, r.karmada, func(list *policyv1alpha1.PropagationPolicyList) {
			for i := range list.Items {
				in.Policies = append(in.Policies, &list.Items[i])
			}
		})},
		{"ClusterPropagationPolicies", chain.ForEachPage(ctx, r.karmada, func(list *policyv1alpha1.ClusterPropagationPolicyList) {
			for i := range list.Items {
				in.Policies = append(in.Policies, &list.Items[i])
			}
		})},
		{"ResourceBindings", chain.ForEachPage(ctx, r.karmada, func(list *workv1alpha2.ResourceBindingList) {
			for i := range list.Items {
				in.Bindings = append(in.Bindings, &list.Items[i])
			}
		})},
		{"ClusterResourceBindings", chain.ForEachPage(ctx, r.karmada, func(list *workv1alpha2.ClusterResourceBindingList) {
			for i := range list.Items {
				in.Bindings = append(in.Bindings, &list.Items[i])
			}
		})},
	} {
		if each.err != nil {
			return fmt.Errorf("listing %s: %w\nCheck that this is a Karmada control plane, and that you may list %s in all namespaces", each.what, each.err, each.what)
		}
	}
	return nil
}

// collection is a kind of templates in one namespace, or in all namespaces if namespace is empty.
type collection struct {
	kind      schema.GroupVersionKind
	namespace string
}

// collections returns the collections that contain the templates that the given objects replace, and
// those that given policies select or claim. Each request reads other objects.
func (r *reader) collections(in *simulation.Input) []collection {
	var found []collection
	for _, template := range in.GivenTemplates {
		found = append(found, collection{template.GroupVersionKind(), template.GetNamespace()})
	}
	for _, each := range in.GivenPolicies {
		for _, filter := range policy.FiltersOf(each) {
			found = append(found, collection{filter.Kind, filter.Namespace})
		}
		for _, bound := range in.Bindings {
			if claim, claimed := policy.ClaimedBy(bound); claimed && claim.MatchesPolicy(each) {
				of := bound.BindingSpec().Resource
				found = append(found, collection{schema.FromAPIVersionAndKind(of.APIVersion, of.Kind), of.Namespace})
			}
		}
	}
	return withoutOverlaps(found)
}

// withoutOverlaps removes duplicates, and collections that another collection contains.
func withoutOverlaps(all []collection) []collection {
	var kept []collection
	for _, each := range all {
		whole := collection{kind: each.kind}
		isContained := each != whole && slices.Contains(all, whole)
		if !isContained && !slices.Contains(kept, each) {
			kept = append(kept, each)
		}
	}
	return kept
}

// readTemplates adds the templates of a collection. A kind that the control plane does not serve, or a
// version that it does not prefer, has no templates.
func (r *reader) readTemplates(ctx context.Context, of collection, in *simulation.Input) error {
	mapping, err := r.mapper.RESTMapping(of.kind.GroupKind())
	switch {
	case meta.IsNoMatchError(err):
		return nil
	case err != nil:
		return fmt.Errorf("reading the types of the control plane: %w", err)
	case mapping.GroupVersionKind != of.kind:
		return nil
	}
	var options []client.ListOption
	if of.namespace != "" && isNamespaced(mapping) {
		options = append(options, client.InNamespace(of.namespace))
	}
	for next := ""; ; {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(of.kind.GroupVersion().WithKind(of.kind.Kind + "List"))
		page := append([]client.ListOption{client.Limit(chain.PageSize), client.Continue(next)}, options...)
		if err := r.karmada.List(ctx, list, page...); err != nil {
			return fmt.Errorf("listing objects of kind %s: %w", of.kind.Kind, err)
		}
		for i := range list.Items {
			in.Templates = append(in.Templates, &list.Items[i])
		}
		if next = list.GetContinue(); next == "" {
			return nil
		}
	}
}
