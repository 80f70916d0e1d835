package install

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// maxAddresses limits the node addresses in certificates if there is no control-plane node.
const maxAddresses = 3

// Host is a host cluster with its nodes.
type Host struct {
	api   client.Client
	nodes []corev1.Node
}

// ReadHost lists the host cluster's nodes.
func ReadHost(ctx context.Context, config *rest.Config) (*Host, error) {
	api, err := newHostClient(config)
	if err != nil {
		return nil, err
	}
	list := &corev1.NodeList{}
	if err := api.List(ctx, list); err != nil {
		return nil, fmt.Errorf("listing the nodes of %s: %w: use an administrator of this cluster", HostName, err)
	}
	if len(list.Items) == 0 {
		return nil, fmt.Errorf("%s has no nodes: choose a cluster that runs Pods with --kubeconfig and --context", HostName)
	}
	slices.SortFunc(list.Items, func(a, b corev1.Node) int { return cmp.Compare(a.Name, b.Name) })
	return &Host{api: api, nodes: list.Items}, nil
}

// Addresses returns the node addresses at which clients outside the host cluster reach node ports. It
// prefers the addresses of control-plane nodes.
func (h *Host) Addresses() ([]string, error) {
	for _, label := range []string{clusterv1alpha1.ProgramNodeLabel, "node-role.kubernetes.io/master",
		"node-role.kubernetes.io/control-plane"} {
		if addresses := internalAddresses(h.nodesWithLabel(label)); len(addresses) > 0 {
			return addresses, nil
		}
	}
	if addresses := internalAddresses(h.nodes[:min(len(h.nodes), maxAddresses)]); len(addresses) > 0 {
		return addresses, nil
	}
	return nil, fmt.Errorf("the nodes of %s have no internal IP address: set the address of the API server with --karmada-apiserver-advertise-address", HostName)
}

func (h *Host) nodesWithLabel(label string) []corev1.Node {
	var nodes []corev1.Node
	for i := range h.nodes {
		if _, ok := h.nodes[i].Labels[label]; ok {
			nodes = append(nodes, h.nodes[i])
		}
	}
	return nodes
}

func internalAddresses(nodes []corev1.Node) []string {
	var addresses []string
	for i := range nodes {
		for _, address := range nodes[i].Status.Addresses {
			if address.Type == corev1.NodeInternalIP {
				addresses = append(addresses, address.Address)
				break
			}
		}
	}
	return addresses
}

// EtcdNode returns the node that stores etcd's data: the node with the label EtcdNodeLabel, or else the
// first suitable node. isLabeled reports whether the node already has the label.
func (h *Host) EtcdNode() (name string, isLabeled bool, err error) {
	if nodes := h.nodesWithLabel(clusterv1alpha1.EtcdNodeLabel); len(nodes) > 0 {
		return nodes[0].Name, true, nil
	}
	candidates := h.nodesWithLabel(clusterv1alpha1.ProgramNodeLabel)
	if len(candidates) == 0 {
		candidates = slices.DeleteFunc(slices.Clone(h.nodes), func(node corev1.Node) bool { return len(node.Spec.Taints) > 0 })
	}
	for i := range candidates {
		if isHealthy(&candidates[i]) {
			return candidates[i].Name, false, nil
		}
	}
	return "", false, fmt.Errorf("%s has no healthy node without taints for the data of etcd: choose a node with --etcd-node-selector-labels, or another --etcd-storage-mode", HostName)
}

// isHealthy reports whether a node is ready and under no resource pressure.
func isHealthy(node *corev1.Node) bool {
	isReady := false
	for _, condition := range node.Status.Conditions {
		switch condition.Type {
		case corev1.NodeReady:
			isReady = condition.Status == corev1.ConditionTrue
		case corev1.NodeMemoryPressure, corev1.NodeDiskPressure, corev1.NodePIDPressure, corev1.NodeNetworkUnavailable:
			if condition.Status == corev1.ConditionTrue {
				return false
			}
		}
	}
	return isReady
}

// otherEtcdNamespace returns the namespace of another installation whose etcd selects its node by
// EtcdNodeLabel. It returns an empty string if there is none.
func (h *Host) otherEtcdNamespace(ctx context.Context, except string) (namespace string, err error) {
	list := &appsv1.StatefulSetList{}
	if err := h.api.List(ctx, list); err != nil {
		return "", fmt.Errorf("listing the StatefulSets of %s: %w", HostName, err)
	}
	for i := range list.Items {
		if _, ok := list.Items[i].Spec.Template.Spec.NodeSelector[clusterv1alpha1.EtcdNodeLabel]; ok && list.Items[i].Namespace != except {
			return list.Items[i].Namespace, nil
		}
	}
	return "", nil
}

// patchLabel sets a node's EtcdNodeLabel to a JSON value; null removes the label.
func (h *Host) patchLabel(ctx context.Context, name, value string) error {
	node := &corev1.Node{}
	node.Name = name
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%s}}}`, clusterv1alpha1.EtcdNodeLabel, value)
	if err := h.api.Patch(ctx, node, client.RawPatch("application/merge-patch+json", []byte(patch))); err != nil {
		return fmt.Errorf("changing the label %s of node %s of %s: %w", clusterv1alpha1.EtcdNodeLabel, name, HostName, err)
	}
	return nil
}
