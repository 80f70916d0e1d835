package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"karmada.io/karmada/internal/pki"
)

const (
	socket = "/run/containerd/containerd.sock"
	// pauseImage holds the namespaces of Pods.
	pauseImage = "localhost/karmada-real/pause:1"
	// pauseProgram is the entry point of pauseImage.
	pauseProgram = "/program"
)

// node is a Kubernetes cluster with one node, which is this machine.
type node struct {
	options
	// dir has the configuration of the servers.
	dir     string
	certs   pki.Dir
	servers *servers
	config  *rest.Config
	host    client.Client
}

func newNode(o options) *node {
	dir := "/run/node"
	return &node{options: o, dir: dir, certs: pki.Dir{Path: filepath.Join(dir, "pki")}, servers: &servers{logs: o.logs}}
}

// start starts the control plane of the host and the node, and returns when the node is Ready.
func (n *node) start(ctx context.Context, r *report) error {
	steps := []step{
		{"certificates of the host", func(context.Context) error { return n.issueCertificates() }},
		{"containerd", n.startRuntime},
		{"images", n.loadImages},
		{"control plane of the host", n.startHost},
		{"DNS", func(context.Context) error { return startDNS(ctx, address+":53", n.host) }},
		{"logs of Pods", func(context.Context) error { return keepLogs(ctx, podLogs, n.keptLogs()) }},
		{"node", n.startNode},
	}
	return r.runSteps(ctx, steps)
}

// nodeProgram returns the path of a program that is built only for this test.
func (n *node) nodeProgram(name string) string { return filepath.Join(n.programs, "real", name) }

// keptLogs is the directory of the logs of all Pods. It is in the file system in which they are written.
func (n *node) keptLogs() string { return filepath.Join(filepath.Dir(podLogs), "kept") }

// containerdConfig has the version of the format that containerd 1.5 and later read. Root in a sandbox often
// may not protect processes from the end that the kernel chooses when memory is short.
const containerdConfig = `version = 2
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = %q
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = %q
    conf_dir = %q
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
`

// cniConfig routes each Pod by itself. Replies of a Service between two Pods then pass the rules of the
// kernel, which a bridge needs a kernel module for.
const cniConfig = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [{"type": "ptp", "ipMasq": false, "ipam": {
  "type": "host-local", "ranges": [[{"subnet": %q}]], "routes": [{"dst": "0.0.0.0/0"}]}}]}
`

func (n *node) startRuntime(ctx context.Context) error {
	cni := filepath.Join(n.dir, "cni")
	config, err := n.write("containerd.toml", fmt.Sprintf(containerdConfig, pauseImage, n.cni, cni))
	if err != nil {
		return err
	}
	if _, err := n.write("cni/pods.conflist", fmt.Sprintf(cniConfig, podRange)); err != nil {
		return err
	}
	program, err := exec.LookPath("containerd")
	if err != nil {
		return err
	}
	if err := n.servers.start(program, "containerd", "--config", config); err != nil {
		return err
	}
	return n.servers.await(ctx, "containerd serves", startTimeout, func(ctx context.Context) error { return containerd(ctx, "version") })
}

func (n *node) loadImages(ctx context.Context) error {
	archive := filepath.Join(n.dir, "pause.tar")
	if err := writeImage(archive, pauseImage, runtime.GOARCH, n.nodeProgram("pause")); err != nil {
		return err
	}
	return errors.Join(containerd(ctx, "images", "import", archive), containerd(ctx, "images", "import", n.image))
}

// containerd runs a command in the namespace that kubelet uses.
func containerd(ctx context.Context, args ...string) error {
	output, err := exec.CommandContext(ctx, "ctr", append([]string{"--namespace", "k8s.io"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("ctr %s: %w: %s", strings.Join(args, " "), err, bytes.TrimSpace(output))
	}
	return nil
}

// kubeletConfig allows cgroup v1, which kubelet still supports. The disk of the machine may be almost full,
// which concerns no file of the node.
const kubeletConfig = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
containerRuntimeEndpoint: unix://` + socket + `
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
makeIPTablesUtilChains: false
clusterDNS: [` + address + `]
clusterDomain: ` + clusterDomain + `
resolvConf: %s
evictionHard: {memory.available: 50Mi, nodefs.available: 0%%, imagefs.available: 0%%}
imageGCHighThresholdPercent: 100
authentication: {anonymous: {enabled: false}, x509: {clientCAFile: %s}}
`

// proxyConfig leaves settings of connection tracking as they are, because they are settings of the machine.
const proxyConfig = `apiVersion: kubeproxy.config.k8s.io/v1alpha1
kind: KubeProxyConfiguration
mode: nftables
clusterCIDR: ` + podRange + `
clientConnection: {kubeconfig: %s}
conntrack: {maxPerCore: 0, min: 0, tcpEstablishedTimeout: 0s, tcpCloseWaitTimeout: 0s}
`

func (n *node) startNode(ctx context.Context) error {
	resolver, err := n.write("resolv.conf", "")
	if err != nil {
		return err
	}
	kubelet, err := n.write("kubelet.yaml", fmt.Sprintf(kubeletConfig, resolver, n.certs.CertFile(authority)))
	if err != nil {
		return err
	}
	proxy, err := n.write("kube-proxy.yaml", fmt.Sprintf(proxyConfig, n.kubeconfig("kube-proxy")))
	if err != nil {
		return err
	}
	err = errors.Join(
		n.servers.start(n.nodeProgram("kubelet"), "kubelet", "--config="+kubelet, "--kubeconfig="+n.kubeconfig("kubelet"),
			"--hostname-override="+nodeName, "--node-ip="+address),
		n.servers.start(n.nodeProgram("kube-proxy"), "kube-proxy", "--config="+proxy, "--hostname-override="+nodeName),
	)
	if err != nil {
		return err
	}
	return n.servers.await(ctx, "the node is Ready", startTimeout, n.checkReady)
}

func (n *node) checkReady(ctx context.Context) error {
	node := &corev1.Node{}
	if err := n.host.Get(ctx, client.ObjectKey{Name: nodeName}, node); err != nil {
		return fmt.Errorf("reading the node: %w", err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady && condition.Status != corev1.ConditionTrue {
			return fmt.Errorf("the node is not Ready: %s", condition.Message)
		}
	}
	if len(node.Status.Conditions) == 0 || len(node.Spec.Taints) > 0 {
		return fmt.Errorf("the node has %d conditions and the taints %v", len(node.Status.Conditions), node.Spec.Taints)
	}
	return nil
}

// write writes a file of the node, and returns its path.
func (n *node) write(name, text string) (string, error) {
	path := filepath.Join(n.dir, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("creating the directory of %s: %w", path, err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return "", fmt.Errorf("writing %s: %w", path, err)
	}
	return path, nil
}
