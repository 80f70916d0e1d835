package main

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/pki"
)

const (
	// address is the address of the node, which test/real/node assigns.
	address       = "192.0.2.10"
	hostURL       = "https://" + address + ":6443"
	nodeName      = "real-node"
	etcdURL       = "http://127.0.0.1:2379"
	clusterDomain = "cluster.local"
	serviceRange  = "10.96.0.0/16"
	podRange      = "10.244.0.0/24"
	startTimeout  = time.Minute
)

// identities are the users of the clients of the host, by the name of their kubeconfig. kubelet may read
// only objects of its own node, as in a production cluster.
var identities = map[string]pki.Leaf{
	"admin":                   {CommonName: "real-admin", Organizations: []string{"system:masters"}},
	"kube-controller-manager": {CommonName: "system:kube-controller-manager"},
	"kube-scheduler":          {CommonName: "system:kube-scheduler"},
	"kube-proxy":              {CommonName: "system:kube-proxy"},
	"kubelet":                 {CommonName: "system:node:" + nodeName, Organizations: []string{"system:nodes"}},
}

const (
	authority      = "ca"
	serving        = "serving"
	serviceAccount = "service-account"
)

// issueCertificates creates the certificates of the host, and a kubeconfig for each identity.
func (n *node) issueCertificates() error {
	ca, err := n.certs.EnsureAuthority(authority, "real host")
	if err != nil {
		return err
	}
	hosts := []string{address, "127.0.0.1", "localhost", nodeName, "10.96.0.1", "kubernetes.default.svc"}
	leaf := pki.Leaf{CommonName: nodeName, Hosts: hosts, Usages: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	if err := errors.Join(ca.IssueLeaf(serving, leaf), n.certs.EnsureKey(serviceAccount)); err != nil {
		return err
	}
	for name, leaf := range identities {
		if err := ca.IssueLeaf(name, leaf); err != nil {
			return err
		}
		err := pki.WriteKubeconfig(n.kubeconfig(name), pki.KubeconfigContext{
			Name: "host", User: name, Server: hostURL, CA: ca.PEM(),
			ClientCertFile: n.certs.CertFile(name), ClientKeyFile: n.certs.KeyFile(name),
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func (n *node) kubeconfig(name string) string { return filepath.Join(n.dir, name+".config") }

// startHost starts the control plane of the host. The programs of the image serve as the Kubernetes of the
// host too.
func (n *node) startHost(ctx context.Context) error {
	karmada := filepath.Join(n.programs, "karmada")
	ca, caKey, key := n.certs.CertFile(authority), n.certs.KeyFile(authority), n.certs.KeyFile(serviceAccount)
	err := errors.Join(
		n.servers.start(karmada, "etcd", "--data-dir="+filepath.Join(n.dir, "etcd"), "--listen-client-urls="+etcdURL,
			"--advertise-client-urls="+etcdURL, "--unsafe-no-fsync"),
		n.servers.start(karmada, "kube-apiserver", "--etcd-servers="+etcdURL, "--advertise-address="+address, "--allow-privileged=true",
			"--authorization-mode=Node,RBAC", "--enable-admission-plugins=NodeRestriction", "--service-cluster-ip-range="+serviceRange,
			"--service-account-issuer=https://kubernetes.default.svc", "--service-account-key-file="+key, "--service-account-signing-key-file="+key,
			"--client-ca-file="+ca, "--tls-cert-file="+n.certs.CertFile(serving), "--tls-private-key-file="+n.certs.KeyFile(serving)),
		n.servers.start(karmada, "kube-controller-manager", "--kubeconfig="+n.kubeconfig("kube-controller-manager"), "--leader-elect=false",
			"--use-service-account-credentials=true", "--service-account-private-key-file="+key, "--root-ca-file="+ca,
			"--cluster-signing-cert-file="+ca, "--cluster-signing-key-file="+caKey),
		n.servers.start(n.nodeProgram("kube-scheduler"), "kube-scheduler", "--kubeconfig="+n.kubeconfig("kube-scheduler"),
			"--leader-elect=false"),
	)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", n.kubeconfig("admin"))
	if err != nil {
		return fmt.Errorf("reading the kubeconfig of the host: %w", err)
	}
	n.config = config
	if n.host, err = newClient(config); err != nil {
		return err
	}
	return n.servers.await(ctx, "the API server of the host serves", startTimeout, func(ctx context.Context) error {
		return n.host.Get(ctx, client.ObjectKey{Namespace: "default", Name: "kubernetes"}, &corev1.Service{})
	})
}

// newClient returns a client without a rate limit.
func newClient(config *rest.Config, add ...func(*runtime.Scheme) error) (client.Client, error) {
	config = rest.CopyConfig(config)
	config.QPS = -1
	scheme := runtime.NewScheme()
	utilruntime.Must(clientgoscheme.AddToScheme(scheme))
	for _, addToScheme := range add {
		utilruntime.Must(addToScheme(scheme))
	}
	// The RESTMapper of the client asks the server when it is first used, which may be later.
	created, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		return nil, fmt.Errorf("creating the client of %s: %w", config.Host, err)
	}
	return created, nil
}
