package explain

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	configv1alpha1 "karmada.io/karmada/api/config/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/access/interpreters"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/diagnose"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/interpreter/webhook"
	"karmada.io/karmada/internal/domain/override"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/loop"
)

// Read reads the facts about the template in the control plane, in parallel. It reads no member.
func (r *Reader) Read(ctx context.Context, now time.Time) diagnose.Facts {
	facts := diagnose.Facts{Kind: r.Template.Kind(), Key: r.Template.Key, Now: now}
	var reads sync.WaitGroup
	reads.Go(func() { facts.Template = r.ReadTemplate(ctx) })
	reads.Go(func() { facts.Policies = r.readPolicies(ctx) })
	reads.Go(func() { facts.Clusters = r.readClusters(ctx) })
	reads.Go(func() {
		facts.Binding = r.ReadBinding(ctx)
		if bound := facts.Binding.Value; bound != nil {
			facts.Works = r.ReadWorks(ctx, bound)
		}
	})
	reads.Go(func() { facts.Overrides = r.readOverrides(ctx) })
	reads.Wait()
	facts.UnservedKinds = r.unservedKinds(&facts)
	facts.InterpretationErr = r.interpret(ctx, &facts)
	return facts
}

// interpret returns the error of the interpreter for the replicas of a template without a binding. It returns nil if the
// configuration of the interpreter cannot be read, and for kinds with a webhook: the control plane may reach a webhook that
// this machine does not reach.
func (r *Reader) interpret(ctx context.Context, facts *diagnose.Facts) error {
	template := facts.Template.Value
	hasNoBinding := facts.Binding == diagnose.Fact[binding.Object]{}
	if template == nil || !hasNoBinding {
		return nil
	}
	rules, err := interpreters.NewLoaded(ctx, r.config, interpreters.Options{CallWebhook: callNoWebhook})
	if err != nil {
		return nil //nolint:nilerr // the error says nothing about the template
	}
	_, err = (&policy.BindingInput{Template: template}).Interpret(ctx, rules.Rules(facts.Kind), false)
	if interpreter.IsBusy(err) {
		return nil
	}
	return err
}

// callNoWebhook implements webhook.Call. It returns an error that interpret ignores.
func callNoWebhook(context.Context, *webhook.Hook,
	*configv1alpha1.ResourceInterpreterContext) (*configv1alpha1.ResourceInterpreterContext, error) {
	return nil, &interpreter.BusyError{Text: "webhooks are called only by the control plane"}
}

// ReadTemplate reads the template.
func (r *Reader) ReadTemplate(ctx context.Context) diagnose.Fact[*unstructured.Unstructured] {
	template := &unstructured.Unstructured{}
	template.SetGroupVersionKind(r.Template.Kind())
	err := r.karmada.Get(ctx, r.Template.Key, template)
	return factOf(template, err)
}

// ReadBinding reads the binding of the template.
func (r *Reader) ReadBinding(ctx context.Context) diagnose.Fact[binding.Object] {
	bound, _, err := loop.FindTemplateBinding(ctx, r.karmada, r.Template.Kind().GroupKind(), r.Template.Key)
	return diagnose.Fact[binding.Object]{Value: bound, Err: err}
}

// factOf returns the fact for a read object. The fact has no value if the object does not exist or could not be read.
func factOf[T any](object T, err error) diagnose.Fact[T] {
	switch {
	case apierrors.IsNotFound(err):
		return diagnose.Fact[T]{}
	case err != nil:
		return diagnose.Fact[T]{Err: err}
	default:
		return diagnose.Fact[T]{Value: object}
	}
}

// ReadWorks reads the binding's Works in all clusters.
func (r *Reader) ReadWorks(ctx context.Context, bound binding.Object) diagnose.Fact[[]*workv1alpha1.Work] {
	id := binding.PermanentID(bound)
	if id == "" {
		return diagnose.Fact[[]*workv1alpha1.Work]{}
	}
	var works []*workv1alpha1.Work
	err := command.ForEachPage(ctx, r.karmada, func(list *workv1alpha1.WorkList) {
		for i := range list.Items {
			if binding.BelongsTo(&list.Items[i], bound) {
				works = append(works, &list.Items[i])
			}
		}
	}, client.MatchingLabels{binding.PermanentIDLabel(bound): id})
	return listed(works, "Works", err)
}

