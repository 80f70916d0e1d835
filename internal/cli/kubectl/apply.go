package kubectl

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"syscall"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/cli-runtime/pkg/resource"
	kubectlapply "k8s.io/kubectl/pkg/cmd/apply"
	cmdutil "k8s.io/kubectl/pkg/cmd/util"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/tenancy"
)

type applyOptions struct {
	command.ClientFlags
	flags *kubectlapply.ApplyFlags

	clusters    []string
	allClusters bool
}

// NewApply returns the command that applies files.
func NewApply(program *command.Program) *cobra.Command {
	o := &applyOptions{ClientFlags: command.ClientFlags{Program: program}, flags: kubectlapply.NewApplyFlags(program.IOStreams)}
	factory := o.NewFactory(&command.Target{}, 0)
	cmd := &cobra.Command{
		Use:   "apply (-f FILENAME | -k DIRECTORY)",
		Short: "Apply files to the control plane, and propagate their objects to members",
		Long: `Apply files to the control plane.

With --cluster or --all-clusters, the command also applies a policy for each object, which
propagates only this object to those members. The name of the policy is derived from the
object, so applying it again with other members moves the object. The policy stays when its
object is deleted or pruned: delete it too.`,
		Example: program.Examples(`
			# Apply a file without propagating its objects
			{{program}} apply -f web.yaml

			# Apply a directory and propagate its objects to two members
			{{program}} apply -f web/ --cluster east,west

			# Apply the output of another program and propagate it to all members
			helm template web ./chart | {{program}} apply -f - --all-clusters

			# Print the objects and policies without applying them
			{{program}} apply -f web.yaml --all-clusters --dry-run=client -o yaml`),
		DisableFlagsInUseLine: true,
		Args:                  func(cmd *cobra.Command, args []string) error { return o.validate(cmd, args) },
		RunE:                  func(cmd *cobra.Command, args []string) error { return o.run(cmd, factory, args) },
	}
	o.flags.AddFlags(cmd)
	o.ClientFlags.AddFlags(cmd)
	o.AddNamespaceFlag(cmd, factory)
	cmd.Flags().StringSliceVarP(&o.clusters, "cluster", "C", nil, "members to which the applied objects are propagated, comma separated")
	cmd.Flags().BoolVar(&o.allClusters, "all-clusters", false, "propagate the applied objects to all members, including those that join later")
	program.CompleteClusters(cmd, "cluster", &o.Context)
	return cmd
}

// createsPolicies reports whether the applied objects are propagated to members.
func (o *applyOptions) createsPolicies() bool { return o.allClusters || len(o.clusters) > 0 }

// validate returns a usage error if arguments or flags are wrong. It sends no request.
func (o *applyOptions) validate(cmd *cobra.Command, args []string) error {
	switch {
	case len(args) > 0:
		return command.NewUsageError("unexpected argument %q: set files with -f", args[0])
	case o.allClusters && len(o.clusters) > 0:
		return command.NewUsageError("--cluster and --all-clusters exclude each other")
	case len(o.clusters) == 0 && cmd.Flags().Changed("cluster"):
		return command.NewUsageError("--cluster is empty: omit it to apply the objects without propagating them")
	case o.createsPolicies() && o.flags.Subresource != "":
		return command.NewUsageError("--subresource changes a part of an object, which cannot be propagated: omit --cluster and --all-clusters")
	case o.createsPolicies() && o.flags.ApplySetRef != "":
		return command.NewUsageError("--applyset does not include the policies of --cluster and --all-clusters: use one or the other")
	}
	return nil
}

func (o *applyOptions) run(cmd *cobra.Command, factory cmdutil.Factory, args []string) error {
	if err := o.VerifyKubeconfig(); err != nil {
		return err
	}
	if err := o.verifyClusters(cmd.Context()); err != nil {
		return err
	}
	// From here on, kubectl's code runs. It ignores contexts, so an interrupt must end the process again. It also prints its
	// errors itself, and exits after an error.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
	applyOptions, err := o.flags.ToOptions(factory, cmd, o.Program.Name, args)
	cmdutil.CheckErr(err)
	cmdutil.CheckErr(applyOptions.Validate())
	if !o.createsPolicies() {
		cmdutil.CheckErr(applyOptions.Run())
		return nil
	}
	applier := policyApplier{options: applyOptions, factory: factory, clusters: withoutDuplicates(o.clusters), messagef: o.Program.Messagef}
	cmdutil.CheckErr(applier.run())
	return nil
}

// withoutDuplicates returns the names without repetitions, in the given order.
func withoutDuplicates(names []string) (kept []string) {
	for _, name := range names {
		if !slices.Contains(kept, name) {
			kept = append(kept, name)
		}
	}
	return kept
}

// verifyClusters returns an error if a named member does not exist.
func (o *applyOptions) verifyClusters(ctx context.Context) error {
	if len(o.clusters) == 0 {
		return nil
	}
	_, err := o.ListMembers(ctx, o.clusters)
	return err
}

// policyApplier applies objects, and for each object a policy that propagates it to members.
type policyApplier struct {
	options *kubectlapply.ApplyOptions
	factory cmdutil.Factory
	// clusters are the members. Empty means all.
	clusters []string
	messagef func(format string, args ...any)
}

// run applies each object and then its policy. If an object is rejected, run skips its policy and continues with the other
// objects. kubectl's final steps, printing a list and pruning, run once for all objects.
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

// warnAboutOtherPolicy prints a warning if another policy has claimed the object. The new policy then has no effect, because
// policies do not preempt each other by default.
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

// findPolicyMappings returns the REST mappings of policies, or an error if the control plane does not serve policies. It runs
// before any object is applied.
func (p *policyApplier) findPolicyMappings() (kinds policyMappings, err error) {
	find := func(kind string) (mapping *meta.RESTMapping) {
		if err == nil {
			mapping, err = p.options.Mapper.RESTMapping(schema.GroupKind{Group: policyv1alpha1.GroupName, Kind: kind},
				policyv1alpha1.GroupVersion.Version)
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

// newPolicyInfo returns the policy that propagates the object. If the policy with the generated name belongs to another
// object, the returned policy has an unambiguous name.
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

// newPolicy returns a policy that propagates the object to the given clusters, or to all clusters if there are none. It sets no
// other fields, so that applying it again keeps the fields that others set.
func newPolicy(kind schema.GroupVersionKind, object *resource.Info, clusters []string) *unstructured.Unstructured {
	selected := object.Mapping.GroupVersionKind
	apiVersion, kindName := selected.ToAPIVersionAndKind()
	selector := map[string]any{"apiVersion": apiVersion, "kind": kindName, "name": object.Name}
	if object.Namespaced() {
		selector["namespace"] = object.Namespace
	}
	affinity := map[string]any{}
	if len(clusters) > 0 {
		affinity["clusterNames"] = toAnySlice(clusters)
	}
	policyObject := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{
		"resourceSelectors": []any{selector},
		"placement":         map[string]any{"clusterAffinity": affinity},
	}}}
	policyObject.SetGroupVersionKind(kind)
	policyObject.SetName(policy.GeneratedName(selected, object.Namespace, object.Name))
	if object.Namespaced() {
		policyObject.SetNamespace(object.Namespace)
	}
	return policyObject
}

func toAnySlice(names []string) []any {
	values := make([]any, 0, len(names))
	for _, name := range names {
		values = append(values, name)
	}
	return values
}
