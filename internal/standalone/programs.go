package standalone

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apiserver/pkg/admission"
	"k8s.io/client-go/kubernetes"
	"k8s.io/kubernetes/pkg/apis/core"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
	"karmada.io/karmada/internal/standalone/processnode"
	"karmada.io/karmada/internal/version"
)

// ProgramsNode is the name of the node that runs Karmada's programs.
const ProgramsNode = "karmada-programs"

// programsCapacity returns the capacity of ProgramsNode. It suffices for a control plane, but is so small
// that the cluster's capacity is almost that of its simulated nodes.
func programsCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods:   resource.MustParse("30"),
	}
}

const kubeletHeaderTimeout = 10 * time.Second

// startPrograms runs the node for programs of Karmada, and serves the kubelet API of all
// nodes.
func (c *Cluster) startPrograms(ctx context.Context, listener net.Listener, labels map[string]string) error {
	client, err := kubernetes.NewForConfig(c.InProcessConfig())
	if err != nil {
		return fmt.Errorf("creating a client of cluster %q: %w", c.options.Name, err)
	}
	node := processnode.New(c.programsNode(client, ListenerPort(listener), labels))
	server := &http.Server{Handler: node.Handler(), ReadHeaderTimeout: kubeletHeaderTimeout, TLSConfig: c.kubeletTLS()}
	c.servers.add(stageClients, startServer(ctx, "kubelet API", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err // start adds the name of the server
		}
		return nil
	}))
	c.servers.add(stageClients, startServer(ctx, ProgramsNode, node.Run))
	return nil
}

// programsNode returns the options of the node for programs.
func (c *Cluster) programsNode(client kubernetes.Interface, port int, labels map[string]string) processnode.Options {
	return processnode.Options{
		Name: ProgramsNode, Dir: filepath.Join(c.options.Dir, "programs"), Client: client,
		APIServer: net.JoinHostPort(Loopback, strconv.Itoa(c.Port())), Port: port,
		Capacity: programsCapacity(), Labels: labels, Version: version.Get().GitVersion,
		Disabled: c.options.ProgramsDisabled, Unconfined: c.options.AllowUnconfined,
	}
}

var errNotAPIServer = errors.New("only the API server may call the kubelet API")

// kubeletTLS accepts only connections of the cluster's API server, which presents the
// administrator's certificate. The serving certificate is loaded for each connection, because
// it is renewed.
func (c *Cluster) kubeletTLS() *tls.Config {
	authorities := x509.NewCertPool()
	authorities.AddCert(c.ca.Cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// exec, attach and port-forward upgrade the connection. HTTP/2 does not support upgrades.
		NextProtos: []string{"http/1.1"},
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  authorities,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair(c.ServingCert())
			if err != nil {
				return nil, fmt.Errorf("loading the certificate of the kubelet API: %w", err)
			}
			return &certificate, nil
		},
		VerifyConnection: func(state tls.ConnectionState) error {
			if len(state.PeerCertificates) == 0 || !slices.Contains(state.PeerCertificates[0].Subject.Organization, adminGroup) {
				return errNotAPIServer
			}
			return nil
		},
	}
}

// kubeletFlags returns the flags that make the API server connect to the kubelet API of
// startPrograms.
func (c *Cluster) kubeletFlags() []string {
	return []string{
		"--kubelet-preferred-address-types=" + string(corev1.NodeInternalDNS),
		"--kubelet-certificate-authority=" + c.certs.CertFile(certCA),
		"--kubelet-client-certificate=" + c.certs.CertFile(certAdmin),
		"--kubelet-client-key=" + c.certs.KeyFile(certAdmin),
	}
}

// programPlacementName is the name of the admission plugin.
const programPlacementName = "KarmadaProgramPlacement"

// programPlacement assigns a Pod to the node for programs if all its containers run programs of
// Karmada.
// The taint of this node prevents other Pods from being scheduled to it.
type programPlacement struct{ *admission.Handler }

var _ admission.MutationInterface = programPlacement{}

func newProgramPlacement() AdmissionPlugin {
	return AdmissionPlugin{Name: programPlacementName, Register: func(plugins *admission.Plugins) {
		plugins.Register(programPlacementName, func(io.Reader) (admission.Interface, error) {
			return programPlacement{admission.NewHandler(admission.Create)}, nil
		})
	}}
}

// Admit implements admission.MutationInterface.
func (programPlacement) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*core.Pod)
	if !ok || a.GetSubresource() != "" || pod.Spec.NodeName != "" || !processnode.CanRun(programContainers(&pod.Spec)...) {
		return nil
	}
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	pod.Spec.NodeSelector[clusterv1alpha1.ProgramNodeLabel] = "true"
	pod.Spec.Tolerations = append(pod.Spec.Tolerations,
		core.Toleration{Key: clusterv1alpha1.ProgramNodeTaint, Operator: core.TolerationOpExists})
	return nil
}

func programContainers(spec *core.PodSpec) []processnode.Container {
	var containers []processnode.Container
	for _, group := range [][]core.Container{spec.InitContainers, spec.Containers} {
		for i := range group {
			containers = append(containers, processnode.Container{Image: group[i].Image, Command: group[i].Command})
		}
	}
	return containers
}
