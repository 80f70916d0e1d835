package standalone

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	kwokv1alpha1 "sigs.k8s.io/kwok/pkg/apis/internalversion"
	kwokclientset "sigs.k8s.io/kwok/pkg/client/clientset/versioned"
	kwokconfig "sigs.k8s.io/kwok/pkg/config"
	"sigs.k8s.io/kwok/pkg/kwok/controllers"
	kwokclient "sigs.k8s.io/kwok/pkg/utils/client"

	nodefast "sigs.k8s.io/kwok/kustomize/stage/node/fast"
	nodeheartbeat "sigs.k8s.io/kwok/kustomize/stage/node/heartbeat-with-lease"
	podfast "sigs.k8s.io/kwok/kustomize/stage/pod/fast"

	clusterv1alpha1 "karmada.io/karmada/api/cluster/v1alpha1"
)

// NodeOptions configure the simulated nodes of a cluster.
type NodeOptions struct {
	// Count is the number of nodes.
	Count int
	// CPU, Memory and Pods are the capacity of each node.
	CPU, Memory, Pods resource.Quantity
	// Region and Zones become the topology labels of the nodes. Zones are assigned
	// round-robin.
	Region string
	Zones  []string
}

// DefaultNodeOptions returns three nodes with enough capacity for any experiment.
func DefaultNodeOptions() NodeOptions {
	return NodeOptions{
		Count:  3,
		CPU:    resource.MustParse("64"),
		Memory: resource.MustParse("256Gi"),
		Pods:   resource.MustParse("5000"),
	}
}

const (
	simulatedNodeIP  = "10.255.0.1"
	simulatedPodCIDR = "10.0.0.0/16"
	simulatorWorkers = 8
	leaseSeconds     = 40
	simulatorName    = "karmada-simulator"
	// simulatorKubeletPort is the port in the status of simulated nodes if no kubelet API is
	// served.
	simulatorKubeletPort = 10250
)

// createNodes creates the nodes that do not exist yet, and updates the kubelet port of existing
// nodes, because the port changes with each start of the process.
func createNodes(ctx context.Context, client kubernetes.Interface, o NodeOptions, kubeletPort int) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: clusterv1alpha1.SimulatedNodeLabel})
	if err != nil {
		return fmt.Errorf("listing simulated nodes: %w", err)
	}
	existing := sets.New[string]()
	for i := range list.Items {
		existing.Insert(list.Items[i].Name)
		if err := updateKubeletPort(ctx, client, &list.Items[i], kubeletPort); err != nil {
			return err
		}
	}
	for i := range o.Count {
		node := newSimulatedNode(i, o, kubeletPort)
		if existing.Has(node.Name) {
			continue
		}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating simulated node %q: %w", node.Name, err)
		}
	}
	return nil
}

// updateKubeletPort writes the current kubelet port to a node's status.
func updateKubeletPort(ctx context.Context, client kubernetes.Interface, node *corev1.Node, kubeletPort int) error {
	want := kubeletStatus(node.Name, kubeletPort)
	if node.Status.DaemonEndpoints == want.DaemonEndpoints && slices.Equal(node.Status.Addresses, want.Addresses) {
		return nil
	}
	patch, err := json.Marshal(map[string]any{"status": map[string]any{"addresses": want.Addresses, "daemonEndpoints": want.DaemonEndpoints}})
	if err != nil {
		return fmt.Errorf("encoding simulated node %q: %w", node.Name, err)
	}
	if _, err := client.CoreV1().Nodes().Patch(ctx, node.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status"); err != nil {
		return fmt.Errorf("updating simulated node %q: %w", node.Name, err)
	}
	return nil
}

// kubeletStatus returns the part of a node's status that contains the address and port of the kubelet API.
// The API server connects to the node's DNS name. Pods on the node use the node's IP address as host IP.
func kubeletStatus(node string, port int) corev1.NodeStatus {
	return corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: simulatedNodeIP},
			{Type: corev1.NodeHostName, Address: node},
			{Type: corev1.NodeInternalDNS, Address: localhostName},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}}, // a port
	}
}

// topologyLabels returns the labels for the region and zone of a node.
func (n NodeOptions) topologyLabels(index int) map[string]string {
	labels := map[string]string{}
	if n.Region != "" {
		labels[corev1.LabelTopologyRegion] = n.Region
	}
	if len(n.Zones) > 0 {
		labels[corev1.LabelTopologyZone] = n.Zones[index%len(n.Zones)]
	}
	return labels
}

func newSimulatedNode(index int, o NodeOptions, kubeletPort int) *corev1.Node {
	name := fmt.Sprintf("node-%d", index+1)
	labels := map[string]string{
		clusterv1alpha1.SimulatedNodeLabel: "true",
		corev1.LabelHostname:               name,
		corev1.LabelOSStable:               "linux",
		corev1.LabelArchStable:             "amd64",
		"node.kubernetes.io/role":          "simulated",
	}
	maps.Copy(labels, o.topologyLabels(index))
	status := kubeletStatus(name, kubeletPort)
	capacity := corev1.ResourceList{corev1.ResourceCPU: o.CPU, corev1.ResourceMemory: o.Memory, corev1.ResourcePods: o.Pods}
	status.Capacity, status.Allocatable = capacity, capacity.DeepCopy()
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: status}
}