// ReadAttached reads the bindings of the dependencies of a binding, ResourceBindings first.
func (r *Reader) ReadAttached(ctx context.Context, bound binding.Object) diagnose.Fact[[]binding.Object] {
	label := workv1alpha2.DependedByLabelPrefix + binding.ReferenceKey(bound.GetNamespace(), bound.GetName())
	var attached []binding.Object
	// The label contains only a hash of the name, so verify each candidate by its spec.
	add := func(candidate binding.Object) {
		if slices.ContainsFunc(candidate.BindingSpec().RequiredBy, func(by workv1alpha2.BindingSnapshot) bool {
			return by.Namespace == bound.GetNamespace() && by.Name == bound.GetName()
		}) {
			attached = append(attached, candidate)
		}
	}
	err := command.ForEachPage(ctx, r.karmada, func(list *workv1alpha2.ResourceBindingList) {
		for i := range list.Items {
			add(&list.Items[i])
		}
	}, client.HasLabels{label})
	if err != nil {
		return listed(attached, "ResourceBindings", err)
	}
	err = command.ForEachPage(ctx, r.karmada, func(list *workv1alpha2.ClusterResourceBindingList) {
		for i := range list.Items {
			add(&list.Items[i])
		}
	}, client.HasLabels{label})
	return listed(attached, "ClusterResourceBindings", err)
}

func (r *Reader) readClusters(ctx context.Context) diagnose.Fact[[]*clusterv1alpha1.Cluster] {
	var clusters []*clusterv1alpha1.Cluster
	err := command.ForEachPage(ctx, r.karmada, func(list *clusterv1alpha1.ClusterList) {
		for i := range list.Items {
			clusters = append(clusters, &list.Items[i])
		}
	})
	return listed(clusters, "Clusters", err)
}

// readPolicies reads the policies that may select the template.
func (r *Reader) readPolicies(ctx context.Context) diagnose.Fact[[]policy.Object] {
	var policies []policy.Object
	if namespace := r.Template.Key.Namespace; namespace != "" {
		err := command.ForEachPage(ctx, r.karmada, func(list *policyv1alpha1.PropagationPolicyList) {
			for i := range list.Items {
				policies = append(policies, &list.Items[i])
			}
		}, client.InNamespace(namespace))
		if err != nil {
			return listed(policies, "PropagationPolicies", err)
		}
	}
	err := command.ForEachPage(ctx, r.karmada, func(list *policyv1alpha1.ClusterPropagationPolicyList) {
		for i := range list.Items {
			policies = append(policies, &list.Items[i])
		}
	})
	return listed(policies, "ClusterPropagationPolicies", err)
}

// readOverrides reads the override policies that may apply to the template.
func (r *Reader) readOverrides(ctx context.Context) diagnose.Fact[[]override.Object] {
	var policies []override.Object
	if namespace := r.Template.Key.Namespace; namespace != "" {
		err := command.ForEachPage(ctx, r.karmada, func(list *policyv1alpha1.OverridePolicyList) {
			for i := range list.Items {
				policies = append(policies, &list.Items[i])
			}
		}, client.InNamespace(namespace))
		if err != nil {
			return listed(policies, "OverridePolicies", err)
		}
	}
	err := command.ForEachPage(ctx, r.karmada, func(list *policyv1alpha1.ClusterOverridePolicyList) {
		for i := range list.Items {
			policies = append(policies, &list.Items[i])
		}
	})
	return listed(policies, "ClusterOverridePolicies", err)
}

// unservedKinds returns the kinds that policies select, but that the control plane does not serve. It uses the cached discovery,
// so it usually sends no request.
func (r *Reader) unservedKinds(facts *diagnose.Facts) sets.Set[schema.GroupVersionKind] {
	var selectors []policyv1alpha1.ResourceSelector
	for _, each := range facts.Policies.Value {
		selectors = append(selectors, each.PropagationSpec().ResourceSelectors...)
	}
	for _, each := range facts.Overrides.Value {
		selectors = append(selectors, each.OverrideSpec().ResourceSelectors...)
	}
	wanted, unserved := sets.New[schema.GroupVersionKind](), sets.New[schema.GroupVersionKind]()
	for i := range selectors {
		wanted.Insert(schema.FromAPIVersionAndKind(selectors[i].APIVersion, selectors[i].Kind))
	}
	for kind := range wanted {
		if _, err := r.types.RESTMapping(kind.GroupKind(), kind.Version); meta.IsNoMatchError(err) {
			unserved.Insert(kind)
		}
	}
	return unserved
}

func listed[T any](objects []T, what string, err error) diagnose.Fact[[]T] {
	if err != nil {
		return diagnose.Fact[[]T]{Err: fmt.Errorf("listing %s: %w", what, err)}
	}
	return diagnose.Fact[[]T]{Value: objects}
}
