package promote

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/printers"

	"karmada.io/karmada/internal/domain/interpreter"
	domain "karmada.io/karmada/internal/domain/promotion"
)

// promotion is one run of the command.
type promotion struct {
	options
	karmada, member side
	rules           interpreter.Source
}

// plan is what is to be created for the object that the user named.
type plan struct {
	// object is as the member has it.
	object   found
	template *unstructured.Unstructured
	// mapping is how the template is reached in the control plane.
	mapping *meta.RESTMapping
	// policy is nil if none is wanted.
	policy        *unstructured.Unstructured
	policyMapping *meta.RESTMapping
}

// of promotes an object of the member.
func (p promotion) of(ctx context.Context, object found) error {
	if err := domain.Refuse(object.Unstructured); err != nil {
		return err
	}
	plan := plan{object: object, template: domain.Template(object.Unstructured)}
	if p.autoPolicy {
		content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(domain.Policy(plan.template, p.cluster, p.policyName, p.dependencies))
		if err != nil {
			return fmt.Errorf("making the policy: %w", err)
		}
		plan.policy = &unstructured.Unstructured{Object: content}
	}
	if p.output != "" {
		p.warnOfManager(object)
		return p.print(plan)
	}
	there, err := p.look(ctx, &plan)
	if err != nil {
		return err
	}
	if there {
		p.Program.Tell("warning: Resource %s already exists in the control plane: nothing is changed; edit its policy to send it to member %q",
			resourceOf(object.mapping.Resource, object.Unstructured), p.cluster)
		return nil
	}
	p.warnOfManager(object)
	return p.carryOut(ctx, plan)
}

// warnOfManager tells of a control plane that has the object already. That is this
// very one as long as the template is there, and then not worth a word.
func (p promotion) warnOfManager(object found) {
	if manager := domain.Manager(object.Unstructured); manager != "" {
		p.Program.Tell("warning: %s is kept by Work %s of a control plane; if another one than this still runs, both will change it in turn",
			title(object.mapping, object.GetNamespace(), object.GetName()), manager)
	}
}

// print writes what would be created.
func (p promotion) print(plan plan) error {
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

// look finds out what the control plane has already. Whatever is in the way is said
// before anything is created.
func (p promotion) look(ctx context.Context, plan *plan) (there bool, err error) {
	if plan.mapping, err = p.karmada.mappingOf(plan.template.GroupVersionKind()); err != nil {
		return false, err
	}
	existing, err := p.karmada.get(ctx, plan.mapping, plan.template.GetNamespace(), plan.template.GetName())
	if err != nil || existing != nil {
		return existing != nil, err
	}
	if err := p.checkNamespace(ctx, plan.template.GetNamespace()); err != nil {
		return false, err
	}
	if plan.policy == nil {
		return false, nil
	}
	if plan.policyMapping, err = p.karmada.mappingOf(plan.policy.GroupVersionKind()); err != nil {
		return false, err
	}
	taken, err := p.karmada.get(ctx, plan.policyMapping, plan.policy.GetNamespace(), plan.policy.GetName())
	if err == nil && taken != nil {
		err = fmt.Errorf("%s already exists in the control plane: choose another name with --policy-name, or --auto-create-policy=false if it selects the object",
			title(plan.policyMapping, taken.GetNamespace(), taken.GetName()))
	}
	return false, err
}

// checkNamespace makes sure that a template has somewhere to be.
func (p promotion) checkNamespace(ctx context.Context, name string) error {
	if name == "" {
		return nil
	}
	mapping, err := p.karmada.mappingOf(schema.GroupVersionKind{Version: "v1", Kind: "Namespace"})
	if err != nil {
		return err
	}
	namespace, err := p.karmada.get(ctx, mapping, "", name)
	if apierrors.IsForbidden(err) {
		// Then the creation tells.
		return nil
	}
	if err == nil && namespace == nil {
		return fmt.Errorf("the control plane has no namespace %q: create it first, with: %s create namespace %s", name, p.Program.Name, name)
	}
	return err
}

// carryOut creates what is planned. The policy comes before the template, so that no
// other policy can claim the template in between and send it elsewhere.
func (p promotion) carryOut(ctx context.Context, plan plan) (err error) {
	var made creations
	defer func() {
		if err != nil {
			err = errors.Join(err, made.undo(ctx, p.karmada, p.Program.Tell))
		}
	}()
	if p.dependencies {
		if err := p.promoteDependencies(ctx, plan, &made); err != nil {
			return err
		}
	}
	if plan.policy != nil {
		if err := p.create(ctx, plan.policyMapping, plan.policy, &made); err != nil {
			return err
		}
	}
	if err := p.create(ctx, plan.mapping, plan.template, &made); err != nil {
		return err
	}
	p.report(plan)
	return nil
}

// create stores an object in the control plane, and notes it for the case that
// something fails later.
func (p promotion) create(ctx context.Context, mapping *meta.RESTMapping, object *unstructured.Unstructured, made *creations) error {
	stored, err := p.karmada.create(ctx, mapping, object, p.dryRun)
	if err != nil || p.dryRun {
		return err
	}
	*made = append(*made, found{Unstructured: stored, mapping: mapping})
	return nil
}

// report tells what was done.
func (p promotion) report(plan plan) {
	if p.dryRun {
		p.Program.Tell("dry run: %s can be promoted, nothing was created", title(plan.mapping, plan.template.GetNamespace(), plan.template.GetName()))
		return
	}
	out := p.Program.Out
	fmt.Fprintf(out, "ResourceTemplate (%s) is created successfully\n", domain.Reference(plan.template))
	switch {
	case plan.policy == nil:
	case plan.policy.GetNamespace() == "":
		fmt.Fprintf(out, "ClusterPropagationPolicy %s is created successfully\n", plan.policy.GetName())
	default:
		fmt.Fprintf(out, "PropagationPolicy (%s) is created successfully\n", domain.Reference(plan.policy))
	}
	fmt.Fprintf(out, "Resource %s is promoted successfully\n", resourceOf(plan.mapping.Resource, plan.template))
}

// resourceOf names an object as "<gvr>"(<namespace>/<name>).
func resourceOf(resource schema.GroupVersionResource, object *unstructured.Unstructured) string {
	return fmt.Sprintf("%q(%s)", resource.String(), domain.Reference(object))
}
