package ownership

import (
	"context"
	"errors"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"karmada.io/karmada/internal/domain/dependency"
	"karmada.io/karmada/internal/domain/interpreter"
	"karmada.io/karmada/internal/domain/policy"
)

// promotion holds the options and clients of one promote command.
type promotion struct {
	promoteOptions
	karmada, member clusterClient
	rules           interpreter.Source
}

// promotionPlan contains the objects that are to be created.
type promotionPlan struct {
	// object is the object of the member.
	object   clusterObject
	template *unstructured.Unstructured
	// mapping is the REST mapping of the template in the control plane.
	mapping *meta.RESTMapping
	// policy is the policy to be created. It is nil if no policy is created.
	policy        *unstructured.Unstructured
	policyMapping *meta.RESTMapping
}

// promote promotes an object of the member.
func (p promotion) promote(ctx context.Context, object clusterObject) error {
	if err := validatePromotable(object.Unstructured); err != nil {
		return err
	}
	plan := promotionPlan{object: object, template: newPromotedTemplate(object.Unstructured)}
	if p.autoPolicy {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(newPromotionPolicy(plan.template, p.cluster, p.policyName,
			p.dependencies))
		if err != nil {
			return fmt.Errorf("converting the policy: %w", err)
		}
		plan.policy = &unstructured.Unstructured{Object: content}
	}
	if p.output != "" {
		p.warnAboutManager(object)
		return p.print(plan)
	}
	exists, err := p.isTemplatePresent(ctx, &plan)
	if err != nil {
		return err
	}
	if exists {
		p.Program.Messagef("warning: Resource %s already exists in the control plane: nothing is changed; edit its policy to propagate it to member %q",
			formatResource(object.mapping.Resource, object.Unstructured), p.cluster)
		return nil
	}
	p.warnAboutManager(object)
	return p.createAll(ctx, plan)
}

// warnAboutManager prints a warning if a control plane already manages the object. Callers skip it if the template exists,
// because then this control plane is the manager.
func (p promotion) warnAboutManager(object clusterObject) {
	if manager := managingWorkOf(object.Unstructured); manager != "" {
		p.Program.Messagef("warning: %s is managed by Work %s of a control plane; if that is another control plane that still runs, both will overwrite each other's changes",
			describeObject(object.mapping, object.GetNamespace(), object.GetName()), manager)
	}
}

// print prints the objects that would be created.
func (p promotion) print(plan promotionPlan) error {
	var printer printers.ResourcePrinter = &printers.YAMLPrinter{}
	if p.output == "json" {
		printer = &printers.JSONPrinter{}
	}
	for _, object := range []*unstructured.Unstructured{plan.template, plan.policy} {
		if object == nil {
			continue
		}
		if err := printer.PrintObj(object, p.Program.Out); err != nil {
			return fmt.Errorf("printing %s: %w", object.GetKind(), err)
		}
	}
	return nil
}

// isTemplatePresent reports whether the control plane already has the template. It returns an error for any other conflict
// with the plan. It runs before objects are created.
func (p promotion) isTemplatePresent(ctx context.Context, plan *promotionPlan) (exists bool, err error) {
	if plan.mapping, err = p.karmada.mappingOf(plan.template.GroupVersionKind()); err != nil {
		return false, err
	}
	existing, err := p.karmada.get(ctx, plan.mapping, plan.template.GetNamespace(), plan.template.GetName())
	if err != nil || existing != nil {
		return existing != nil, err
	}
	if err := p.verifyNamespace(ctx, plan.template.GetNamespace()); err != nil {
		return false, err
	}
	if plan.policy == nil {
		return false, nil
	}
	if plan.policyMapping, err = p.karmada.mappingOf(plan.policy.GroupVersionKind()); err != nil {
		return false, err
	}
	taken, err := p.policyWithName(ctx, plan)
	if err == nil && taken != nil {
		err = fmt.Errorf("%s already exists in the control plane: choose another name with --policy-name, or --auto-create-policy=false if it selects the object",
			describeObject(plan.policyMapping, taken.GetNamespace(), taken.GetName()))
	}
	return false, err
}

