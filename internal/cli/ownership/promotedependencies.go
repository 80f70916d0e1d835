package ownership

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"karmada.io/karmada/internal/domain/dependency"
	domain "karmada.io/karmada/internal/domain/promotion"
)

// promoteDependencies creates templates for the dependencies of the object. These templates need
// no policy, because they are propagated together with the object.
func (p promotion) promoteDependencies(ctx context.Context, plan promotionPlan, created *createdObjects) error {
	rule := p.rules.Rules(plan.template.GroupVersionKind()).Dependencies
	if rule == nil {
		p.Program.Messagef("there is no rule for the dependencies of a %s", plan.template.GetKind())
		return nil
	}
	dependencies, err := rule(ctx, plan.template)
	if err != nil {
		return fmt.Errorf("finding the dependencies of %s: %w", describeObject(plan.mapping, plan.template.GetNamespace(), plan.template.GetName()), err)
	}
	references := dependency.References(plan.template, dependencies)
	p.Program.Messagef("dependencies by the built-in rule for kind %s: %s", plan.template.GetKind(), formatReferences(references))
	for _, reference := range references {
		objects, err := p.resolveReference(ctx, reference)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := p.promoteDependency(ctx, object, created); err != nil {
				return err
			}
		}
	}
	return nil
}

// formatReferences lists references in one line.
func formatReferences(references []dependency.Reference) string {
	if len(references) == 0 {
		return "none"
	}
	var names []string
	for _, reference := range references {
		name := reference.Name
		if name == "" {
			name = metav1.FormatLabelSelector(reference.LabelSelector)
		}
		if reference.Namespace != "" {
			name = reference.Namespace + "/" + name
		}
		names = append(names, reference.Kind+" "+name)
	}
	return strings.Join(names, ", ")
}

// resolveReference reads the referenced objects from the member. It skips missing objects.
func (p promotion) resolveReference(ctx context.Context, reference dependency.Reference) ([]clusterObject, error) {
	kind := dependency.ReferencedKind(reference)
	mapping, err := p.member.mappingOf(kind)
	if err != nil {
		return nil, err
	}
	if reference.Name != "" {
		object, err := p.member.get(ctx, mapping, reference.Namespace, reference.Name)
		if err == nil && object == nil {
			p.Program.Messagef("%s is a dependency but does not exist in %s: it is skipped", describeObject(mapping, reference.Namespace, reference.Name), p.member.target)
		}
		if err != nil || object == nil {
			return nil, err
		}
		return []clusterObject{{object, mapping}}, nil
	}
	selector := dependency.SelectorOf(reference)
	if selector == nil {
		return nil, nil
	}
	listed, err := p.member.list(ctx, mapping, reference.Namespace, selector.String())
	if err != nil {
		return nil, err
	}
	var objects []clusterObject
	for i := range listed {
		objects = append(objects, clusterObject{&listed[i], mapping})
	}
	return objects, nil
}

func (p promotion) promoteDependency(ctx context.Context, object clusterObject, created *createdObjects) error {
	if err := domain.CheckPromotable(object.Unstructured); err != nil {
		p.Program.Messagef("%s is skipped: %v", describeObject(object.mapping, object.GetNamespace(), object.GetName()), err)
		return nil
	}
	template := domain.NewTemplate(object.Unstructured)
	mapping, err := p.karmada.mappingOf(template.GroupVersionKind())
	if err != nil {
		return err
	}
	name := formatResource(mapping.Resource, template)
	err = p.createIfMissing(ctx, mapping, template, created)
	switch {
	case apierrors.IsAlreadyExists(err):
		p.Program.Messagef("Dependency resource %s already exists in the control plane", name)
	case err != nil:
		return err
	case p.dryRun:
	default:
		fmt.Fprintf(p.Program.Out, "Dependency resource %s is promoted successfully\n", name)
	}
	return nil
}

// createIfMissing creates a template. If the control plane has the template already, it sends no
// create request and returns AlreadyExists.
func (p promotion) createIfMissing(ctx context.Context, mapping *meta.RESTMapping, template *unstructured.Unstructured, created *createdObjects) error {
	existing, err := p.karmada.get(ctx, mapping, template.GetNamespace(), template.GetName())
	if err != nil {
		return err
	}
	if existing != nil {
		return apierrors.NewAlreadyExists(mapping.Resource.GroupResource(), template.GetName())
	}
	return p.create(ctx, mapping, template, created)
}
