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
)

// SimulatedNodeLabel marks the nodes that KWOK plays.
const SimulatedNodeLabel = "karmada.io/simulated"

// NodeOptions describe the simulated nodes of a cluster.
type NodeOptions struct {
	// Count is how many nodes there are.
	Count int
	// CPU, Memory and Pods are the capacity of each.
	CPU, Memory, Pods resource.Quantity
	// Region and Zones become the topology labels; zones are dealt out in turn.
	Region string
	Zones  []string
}

// DefaultNodeOptions are three nodes with room for whatever one wants to try.
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
	// simulatorKubeletPort is the port that simulated nodes show when nobody answers
	// for them.
	simulatorKubeletPort = 10250
)

// createNodes registers the nodes that do not exist yet, and tells the others where
// their kubelet answers in this life.
func createNodes(ctx context.Context, client kubernetes.Interface, o NodeOptions, kubelet int) error {
	list, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{LabelSelector: SimulatedNodeLabel})
	if err != nil {
		return fmt.Errorf("listing simulated nodes: %w", err)
	}
	existing := sets.New[string]()
	for i := range list.Items {
		existing.Insert(list.Items[i].Name)
		if err := moveKubelet(ctx, client, &list.Items[i], kubelet); err != nil {
			return err
		}
	}
	for i := range o.Count {
		node := simulatedNode(i, o, kubelet)
		if existing.Has(node.Name) {
			continue
		}
		if _, err := client.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{}); err != nil {
			return fmt.Errorf("creating simulated node %q: %w", node.Name, err)
		}
	}
	return nil
}

// moveKubelet makes a node of an earlier life name the present port.
func moveKubelet(ctx context.Context, client kubernetes.Interface, node *corev1.Node, kubelet int) error {
	want := kubeletOf(node.Name, kubelet)
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

// kubeletOf is where the API server finds who answers for a node, by its DNS name,
// and what its Pods have for its address.
func kubeletOf(node string, port int) corev1.NodeStatus {
	return corev1.NodeStatus{
		Addresses: []corev1.NodeAddress{
			{Type: corev1.NodeInternalIP, Address: simulatedNodeIP},
			{Type: corev1.NodeHostName, Address: node},
			{Type: corev1.NodeInternalDNS, Address: localhostName},
		},
		DaemonEndpoints: corev1.NodeDaemonEndpoints{KubeletEndpoint: corev1.DaemonEndpoint{Port: int32(port)}}, //nolint:gosec // a port
	}
}

// topology are the labels that tell where a node is.
func (o NodeOptions) topology(index int) map[string]string {
	labels := map[string]string{}
	if o.Region != "" {
		labels[corev1.LabelTopologyRegion] = o.Region
	}
	if len(o.Zones) > 0 {
		labels[corev1.LabelTopologyZone] = o.Zones[index%len(o.Zones)]
	}
	return labels
}

func simulatedNode(index int, o NodeOptions, kubelet int) *corev1.Node {
	name := fmt.Sprintf("node-%d", index+1)
	labels := map[string]string{
		SimulatedNodeLabel:        "true",
		corev1.LabelHostname:      name,
		corev1.LabelOSStable:      "linux",
		corev1.LabelArchStable:    "amd64",
		"node.kubernetes.io/role": "simulated",
	}
	maps.Copy(labels, o.topology(index))
	status := kubeletOf(name, kubelet)
	capacity := corev1.ResourceList{corev1.ResourceCPU: o.CPU, corev1.ResourceMemory: o.Memory, corev1.ResourcePods: o.Pods}
	status.Capacity, status.Allocatable = capacity, capacity.DeepCopy()
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}, Status: status}
}

// startSimulator lets KWOK play the kubelets of the simulated nodes: it keeps
// the nodes ready and lets the Pods on them run, complete and end.
func startSimulator(ctx context.Context, in insider, kubelet int) (*server, error) {
	clients, err := kwokclient.NewClientset("", in.kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("making clients of the node simulator: %w", err)
	}
	config, err := simulatorConfig(clients, in, kubelet)
	if err != nil {
		return nil, err
	}
	simulator, err := controllers.NewController(config)
	if err != nil {
		return nil, fmt.Errorf("making the node simulator: %w", err)
	}
	return start(ctx, "kwok", func(ctx context.Context) error {
		if err := simulator.Start(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}), nil
}

func simulatorConfig(clients kwokclient.Clientset, in insider, kubelet int) (controllers.Config, error) {
	config, err := clients.ToRESTConfig()
	if err != nil {
		return controllers.Config{}, fmt.Errorf("reading kubeconfig of the node simulator: %w", err)
	}
	in.enter(config) // all its clients share it
	dynamicClient, err := clients.ToDynamicClient()
	if err != nil {
		return controllers.Config{}, err
	}
	mapper, err := clients.ToRESTMapper()
	if err != nil {
		return controllers.Config{}, err
	}
	restClient, err := rest.RESTClientFor(config)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("making REST client of the node simulator: %w", err)
	}
	compact := rest.CopyConfig(config)
	compact.ContentType = runtime.ContentTypeProtobuf
	typed, err := kubernetes.NewForConfig(compact)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("making client of the node simulator: %w", err)
	}
	kwok, err := kwokclientset.NewForConfig(config)
	if err != nil {
		return controllers.Config{}, fmt.Errorf("making stage client of the node simulator: %w", err)
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
		TypedClient:                  typed,
		TypedKwokClient:              kwok,
		ManageNodesWithLabelSelector: SimulatedNodeLabel + "=true",
		CIDR:                         simulatedPodCIDR,
		NodeIP:                       simulatedNodeIP,
		NodeName:                     simulatorName,
		NodePort:                     kubelet,
		LocalStages:                  stages,
		PodPlayStageParallelism:      simulatorWorkers,
		NodePlayStageParallelism:     1,
		NodeLeaseParallelism:         1,
		NodeLeaseDurationSeconds:     leaseSeconds,
		PodsOnNodeSyncParallelism:    1,
		ID:                           simulatorName,
	}, nil
}

// podReadyAgain does what a kubelet does when it is back. When a cluster was
// stopped for a while, with the laptop that it runs on for instance, its node
// controller finds the nodes silent and declares their Pods not ready; KWOK has no
// rule for such Pods.
const podReadyAgain = `
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

// simulatorStages are KWOK's own rules for how nodes and Pods live, and one more.
func simulatorStages() (map[kwokv1alpha1.StageResourceRef][]*kwokv1alpha1.Stage, error) {
	stages := map[kwokv1alpha1.StageResourceRef][]*kwokv1alpha1.Stage{}
	for _, manifest := range []string{
		nodefast.DefaultNodeInit, nodeheartbeat.DefaultNodeHeartbeatWithLease,
		podfast.DefaultPodReady, podfast.DefaultPodComplete, podfast.DefaultPodDelete, podReadyAgain,
	} {
		stage, err := kwokconfig.UnmarshalWithType[*kwokv1alpha1.Stage](manifest)
		if err != nil {
			return nil, fmt.Errorf("reading a stage of the node simulator: %w", err)
		}
		stages[stage.Spec.ResourceRef] = append(stages[stage.Spec.ResourceRef], stage)
	}
	return stages, nil
}
