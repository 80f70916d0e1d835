package scheduling

import (
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/pflag"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/programs/gates"
	"karmada.io/karmada/internal/servers/estimator"
)

// EstimatorOptions are the flags of karmada-scheduler-estimator.
type EstimatorOptions struct {
	// Cluster is the name of the member in the control plane.
	Cluster string
	// Port is the port on which estimates are served. 0 selects a free port.
	Port int
	// Parallelism is the number of estimates that are computed at the same time. 0 means
	// estimator.DefaultParallelism.
	Parallelism int
	// Certificates are the files for TLS.
	Certificates estimator.Certificates
	// Connection configures the client of the member. Serving configures health and metrics.
	Connection flags.Connection
	Serving    flags.Serving

	gates *gates.Set
}

// NewEstimatorOptions returns the default options. The feature gates ResourceQuotaEstimate and
// SchedulingOvercommitProtection determine what limits estimates.
func NewEstimatorOptions(set *gates.Set) *EstimatorOptions {
	return &EstimatorOptions{
		Port:       clusterv1alpha1.EstimatorPort,
		Connection: flags.MemberConnection(flags.Rate{QPS: 20, Burst: 30}),
		Serving:    flags.DefaultServing(":10351"),
		gates:      set,
	}
}

// AddFlags adds the flags of the program.
func (o *EstimatorOptions) AddFlags(set *pflag.FlagSet) {
	set.StringVar(&o.Cluster, "cluster-name", o.Cluster,
		"Name of the member cluster in the control plane. Requests for other clusters are rejected.")
	set.IntVar(&o.Port, "server-port", o.Port, "Port on which estimates are served with gRPC. 0 selects a free port.")
	set.IntVar(&o.Parallelism, "parallelism", o.Parallelism,
		fmt.Sprintf("Number of estimates that are computed at the same time. 0 means %d.", estimator.DefaultParallelism))
	set.StringVar(&o.Certificates.CertFile, "grpc-auth-cert-file", o.Certificates.CertFile,
		"File with the certificate of the gRPC server. Without a certificate, connections are not encrypted. A changed file is reloaded.")
	set.StringVar(&o.Certificates.KeyFile, "grpc-auth-key-file", o.Certificates.KeyFile, "File with the private key of the certificate.")
	set.StringVar(&o.Certificates.ClientCAFile, "grpc-client-ca-file", o.Certificates.ClientCAFile,
		"File with the CA of gRPC clients. With it, only clients with a certificate of this CA are accepted. A changed file is reloaded.")
	set.BoolVar(&o.Certificates.SkipClientVerify, "insecure-skip-grpc-client-verify", o.Certificates.SkipClientVerify,
		"Do not require certificates of gRPC clients.")
	o.Connection.AddFlags(set)
	o.Connection.AddMasterFlag(set)
	o.Serving.AddFlags(set)
}

// Validate returns every mistake in the values of the flags.
func (o *EstimatorOptions) Validate() error {
	errs := []error{o.Connection.Validate(), o.Serving.Validate()}
	if o.Cluster == "" {
		errs = append(errs, errors.New("--cluster-name is required: set it to the name of the member cluster in the control plane"))
	}
	if o.Port < 0 || o.Port > maxPort {
		errs = append(errs, fmt.Errorf("--server-port %d: must be between 0 and %d", o.Port, maxPort))
	}
	if o.Parallelism < 0 {
		errs = append(errs, fmt.Errorf("--parallelism %d: must be positive, or 0 for %d", o.Parallelism, estimator.DefaultParallelism))
	}
	c := o.Certificates
	if (c.CertFile == "") != (c.KeyFile == "") {
		errs = append(errs, fmt.Errorf("--grpc-auth-cert-file %q and --grpc-auth-key-file %q: set both for TLS, or none", c.CertFile, c.KeyFile))
	}
	if c.ClientCAFile != "" && !c.SkipClientVerify && c.CertFile == "" && c.KeyFile == "" {
		errs = append(errs, fmt.Errorf("--grpc-client-ca-file %q: clients can be verified only with TLS; set --grpc-auth-cert-file and --grpc-auth-key-file", c.ClientCAFile))
	}
	return errors.Join(errs...)
}

// address returns the address on which estimates are served.
func (o *EstimatorOptions) address() string {
	return podenvironment.DefaultListenAddress(":" + strconv.Itoa(o.Port))
}
