package processnode

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

const (
	leasePeriod  = 10 * time.Second
	leaseSeconds = 40
)

// register creates the Node object, or updates the existing one.
func (n *Node) register(ctx context.Context) error {
	node := n.newNodeObject()
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	nodes := n.options.Client.CoreV1().Nodes()
	_, err := nodes.Create(ctx, node, metav1.CreateOptions{})
	if err == nil {
		return nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return fmt.Errorf("creating Node %q: %w", node.Name, err)
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": node.Labels}, "status": node.Status})
	if err != nil {
		return fmt.Errorf("encoding Node %q: %w", node.Name, err)
	}
	if _, err := nodes.Patch(ctx, node.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("updating Node %q: %w", node.Name, err)
	}
	return nil
}

func (n *Node) newNodeObject() *corev1.Node {
	labels := map[string]string{
		clusterv1alpha1.ProgramNodeLabel: "true",
		corev1.LabelHostname:             n.options.Name,
		corev1.LabelOSStable:             runtime.GOOS,
		corev1.LabelArchStable:           runtime.GOARCH,
	}
	for key, value := range n.options.Labels {
		labels[key] = value
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: n.options.Name, Labels: labels},
		Spec:       corev1.NodeSpec{Taints: []corev1.Taint{{Key: clusterv1alpha1.ProgramNodeTaint, Effect: corev1.TaintEffectNoSchedule}}},
		Status: corev1.NodeStatus{
			Capacity: n.options.Capacity, Allocatable: n.options.Capacity.DeepCopy(),
			Addresses: []corev1.NodeAddress{
				{Type: corev1.NodeInternalIP, Address: hostAddress}, {Type: corev1.NodeHostName, Address: n.options.Name},
				{Type: corev1.NodeInternalDNS, Address: "localhost"},
			},
			DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(n.options.Port)}}, // a port
			NodeInfo: corev1.NodeSystemInfo{
				OperatingSystem: runtime.GOOS, Architecture: runtime.GOARCH, KubeletVersion: n.options.Version,
				ContainerRuntimeVersion: "process://" + n.options.Version, OSImage: "processes of this machine",
			},
		},
	}
	now := metav1.NewTime(n.now())
	for kind, status := range map[corev1.NodeConditionType]corev1.ConditionStatus{
		corev1.NodeReady: corev1.ConditionTrue, corev1.NodeMemoryPressure: corev1.ConditionFalse,
		corev1.NodeDiskPressure: corev1.ConditionFalse, corev1.NodePIDPressure: corev1.ConditionFalse,
	} {
		node.Status.Conditions = append(node.Status.Conditions, corev1.NodeCondition{
			Type: kind, Status: status, LastHeartbeatTime: now, LastTransitionTime: now,
			Reason: "ProgramsRun", Message: "This node runs programs of Karmada.",
		})
	}
	return node
}

// renewHeartbeat renews the node's Lease. If the Node was deleted, or was set to not ready while the machine
// was suspended, renewHeartbeat registers the node again.
func (n *Node) renewHeartbeat(ctx context.Context) {
	if err := n.renewLease(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Renewing the Lease of a node", "node", n.options.Name)
		return
	}
	if n.isReady(ctx) {
		return
	}
	if err := n.register(ctx); err != nil && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, "Registering a node again", "node", n.options.Name)
	}
}

// isReady reports whether the Node is ready in the API server. It returns true if the API
// server cannot be reached.
func (n *Node) isReady(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	node, err := n.options.Client.CoreV1().Nodes().Get(ctx, n.options.Name, metav1.GetOptions{})
	if err != nil {
		return !apierrors.IsNotFound(err)
	}
	for _, condition := range node.Status.Conditions {
		if condition.Type == corev1.NodeReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}

func (n *Node) renewLease(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	leases := n.options.Client.CoordinationV1().Leases(corev1.NamespaceNodeLease)
	now, seconds := metav1.NewMicroTime(n.now()), int32(leaseSeconds)
	lease, err := leases.Get(ctx, n.options.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		_, err = leases.Create(ctx, &coordinationv1.Lease{
			ObjectMeta: metav1.ObjectMeta{Name: n.options.Name},
			Spec:       coordinationv1.LeaseSpec{HolderIdentity: &n.options.Name, LeaseDurationSeconds: &seconds, RenewTime: &now},
		}, metav1.CreateOptions{})
		return err // the caller logs the action
	}
	if err != nil {
		return err // the caller logs the action
	}
	lease.Spec.RenewTime = &now
	_, err = leases.Update(ctx, lease, metav1.UpdateOptions{})
	return err // the caller logs the action
}
