package simulation

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/interpreter"
)

// candidate is a template that the changes may concern.
type candidate struct {
	template *unstructured.Unstructured
	isGiven  bool
}

// templateKey identifies a template in any version of its kind.
type templateKey struct {
	schema.GroupKind
	types.NamespacedName
}

func keyOfTemplate(template *unstructured.Unstructured) templateKey {
	return templateKey{
		template.GroupVersionKind().GroupKind(),
		types.NamespacedName{Namespace: template.GetNamespace(), Name: template.GetName()},
	}
}

// candidates returns the given templates and, if there are given policies, the other stored templates.
func (s *simulator) candidates() []candidate {
	stored := map[templateKey]*unstructured.Unstructured{}
	for _, template := range s.Templates {
		stored[keyOfTemplate(template)] = template
	}
	isGiven := map[templateKey]bool{}
	var all []candidate
	for _, given := range slices.Backward(s.GivenTemplates) {
		key := keyOfTemplate(given)
		if !isGiven[key] { // the last of several counts, as if they were applied one after the other
			isGiven[key] = true
			all = append(all, candidate{replaceTemplate(given, stored[key]), true})
		}
	}
	slices.Reverse(all)
	if len(s.GivenPolicies) == 0 {
		return all
	}
	for _, template := range s.Templates {
		if !isGiven[keyOfTemplate(template)] {
			all = append(all, candidate{template.DeepCopy(), false})
		}
	}
	return all
}

// changedVersion is the resource version of a template that would be written.
const changedVersion = "simulated"

// replaceTemplate returns the given template with the identity and the claim of the stored template,
// which may be nil.
func replaceTemplate(given, stored *unstructured.Unstructured) *unstructured.Unstructured {
	replaced := withDefaultReplicas(given.DeepCopy(), stored)
	replaced.SetUID(types.UID(fmt.Sprint(keyOfTemplate(given)))) // other templates have other UIDs
	replaced.SetResourceVersion(changedVersion)
	if stored == nil {
		return replaced
	}
	replaced.SetUID(stored.GetUID())
	replaced.SetLabels(withKarmadaKeys(replaced.GetLabels(), stored.GetLabels()))
	replaced.SetAnnotations(withKarmadaKeys(replaced.GetAnnotations(), stored.GetAnnotations()))
	return replaced
}

// withKarmadaKeys returns the labels or annotations with those that Karmada wrote to the stored
// object.
func withKarmadaKeys(given, stored map[string]string) map[string]string {
	merged := map[string]string{}
	for key, value := range given {
		merged[key] = value
	}
	for key, value := range stored {
		if strings.Contains(key, clusterv1alpha1.DomainSuffix) {
			merged[key] = value
		}
	}
	return merged
}

// replicaFields are the fields for which the API server sets a default of 1.
var replicaFields = map[schema.GroupKind][]string{
	{Group: "apps", Kind: "Deployment"}:  {"spec", "replicas"},
	{Group: "apps", Kind: "StatefulSet"}: {"spec", "replicas"},
	{Group: "apps", Kind: "ReplicaSet"}:  {"spec", "replicas"},
	{Group: "batch", Kind: "Job"}:        {"spec", "parallelism"},
}

// withDefaultReplicas sets the replicas of a template from a file that does not contain them: to those
// of the stored template, which may be nil, or else to the default of the API server.
func withDefaultReplicas(template, stored *unstructured.Unstructured) *unstructured.Unstructured {
	path, hasDefault := replicaFields[template.GroupVersionKind().GroupKind()]
	if !hasDefault {
		return template
	}
	if _, found, err := unstructured.NestedFieldNoCopy(template.Object, path...); found || err != nil {
		return template
	}
	replicas := int64(1)
	if stored != nil {
		if number, found, err := unstructured.NestedInt64(stored.Object, path...); found && err == nil {
			replicas = number
		}
	}
	_ = unstructured.SetNestedField(template.Object, replicas, path...) // the interpreter reports a spec that is no object
	return template
}

// ReviseReplicas returns the templates with another number of replicas. Templates of kinds without
// replicas stay unchanged. It returns an error if no template has replicas.
func ReviseReplicas(ctx context.Context, rules interpreter.Source, templates []*unstructured.Unstructured,
	replicas int32) ([]*unstructured.Unstructured, error) {
	revised, changed := make([]*unstructured.Unstructured, len(templates)), false
	for i, template := range templates {
		revised[i] = template
		of := rules.Rules(template.GroupVersionKind())
		if of.Replicas == nil || of.ReviseReplicas == nil {
			continue
		}
		var err error
		if revised[i], err = of.ReviseReplicas(ctx, withDefaultReplicas(template.DeepCopy(), nil), int64(replicas)); err != nil {
			return nil, fmt.Errorf("changing the replicas of %s %s: %w", template.GetKind(), template.GetName(), err)
		}
		changed = true
	}
	if !changed {
		return nil, fmt.Errorf("no given object has replicas: name a file with a workload, such as a Deployment")
	}
	return revised, nil
}

// bindingKeyOf returns the key of the template's binding, whether or not the binding exists.
func (s *simulator) bindingKeyOf(template *unstructured.Unstructured) bindingKey {
	keyOfName := func(name string) bindingKey {
		return bindingKey{types.NamespacedName{Namespace: template.GetNamespace(), Name: name}, template.GetNamespace() != ""}
	}
	// get never fails, so Find does not either.
	bound, freeName, _ := binding.Find(template.GroupVersionKind().GroupKind(), template.GetName(), func(name string) (binding.Object, error) {
		of := s.subjects[keyOfName(name)]
		switch {
		case of == nil:
			return nil, nil
		case of.bound != nil:
			return of.bound, nil
		}
		reserved := binding.New(template.GetNamespace() != "") // the template of the subject gets no binding
		reserved.SetNamespace(template.GetNamespace())
		reserved.SetName(name)
		reserved.BindingSpec().Resource = of.resource
		return reserved, nil
	})
	if bound != nil {
		return keyOf(bound)
	}
	return keyOfName(freeName)
}

func referenceOf(template *unstructured.Unstructured) workv1alpha2.ObjectReference {
	return workv1alpha2.ObjectReference{
		APIVersion: template.GetAPIVersion(), Kind: template.GetKind(), Namespace: template.GetNamespace(), Name: template.GetName(),
	}
}

// metadataOf returns the metadata of a binding, or an untyped nil if there is none.
func metadataOf(bound binding.Object) metav1.Object {
	if bound == nil {
		return nil
	}
	return bound
}