// policyWithName returns the stored policy with the name of the planned policy, or nil. If the generated name is the name of
// another object's policy, it changes the planned name.
func (p promotion) policyWithName(ctx context.Context, plan *promotionPlan) (*unstructured.Unstructured, error) {
	kind, namespace, name := plan.template.GroupVersionKind(), plan.template.GetNamespace(), plan.template.GetName()
	taken, err := p.karmada.get(ctx, plan.policyMapping, plan.policy.GetNamespace(), plan.policy.GetName())
	if err != nil || taken == nil || p.policyName != "" || policy.SelectsObjectByName(taken, kind, namespace, name) {
		return taken, err
	}
	plan.policy.SetName(policy.UnambiguousName(kind, namespace, name))
	return p.karmada.get(ctx, plan.policyMapping, plan.policy.GetNamespace(), plan.policy.GetName())
}

// verifyNamespace returns an error if the namespace of the template does not exist in the
// control plane.
func (p promotion) verifyNamespace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	mapping, err := p.karmada.mappingOf(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err != nil {
		return err
	}
	namespace, err := p.karmada.get(ctx, mapping, "", name)
	if apierrors.IsForbidden(err) {
		// The user is not allowed to read namespaces. The creation reports a missing namespace.
		return nil
	}
	if err == nil && namespace == nil {
		return fmt.Errorf("the control plane has no namespace %q: create it first, with: %s create namespace %s", name, p.Program.Name, name)
	}
	return err
}

// createAll creates the planned objects. The policy is created before the template, so that
// no other policy can claim the template first.
func (p promotion) createAll(ctx context.Context, plan promotionPlan) (err error) {
	var created createdObjects
	defer func() {
		if err != nil {
			err = errors.Join(err, created.rollBack(ctx, p.karmada, p.Program.Messagef))
		}
	}()
	if p.dependencies {
		if err := p.promoteDependencies(ctx, plan, &created); err != nil {
			return err
		}
	}
	if plan.policy != nil {
		if err := p.create(ctx, plan.policyMapping, plan.policy, &created); err != nil {
			return err
		}
	}
	if err := p.create(ctx, plan.mapping, plan.template, &created); err != nil {
		return err
	}
	p.printResult(plan)
	return nil
}

// create stores an object in the control plane and records it for a rollback.
func (p promotion) create(ctx context.Context, mapping *meta.RESTMapping, object *unstructured.Unstructured,
	created *createdObjects) error {
	stored, err := p.karmada.create(ctx, mapping, object, p.dryRun)
	if err != nil || p.dryRun {
		return err
	}
	*created = append(*created, clusterObject{Unstructured: stored, mapping: mapping})
	return nil
}

// printResult prints which objects were created.
func (p promotion) printResult(plan promotionPlan) {
	if p.dryRun {
		p.Program.Messagef("dry run: %s can be promoted, nothing was created",
			describeObject(plan.mapping, plan.template.GetNamespace(), plan.template.GetName()))
		return
	}
	out := p.Program.Out
	fmt.Fprintf(out, "ResourceTemplate (%s) is created successfully\n", namespacedName(plan.template))
	switch {
	case plan.policy == nil:
	case plan.policy.GetNamespace() == "":
		fmt.Fprintf(out, "ClusterPropagationPolicy %s is created successfully\n", plan.policy.GetName())
	default:
		fmt.Fprintf(out, "PropagationPolicy (%s) is created successfully\n", namespacedName(plan.policy))
	}
	fmt.Fprintf(out, "Resource %s is promoted successfully\n", formatResource(plan.mapping.Resource, plan.template))
}

// formatResource formats an object as "<gvr>"(<namespace>/<name>).
func formatResource(resource schema.GroupVersionResource, object *unstructured.Unstructured) string {
	return fmt.Sprintf("%q(%s)", resource.String(), namespacedName(object))
}

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
		return fmt.Errorf("finding the dependencies of %s: %w",
			describeObject(plan.mapping, plan.template.GetNamespace(), plan.template.GetName()), err)
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
			p.Program.Messagef("%s is a dependency but does not exist in %s: it is skipped",
				describeObject(mapping, reference.Namespace, reference.Name), p.member.target)
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
	if err := validatePromotable(object.Unstructured); err != nil {
		p.Program.Messagef("%s is skipped: %v", describeObject(object.mapping, object.GetNamespace(), object.GetName()), err)
		return nil
	}
	template := newPromotedTemplate(object.Unstructured)
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
func (p promotion) createIfMissing(ctx context.Context, mapping *meta.RESTMapping, template *unstructured.Unstructured,
	created *createdObjects) error {
	existing, err := p.karmada.get(ctx, mapping, template.GetNamespace(), template.GetName())
	if err != nil {
		return err
	}
	if existing != nil {
		return apierrors.NewAlreadyExists(mapping.Resource.GroupResource(), template.GetName())
	}
	return p.create(ctx, mapping, template, created)
}
