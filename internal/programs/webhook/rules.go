package webhook

import (
	"fmt"

	"github.com/spf13/pflag"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/component-base/featuregate"

	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/admission"
)

// Rules are the options of the admission rules. They apply in karmada-webhook, and in an API
// server that runs admission itself.
type Rules struct {
	// AllowNoExecuteTaints allows NoExecute taints in ClusterTaintPolicies.
	AllowNoExecuteTaints bool

	gates *gates.Set
}

// NewRules returns the default options. The gates may still change until Configure is called.
func NewRules(set *gates.Set) *Rules { return &Rules{gates: set} }

// AddFlags implements programs.Options.
func (r *Rules) AddFlags(set *pflag.FlagSet) {
	set.BoolVar(&r.AllowNoExecuteTaints, "allow-no-execute-taint-policy", r.AllowNoExecuteTaints,
		"Permit NoExecute taints in ClusterTaintPolicies. Such a taint evicts every workload of a cluster that does not tolerate it.")
}

// Validate implements programs.Options. It returns nil, because every value is valid.
func (r *Rules) Validate() error { return nil }

// Configure sets the rules of a reviewer. The feature gates determine which validation rules
// apply, and which fields cause a warning because they have no effect.
func (r *Rules) Configure(reviewer *admission.Reviewer) {
	set := r.gates
	reviewer.Rules.AllowNoExecuteTaints = r.AllowNoExecuteTaints
	reviewer.Rules.MultiplePodTemplates = set.Enabled(gates.MultiplePodTemplatesScheduling)
	reviewer.Rules.OverrideIdentity = set.Enabled(gates.OverrideIdentity)
	reviewer.LargeStatus = set.Enabled(gates.LargeStatus)
	reviewer.EnforceQuotas = set.Enabled(gates.FederatedQuotaEnforcement)
	reviewer.Rules.IsGateDisabled = func(gate string) bool { return !set.Enabled(featuregate.Feature(gate)) }
}

// Reviewer returns the reviewer of a webhook with these rules. The reviewer reads from the control
// plane.
func (r *Rules) Reviewer(config *rest.Config) (admission.Reviewer, error) {
	karmada, err := dynamic.NewForConfig(config)
	if err != nil {
		return admission.Reviewer{}, fmt.Errorf("making a client of the control plane: %w", err)
	}
	resources, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return admission.Reviewer{}, fmt.Errorf("making a client of the control plane: %w", err)
	}
	reviewer := admission.Reviewer{Rules: admission.DefaultRules(), Customizations: admission.StoredCustomizations(karmada),
		ClusterExists: admission.StoredClusterExists(karmada)}
	reviewer.Rules.ServedKinds, reviewer.Rules.ClusterNames = admission.ServedKinds(resources), admission.StoredClusters(karmada)
	r.Configure(&reviewer)
	return reviewer, nil
}
