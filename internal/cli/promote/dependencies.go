package promote

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

// promoteDependencies makes templates of what the object needs. They need no policy
// of their own, because they follow the object.
func (p promotion) promoteDependencies(ctx context.Context, plan plan, made *creations) error {
	rule := p.rules.Rules(plan.template.GroupVersionKind()).Dependencies
	if rule == nil {
		p.Program.Tell("no rule tells what a %s needs", plan.template.GetKind())
		return nil
	}
	needed, err := rule(ctx, plan.template)
	if err != nil {
		return fmt.Errorf("finding what %s needs: %w", title(plan.mapping, plan.template.GetNamespace(), plan.template.GetName()), err)
	}
	references := dependency.References(plan.template, needed)
	p.Program.Tell("the built-in rule for kind %s finds: %s", plan.template.GetKind(), describe(references))
	for _, reference := range references {
		objects, err := p.resolve(ctx, reference)
		if err != nil {
			return err
		}
		for _, object := range objects {
			if err := p.promoteDependency(ctx, object, made); err != nil {
				return err
			}
		}
	}
	return nil
}

// describe lists references in one line.
func describe(references []dependency.Reference) string {
	if len(references) == 0 {
		return "no dependencies"
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

// resolve reads from the member what a reference points to. What the member does not
// have it does without.
func (p promotion) resolve(ctx context.Context, reference dependency.Reference) ([]found, error) {
	kind := dependency.KindOf(reference)
	mapping, err := p.member.mappingOf(kind)
	if err != nil {
		return nil, err
	}
	if reference.Name != "" {
		object, err := p.member.get(ctx, mapping, reference.Namespace, reference.Name)
		if err == nil && object == nil {
			p.Program.Tell("%s is needed and not in %s: it is left out", title(mapping, reference.Namespace, reference.Name), p.member.where)
		}
		if err != nil || object == nil {
			return nil, err
		}
		return []found{{object, mapping}}, nil
	}
	selector := dependency.SelectorOf(reference)
	if selector == nil {
		return nil, nil
	}
	listed, err := p.member.list(ctx, mapping, reference.Namespace, selector.String())
	if err != nil {
		return nil, err
	}
	var objects []found
	for i := range listed {
		objects = append(objects, found{&listed[i], mapping})
	}
	return objects, nil
}

func (p promotion) promoteDependency(ctx context.Context, object found, made *creations) error {
	if err := domain.Refuse(object.Unstructured); err != nil {
		p.Program.Tell("%s is left out: %v", title(object.mapping, object.GetNamespace(), object.GetName()), err)
		return nil
	}
	template := domain.Template(object.Unstructured)
	mapping, err := p.karmada.mappingOf(template.GroupVersionKind())
	if err != nil {
		return err
	}
	name := resourceOf(mapping.Resource, template)
	err = p.createOnce(ctx, mapping, template, made)
	switch {
	case apierrors.IsAlreadyExists(err):
		p.Program.Tell("Dependency resource %s already exists in the control plane", name)
	case err != nil:
		return err
	case p.dryRun:
	default:
		fmt.Fprintf(p.Program.Out, "Dependency resource %s is promoted successfully\n", name)
	}
	return nil
}

// createOnce is create, apart from what the control plane is known to have: then
// nobody is asked whether it would be accepted.
func (p promotion) createOnce(ctx context.Context, mapping *meta.RESTMapping, template *unstructured.Unstructured, made *creations) error {
	existing, err := p.karmada.get(ctx, mapping, template.GetNamespace(), template.GetName())
	if err != nil {
		return err
	}
	if existing != nil {
		return apierrors.NewAlreadyExists(mapping.Resource.GroupResource(), template.GetName())
	}
	return p.create(ctx, mapping, template, made)
}
