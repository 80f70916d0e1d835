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

	"karmada.io/karmada/internal/standalone/processnode"
	"karmada.io/karmada/internal/version"
)

// ProgramsNode is the name of the node of a cluster that runs programs of Karmada.
const ProgramsNode = "karmada-programs"

// programsCapacity has room for a control plane, and none for what is simulated: the
// figures of the cluster are those of its simulated nodes but for it.
func programsCapacity() corev1.ResourceList {
	return corev1.ResourceList{
		corev1.ResourceCPU:    resource.MustParse("4"),
		corev1.ResourceMemory: resource.MustParse("8Gi"),
		corev1.ResourcePods:   resource.MustParse("30"),
	}
}

const kubeletHeaderTimeout = 10 * time.Second

// startPrograms runs the node for programs of Karmada, and answers for all nodes what
// the API server asks kubelets.
func (c *Cluster) startPrograms(ctx context.Context, listener net.Listener, labels map[string]string) error {
	client, err := kubernetes.NewForConfig(c.Inside())
	if err != nil {
		return fmt.Errorf("making client of cluster %q: %w", c.options.Name, err)
	}
	node := processnode.New(c.programsNode(client, Port(listener), labels))
	server := &http.Server{Handler: node.Handler(), ReadHeaderTimeout: kubeletHeaderTimeout, TLSConfig: c.kubeletTLS()}
	c.group.add(stageClients, start(ctx, "kubelet API", func(ctx context.Context) error {
		stop := context.AfterFunc(ctx, func() { _ = server.Close() })
		defer stop()
		if err := server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			return err //nolint:wrapcheck // whoever started it names it
		}
		return nil
	}))
	c.group.add(stageClients, start(ctx, ProgramsNode, node.Run))
	return nil
}

// programsNode describes the node for programs.
func (c *Cluster) programsNode(client kubernetes.Interface, port int, labels map[string]string) processnode.Options {
	return processnode.Options{
		Name: ProgramsNode, Dir: filepath.Join(c.options.Dir, "programs"), Client: client,
		APIServer: net.JoinHostPort(Loopback, strconv.Itoa(c.Port())), Port: port,
		Capacity: programsCapacity(), Labels: labels, Version: version.Get().GitVersion,
		Off: c.options.ProgramsOff, Unconfined: c.options.ProgramsUnconfined,
	}
}

var errNotAPIServer = errors.New("only the API server may ask")

// kubeletTLS lets in nobody but the API server of the cluster, which shows the
// administrator's certificate. Certificates are read when they are needed, for they
// are renewed.
func (c *Cluster) kubeletTLS() *tls.Config {
	authorities := x509.NewCertPool()
	authorities.AddCert(c.ca.Cert)
	return &tls.Config{
		MinVersion: tls.VersionTLS13,
		// What follows upgrades the connection, which HTTP/2 has no way for.
		NextProtos: []string{"http/1.1"},
		ClientAuth: tls.RequireAndVerifyClientCert,
		ClientCAs:  authorities,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			certificate, err := tls.LoadX509KeyPair(c.ServingCert())
			if err != nil {
				return nil, fmt.Errorf("loading certificate of the kubelet API: %w", err)
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

// kubeletFlags let the API server find and trust what startPrograms serves.
func (c *Cluster) kubeletFlags() []string {
	return []string{
		"--kubelet-preferred-address-types=" + string(corev1.NodeInternalDNS),
		"--kubelet-certificate-authority=" + c.certs.CertFile(certCA),
		"--kubelet-client-certificate=" + c.certs.CertFile(certAdmin),
		"--kubelet-client-key=" + c.certs.KeyFile(certAdmin),
	}
}

// placementName is that of the admission plugin.
const placementName = "KarmadaProgramPlacement"

// placement sends Pods all of whose images are Karmada's to the node that runs them,
// and keeps it free of others by its taint.
type placement struct{ *admission.Handler }

var _ admission.MutationInterface = placement{}

func placePrograms() AdmissionPlugin {
	return AdmissionPlugin{Name: placementName, Register: func(plugins *admission.Plugins) {
		plugins.Register(placementName, func(io.Reader) (admission.Interface, error) {
			return placement{admission.NewHandler(admission.Create)}, nil
		})
	}}
}

// Admit implements admission.MutationInterface.
func (placement) Admit(_ context.Context, a admission.Attributes, _ admission.ObjectInterfaces) error {
	pod, ok := a.GetObject().(*core.Pod)
	if !ok || a.GetSubresource() != "" || pod.Spec.NodeName != "" || !processnode.Runs(imagesOf(&pod.Spec)...) {
		return nil
	}
	if pod.Spec.NodeSelector == nil {
		pod.Spec.NodeSelector = map[string]string{}
	}
	pod.Spec.NodeSelector[processnode.Label] = "true"
	pod.Spec.Tolerations = append(pod.Spec.Tolerations, core.Toleration{Key: processnode.Taint, Operator: core.TolerationOpExists})
	return nil
}

func imagesOf(spec *core.PodSpec) []string {
	var images []string
	for i := range spec.InitContainers {
		images = append(images, spec.InitContainers[i].Image)
	}
	for i := range spec.Containers {
		images = append(images, spec.Containers[i].Image)
	}
	return images
}