// startSimulator runs KWOK, which simulates the kubelets of the simulated nodes. KWOK keeps the
// nodes ready, and starts, completes and terminates the Pods on these nodes.
func startSimulator(ctx context.Context, access inProcessAccess, kubeletPort int) (*server, error) {
	clients, err := kwokclient.NewClientset("", access.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("creating the clients of the node simulator: %w", err)
	}
	config, err := simulatorConfig(clients, access, kubeletPort)
	if err != nil {
		return nil, err
	}
	simulator, err := controllers.NewController(config)
	if err != nil {
		return nil, fmt.Errorf("creating the node simulator: %w", err)
	}
	return startServer(ctx, "kwok", func(ctx context.Context) error {
		if err := simulator.Start(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}), nil
}

func simulatorConfig(clients kwokclient.Clientset, access inProcessAccess, kubeletPort int) (controllers.Config, error) {
	config, err := clients.ToRESTConfig()
	if err != nil {
		return controllers.Config{}, fmt.Errorf("reading the kubeconfig of the node simulator: %w", err)
	}
	access.useTransport(config) // all clients of the simulator share this configuration
	dynamicClient, err := clients.ToDynamicClient()
	if err != nil {
		return controllers.Config{}, fmt.Errorf("creating the dynamic client of the node simulator: %w", err)
	}
	mapper, err := clients.ToRESTMapper()
	if err != nil {
		return controllers.Config{}, fmt.Errorf("creating the REST mapper of the node simulator: %w", err)
	}
	restClient, err := rest.RESTClientFor(config)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("creating the REST client of the node simulator: %w", err)
	}
	protobufConfig := rest.CopyConfig(config)
	protobufConfig.ContentType = runtime.ContentTypeProtobuf
	typedClient, err := kubernetes.NewForConfig(protobufConfig)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("creating the client of the node simulator: %w", err)
	}
	kwokClient, err := kwokclientset.NewForConfig(config)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("creating the stage client of the node simulator: %w", err)
	}
	stages, err := simulatorStages()
	if err != nil {
		return controllers.Config{}, err
	}
	return controllers.Config{
		Clock:                        clock.RealClock{},
		DynamicClient:                dynamicClient,
		RESTClient:                   restClient,
		RESTMapper:                   mapper,
		ImpersonatingDynamicClient:   clients.ToImpersonatingDynamicClient(),
		ImpersonatingTypedClient:     clients.ToImpersonatingTypedClient(),
		TypedClient:                  typedClient,
		TypedKwokClient:              kwokClient,
		ManageNodesWithLabelSelector: clusterv1alpha1.SimulatedNodeLabel + "=true",
		CIDR:                         simulatedPodCIDR,
		NodeIP:                       simulatedNodeIP,
		NodeName:                     simulatorName,
		NodePort:                     kubeletPort,
		LocalStages:                  stages,
		PodPlayStageParallelism:      simulatorWorkers,
		NodePlayStageParallelism:     1,
		NodeLeaseParallelism:         1,
		NodeLeaseDurationSeconds:     leaseSeconds,
		PodsOnNodeSyncParallelism:    1,
		ID:                           simulatorName,
	}, nil
}

// podReadyAgainStage makes running Pods ready again. If a cluster was stopped for a while, for
// example because the laptop was suspended, the nodes missed their heartbeats, and the node
// controller sets the Pods on these nodes to not ready. A real kubelet sets such Pods to ready
// when the kubelet runs again. KWOK has no stage for this.
const podReadyAgainStage = `
apiVersion: kwok.x-k8s.io/v1alpha1
kind: Stage
metadata:
  name: pod-ready-again
spec:
  resourceRef:
    apiGroup: v1
    kind: Pod
  selector:
    matchExpressions:
    - {key: .metadata.deletionTimestamp, operator: DoesNotExist}
    - {key: .status.phase, operator: In, values: [Running]}
    - {key: '.status.conditions.[] | select( .type == "ContainersReady" ) | .status', operator: In, values: ["True"]}
    - {key: '.status.conditions.[] | select( .type == "Ready" ) | .status', operator: In, values: ["False"]}
  weight: 1
  delay:
    durationMilliseconds: 1000
  next:
    statusTemplate: |
      conditions:
      - lastTransitionTime: {{ Now | Quote }}
        status: "True"
        type: Ready
`

// simulatorStages returns the stages of KWOK for nodes and Pods, including podReadyAgainStage.
func simulatorStages() (map[kwokv1alpha1.StageResourceRef][]*kwokv1alpha1.Stage, error) {
	stages := map[kwokv1alpha1.StageResourceRef][]*kwokv1alpha1.Stage{}
	for _, manifest := range []string{
		nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete, podReadyAgainStage,
	} {
		stage, err := kwokconfig.UnmarshalWithType[*kwokv1alpha1.Stage](manifest)
		if err != nil {
			return nil, fmt.Errorf("reading a stage of the node simulator: %w", err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}
	return stages, nil
}
