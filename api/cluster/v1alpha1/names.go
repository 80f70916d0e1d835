package v1alpha1

// Domain is the domain of Karmada. The domain of a label, an annotation, a finalizer or a taint
// of Karmada is Domain, or ends with DomainSuffix. The names of the admission webhooks of
// Karmada end with DomainSuffix.
const (
	Domain       = "karmada.io"
	DomainSuffix = "." + Domain
)

// Labels and taints of the nodes of a simulated member.
const (
	// SimulatedNodeLabel, with the value true, is the label of the nodes that are simulated.
	SimulatedNodeLabel = "karmada.io/simulated"

	// InstalledByLabel is the label of objects of components that are installed besides a control
	// plane, such as estimators. The value names the program that installed the object, and that may
	// change and delete it.
	InstalledByLabel = "karmada.io/installed-by"

	// BootstrappingLabel is the label of the objects of a control plane in its host cluster. Secrets
	// have the value BootstrappingSecret, and other objects the value BootstrappingApp.
	BootstrappingLabel  = "karmada.io/bootstrapping"
	BootstrappingApp    = "app-defaults"
	BootstrappingSecret = "secret-defaults"

	// EtcdNodeLabel is the label of the node whose disk has the data of etcd.
	EtcdNodeLabel = "karmada.io/etcd"

	// ConfigHashAnnotation is the annotation of Pods with the hash of files that their programs read
	// only at their start. A changed file so replaces the Pods.
	ConfigHashAnnotation = "karmada.io/config-hash"

	// CertificateSecret is the name of the Secret with the certificates of a control plane on its
	// host, with the keys karmada.crt, karmada.key and ca.crt.
	CertificateSecret = "karmada-cert"

	// EstimatorPrefix, followed by the name of a cluster, is the name of the Service with the address
	// of the accurate estimator of the cluster, and of the Deployment of this estimator.
	// EstimatorPort is the port of the Service.
	EstimatorPrefix = "karmada-scheduler-estimator-"
	EstimatorPort   = 10352

	// ProgramNodeLabel, with the value true, and ProgramNodeTaint are set on the node that runs
	// Pods as processes. Pods that the node can run select the label and tolerate the taint.
	ProgramNodeLabel = "karmada.io/runs-programs"
	ProgramNodeTaint = "karmada.io/runs-programs"
)
