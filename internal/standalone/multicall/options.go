package multicall

import (
	"time"

	"github.com/google/uuid"
	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/programs"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/programs/webhook"
	"karmada.io/karmada/internal/servers/admission"
	"karmada.io/karmada/internal/servers/aggregated"
)

// karmadaOptions are the flags that kube-apiserver does not have.
type karmadaOptions struct {
	// Admission runs the admission of Karmada in this process.
	Admission bool
	// AdmissionHosts are the DNS names of Karmada's webhook. Requests to these names are served in this
	// process.
	AdmissionHosts []string
	// ClusterAPI serves the Cluster API in this process.
	ClusterAPI bool
	// ClusterAPICert and ClusterAPIKey are the Cluster API's serving certificate files. If they are empty,
	// the API server's files are used.
	ClusterAPICert, ClusterAPIKey string
	// Agents limit what agents may write in their Clusters.
	Agents aggregated.AgentOptions

	gates *gates.Set
	rules *webhook.Rules
	// admissionHandler serves the requests to AdmissionHosts.
	admissionHandler lateHandler
}

func newOptions() *karmadaOptions {
	set := gates.New()
	return &karmadaOptions{
		AdmissionHosts: []string{programs.Webhook + "." + clusterv1alpha1.NamespaceKarmadaSystem + ".svc"},
		Agents:         aggregated.DefaultAgentOptions(),
		gates:          set, rules: webhook.NewRules(set),
	}
}

func (k *karmadaOptions) addFlags(flags *pflag.FlagSet) {
	flags.BoolVar(&k.Admission, "karmada-admission", k.Admission,
		"Default and validate the objects of Karmada in this process. Requests to --karmada-admission-hosts, also those that convert objects, are processed in this process too. No karmada-webhook is needed.")
	flags.StringSliceVar(&k.AdmissionHosts, "karmada-admission-hosts", k.AdmissionHosts,
		"DNS names of the webhook of Karmada, as in the webhook configurations and the CRDs of the control plane. A Service has the name NAME.NAMESPACE.svc. Has an effect with --karmada-admission.")
	flags.BoolVar(&k.ClusterAPI, "karmada-aggregated-api", k.ClusterAPI,
		"Serve "+clusterv1alpha1.GroupName+" in this process, from the etcd of --etcd-servers. No karmada-aggregated-apiserver is needed. The APIService and the Service "+aggregated.ServiceName+" must exist. Requires the flags of the aggregation layer, such as --requestheader-client-ca-file and --proxy-client-cert-file.")
	flags.StringVar(&k.ClusterAPICert, "karmada-aggregated-api-cert-file", k.ClusterAPICert,
		"File of the serving certificate of the Cluster API. It must be valid for "+aggregated.ServingName+" and be signed by the CA of its APIService. By default the value of --tls-cert-file.")
	flags.StringVar(&k.ClusterAPIKey, "karmada-aggregated-api-key-file", k.ClusterAPIKey,
		"File of the private key of --karmada-aggregated-api-cert-file.")
	k.Agents.AddFlags(flags)
	k.rules.AddFlags(flags)
	k.gates.AddFlagAs(flags, "karmada-feature-gates")
}

// newReviewer returns the rules of an admission plugin. The plugin adds the access to the control
// plane.
func (k *karmadaOptions) newReviewer() admission.Reviewer {
	reviewer := admission.Reviewer{Rules: admission.DefaultRules(), NewID: uuid.NewString, AgentQuotas: admission.NewAgentQuotas(time.Now)}
	k.rules.Configure(&reviewer)
	return reviewer
}
