package explain

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/cli/command"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/failover"
	"karmada.io/karmada/internal/domain/placement"
	"karmada.io/karmada/internal/domain/policy"
	"karmada.io/karmada/internal/domain/simulation"
)

// controlPlaneReader reads the objects that a simulation needs.
type controlPlaneReader struct {
	karmada client.Client
	mapper  meta.RESTMapper
}

func (o *simulateOptions) newReader() (*controlPlaneReader, error) {
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
	known := meta.FirstHitRESTMapper{MultiRESTMapper: meta.MultiRESTMapper{newMapper(), mapper}}
	karmada, err := client.New(config, client.Options{Scheme: scheme, Mapper: known})
	if err != nil {
		return nil, fmt.Errorf("creating a client of the control plane: %w", err)
	}
	return &controlPlaneReader{karmada, mapper}, nil
}

// readControlPlane reads the clusters, policies and bindings, and the templates that the given objects affect. The returned
// input also contains the given objects.
func (o *simulateOptions) readControlPlane(ctx context.Context, given givenObjects) (in simulation.Input, err error) {
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
func (r *controlPlaneReader) readLists(ctx context.Context, in *simulation.Input) error {
	for _, each := range []struct {
		what string
		err  error
	}{
		{"Clusters", command.ForEachPage(ctx, r.karmada, func(list *clusterv1alpha1.ClusterList) {
			for i := range list.Items {
				in.Clusters = append(in.Clusters, &list.Items[i])
			}
		})},
		{"PropagationPolicies", command.ForEachPage(ctx, r.karmada, func(list *policyv1alpha1.PropagationPolicyList) {
			for i := range list.Items {
				in.Policies = append(in.Policies, &list.Items[i])
			}
		})},
		{"ClusterPropagationPolicies", command.ForEachPage(ctx, r.karmada, func(list *policyv1alpha1.ClusterPropagationPolicyList) {
			for i := range list.Items {
				in.Policies = append(in.Policies, &list.Items[i])
			}
		})},
		{"ResourceBindings", command.ForEachPage(ctx, r.karmada, func(list *workv1alpha2.ResourceBindingList) {
			for i := range list.Items {
				in.Bindings = append(in.Bindings, &list.Items[i])
			}
		})},
		{"ClusterResourceBindings", command.ForEachPage(ctx, r.karmada, func(list *workv1alpha2.ClusterResourceBindingList) {
			for i := range list.Items {
				in.Bindings = append(in.Bindings, &list.Items[i])
			}
		})},
	} {
		if each.err != nil {
			return fmt.Errorf("listing %s: %w\nCheck that this is a Karmada control plane, and that you may list %s in all namespaces", each.what,
				each.err, each.what)
		}
	}
	return nil
}

// collection is a kind of templates in one namespace, or in all namespaces if namespace is empty.
type collection struct {
	kind      schema.GroupVersionKind
	namespace string
}

// collections returns the collections of the templates that given templates replace, and that given policies select or claim.
// The collections do not overlap.
func (r *controlPlaneReader) collections(in *simulation.Input) []collection {
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

// readTemplates adds the templates of a collection to the input. It ignores kinds that the control plane does not serve, and
// versions that are not preferred, because policies do not select them.
func (r *controlPlaneReader) readTemplates(ctx context.Context, of collection, in *simulation.Input) error {
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
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(of.kind.GroupVersion().WithKind(of.kind.Kind + "List"))
	err = command.ForEachPageOf(ctx, r.karmada, list, func(page *unstructured.UnstructuredList) {
		for i := range page.Items {
			in.Templates = append(in.Templates, &page.Items[i])
		}
	}, options...)
	if err != nil {
		return fmt.Errorf("listing objects of kind %s: %w", of.kind.Kind, err)
	}
	return nil
}

// The feature gates on which a simulation depends.
const (
	gateFailover             = "Failover"
	gatePreemption           = "PropagationPolicyPreemption"
	gateModels               = "CustomizedClusterResourceModeling"
	gateMultiplePodTemplates = "MultiplePodTemplatesScheduling"
	gateWorkloadAffinity     = "WorkloadAffinity"
	gateOvercommitProtection = "SchedulingOvercommitProtection"
)

// defaultGates returns the gates with their defaults.
func defaultGates() map[string]bool {
	return map[string]bool{
		gateFailover: false, gatePreemption: false, gateModels: true,
		gateMultiplePodTemplates: false, gateWorkloadAffinity: false, gateOvercommitProtection: false,
	}
}

// componentFlags are the flags for settings of components, which cannot be read from the control plane.
type componentFlags struct {
	gatesText     string
	gates         map[string]bool
	schedulerName string
}

func (s *componentFlags) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&s.gatesText, "feature-gates", "",
		"feature gates of the control plane that differ from their defaults, such as Failover=true")
	flags.StringVar(&s.schedulerName, "scheduler-name", policyv1alpha1.DefaultSchedulerName, "name of the scheduler that is simulated")
}

// parse parses the gates. It returns a usage error for a gate that a simulation does not know.
func (s *componentFlags) parse() error {
	known := slices.Sorted(maps.Keys(defaultGates()))
	s.gates = map[string]bool{}
	for text := range strings.SplitSeq(s.gatesText, ",") {
		if text == "" {
			continue
		}
		name, value, _ := strings.Cut(text, "=")
		isOn, err := strconv.ParseBool(value)
		switch {
		case !slices.Contains(known, name):
			return command.NewUsageError("--feature-gates: a simulation does not depend on %q: set %s", name, strings.Join(known, ", "))
		case err != nil:
			return command.NewUsageError("--feature-gates %q: write %s=true or %s=false", text, name, name)
		}
		s.gates[name] = isOn
	}
	return nil
}

// Resolve returns the settings of the components. A gate that no flag sets is enabled if a binding has a field that is set only
// with this gate.
func (s *componentFlags) resolve(bindings []binding.Object) simulation.Settings {
	enabled := defaultGates()
	for _, each := range bindings {
		enabled[gateMultiplePodTemplates] = enabled[gateMultiplePodTemplates] || len(each.BindingSpec().Components) > 0
		enabled[gateWorkloadAffinity] = enabled[gateWorkloadAffinity] || each.BindingSpec().WorkloadAffinityGroups != nil
	}
	maps.Copy(enabled, s.gates)
	return simulation.Settings{
		SchedulerName: s.schedulerName, Plugins: placement.Plugins{"*"},
		Features:  placement.Features{MultiplePodTemplates: enabled[gateMultiplePodTemplates], WorkloadAffinity: enabled[gateWorkloadAffinity]},
		Evictions: enabled[gateFailover], Preemption: enabled[gatePreemption],
		Models: enabled[gateModels], OvercommitProtection: enabled[gateOvercommitProtection],
	}
}

// assumptions returns the assumptions on which the result depends, as sentences for the user.
func (s *componentFlags) assumptions(in simulation.Input) []string {
	assumed := []string{"the capacity is that in the status of the Clusters: this command has no certificate for accurate estimators"}
	changed := in.Changes.Apply(in.Clusters, in.Now)
	switch {
	case !slices.ContainsFunc(changed, failover.HasEvictingTaint):
	case in.Settings.Evictions:
		assumed = append(assumed, "NoExecute taints evict workloads: the controller manager has --enable-no-execute-taint-eviction, and the purge mode Gracefully where the policy sets none")
	default:
		assumed = append(assumed, "NoExecute taints evict nothing, which is the default: set --feature-gates Failover=true if the control plane evicts")
	}
	return assumed
}
