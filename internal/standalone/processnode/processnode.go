// Package processnode is a small kubelet whose containers are child processes. It runs Karmada's programs in
// simulated clusters as other clusters do: an agent, or a complete control plane with its etcd and API
// server.
//
// Invariants:
//
//   - Only the programs of Programs run. The last element of the image's name selects the program: a
//     component's name, such as karmada-agent, or karmada, the image of all programs, whose program is
//     the command's first word. FindProgram searches for the program's file in this program's
//     directory. The file karmada gets the program's name as its argument 0. The admission plugin that
//     assigns Pods uses CanRun.
//   - The kernel confines each program with Landlock. The program may execute only itself. It may read
//     the volumes that its container mounts and a few system files, and change only its own directory,
//     its empty directories and its hostPath directories. So the author of a kubeconfig that names a
//     command or a file of the machine gains no access.
//   - A hostPath is a directory below the node's directory, never a path of the machine. It outlives
//     the Pod.
//   - Variables that change how a process runs are rejected. This process's environment is not
//     inherited.
//   - A program gets its Pod's command line, environment and files. Secrets, ConfigMaps, service
//     account tokens and Pod fields become files. Within seconds of a change to their source, all
//     files of a volume are updated at once. Tokens are renewed before they expire.
//   - A process has no file system of its own, so in arguments and variables, paths below a mount path
//     are replaced by the path on the machine. File contents are not changed. A program reads its
//     service account through podenvironment.InCluster.
//   - A process has no network of its own. Each Pod has an address in 127.64.0.0/10. An argument that
//     makes a program listen on all addresses is changed to the Pod's address, also in exec and exec
//     probes. The programs' defaults use $KARMADA_POD_IP, and other projects' programs get arguments
//     instead. A listen address that is neither the Pod's nor loopback is rejected, so that other
//     machines cannot reach a Pod. Probes connect only to ports that are open on the Pod's address.
//   - Programs reach each other by Service names and ports: see package services. Their DNS server is
//     podenvironment.DNSServerVariable.
//   - Restart policy, back-off, grace periods, init containers, probes, conditions and events work as
//     in a kubelet. The size of logs is limited.
//   - The node serves logs, exec, attach and port-forward to the API server. exec runs only the
//     container's own program, with other arguments. Programs have no standard input.
//   - No process outlives the process that runs the node, even if the latter is killed. The next node
//     with the same name continues with the node's Pods.
//
// Unsupported features are reported. A Pod with a persistent volume, a hostPath of a file, a lifecycle hook,
// a sidecar or a gRPC probe waits with a message that names the feature. Security contexts, CPU and memory
// limits, and network settings have no effect. The programs are processes of the user who runs the node, on
// the machine's network.
//
// This package contains the node, its Pods, containers, processes and logs. Package layout prepares the
// programs' files and arguments, and package services connects the programs.
package processnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/loop"
	"karmada.io/karmada/internal/standalone/processnode/services"
)

// Options configure a node.
type Options struct {
	// Name is the name of the Node object.
	Name string
	// Dir is the directory that contains all of the node's files.
	Dir string
	// Client is a client for the cluster with the permissions of an administrator.
	Client kubernetes.Interface
	// APIServer is the host and port of the API server for the programs. The certificate of
	// the API server must be valid for the host.
	APIServer string
	// Port is the port of 127.0.0.1 on which Handler is served.
	Port int
	// Capacity is the capacity in the Node status. The node sets Pods that exceed it to Failed. It does not
	// limit CPU and memory.
	Capacity corev1.ResourceList
	// Labels are added to the Node in addition to Label.
	Labels map[string]string
	// Version is the kubelet version in the Node status.
	Version string
	// Disabled is the reason why the node runs no programs. The node's Pods then wait with this error. nil
	// means that the node runs programs.
	Disabled error
	// Unconfined allows programs to run with all permissions of this user if the kernel cannot confine
	// them. If Unconfined is false, the node is disabled on such a machine.
	Unconfined bool
}

// ErrNoConfinement means that the kernel cannot restrict the access of programs to files.
var ErrNoConfinement = errors.New("the kernel of this machine has no Landlock, which restricts programs to their own files: use Linux 5.13 or newer with landlock in /sys/kernel/security/lsm")

// CheckConfinement returns ErrNoConfinement if this machine cannot confine programs.
func CheckConfinement() error {
	if isConfinementSupported() {
		return nil
	}
	return ErrNoConfinement
}

// stopTimeout is how long programs may take to end when the node stops.
const stopTimeout = 2 * time.Second

// Node runs Pods. A Node can run only once.
type Node struct {
	options       Options
	selectProgram func(Container) (installedProgram, error)
	findProgram   func(file string) (string, error)
	now           func() time.Time
	backoff       restartBackoff
	spawner       *spawner
	events        record.EventRecorder
	services      *services.Services

	stopped    chan struct{}
	goroutines sync.WaitGroup
	mu         sync.Mutex
	pods       map[types.UID]*pod
}

// New creates a node.
func New(o Options) *Node {
	confinement := CheckConfinement()
	if o.Disabled == nil && !o.Unconfined {
		o.Disabled = confinement
	}
	o.Unconfined = confinement != nil
	n := &Node{
		options: o, selectProgram: Container.program, findProgram: FindProgram, now: time.Now, pods: map[types.UID]*pod{},
		stopped: make(chan struct{}),
		backoff: restartBackoff{initial: 10 * time.Second, max: 5 * time.Minute, resetAfter: 10 * time.Minute},
	}
	return n
}

// Run registers the node and runs its Pods until ctx ends. Then it stops all programs within
// a few seconds.
func (n *Node) Run(ctx context.Context) error {
	n.spawner = newSpawner()
	defer n.spawner.Close()
	broadcaster := record.NewBroadcaster(record.WithContext(ctx))
	defer broadcaster.Shutdown()
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: n.options.Client.CoreV1().Events("")})
	n.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "kubelet", Host: n.options.Name})
	if err := n.register(ctx); err != nil {
		return err
	}
	pods := coreinformers.NewFilteredPodInformer(n.options.Client, metav1.NamespaceAll, 0, nil, func(o *metav1.ListOptions) {
		o.FieldSelector = fields.OneTermEqualSelector("spec.nodeName", n.options.Name).String()
	})
	registration, err := pods.AddEventHandler(loop.Handlers[*corev1.Pod]{
		Added:   func(added *corev1.Pod, _ bool) { n.handlePod(ctx, added) },
		Updated: func(_, after *corev1.Pod) { n.handlePod(ctx, after) },
		Deleted: n.handleDeletedPod,
	})
	if err != nil {
		return fmt.Errorf("watching the Pods of node %q: %w", n.options.Name, err)
	}
	if n.services, err = services.New(services.Options{Client: n.options.Client, Pods: n.servicePods, Events: n.events,
		ProxyDir: filepath.Join(n.options.Dir, "proxy")}); err != nil {
		return fmt.Errorf("starting node %q: %w", n.options.Name, err)
	}
	n.goroutines.Go(func() { wait.UntilWithContext(ctx, n.renewHeartbeat, leasePeriod) })
	n.goroutines.Go(func() { n.services.Run(ctx) })
	n.services.AwaitNames(ctx)
	n.goroutines.Go(func() { pods.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		n.removeOldFiles()
	}
	<-ctx.Done()
	close(n.stopped)
	n.goroutines.Wait()
	return nil
}

// isStopping reports whether the node is stopping.
func (n *Node) isStopping() bool {
	select {
	case <-n.stopped:
		return true
	default:
		return false
	}
}

// handlePod starts a new Pod, or passes the change of an existing Pod to it.
func (n *Node) handlePod(ctx context.Context, received *corev1.Pod) {
	if received.Spec.NodeName != n.options.Name {
		return
	}
	n.mu.Lock()
	existing := n.pods[received.UID]
	if existing == nil && ctx.Err() == nil {
		existing = newPod(ctx, n, received, choosePodAddress(received.UID, n.isAddressUsed))
		n.pods[received.UID] = existing
		if limit := n.options.Capacity.Pods().Value(); int64(len(n.pods)) > limit && !isFinished(received) {
			existing.object = withOutOfPods(received, limit)
		}
		existing.update(existing.object)
		n.goroutines.Go(func() { n.runPod(ctx, existing) })
	} else if existing != nil {
		existing.update(received)
	}
	n.mu.Unlock()
}

// withOutOfPods returns the Pod as failed, because the node has no capacity for another Pod.
// Normally the scheduler does not assign such a Pod to the node.
func withOutOfPods(object *corev1.Pod, limit int64) *corev1.Pod {
	failed := object.DeepCopy()
	failed.Status.Phase, failed.Status.Reason = corev1.PodFailed, "OutOfpods"
	failed.Status.Message = fmt.Sprintf("This node runs at most %d Pods.", limit)
	return failed
}

// isAddressUsed reports whether a Pod has the address. The caller holds the lock.
func (n *Node) isAddressUsed(address netip.Addr) bool {
	for _, p := range n.pods {
		if p.address == address {
			return true
		}
	}
	return false
}

func (n *Node) runPod(ctx context.Context, p *pod) {
	p.run(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("pod", p.key)))
	n.mu.Lock()
	delete(n.pods, p.uid)
	n.mu.Unlock()
	n.services.UpdatePods()
}

// servicePods returns the Pods that Services may select.
func (n *Node) servicePods() []services.Pod {
	n.mu.Lock()
	pods := slices.Collect(maps.Values(n.pods))
	n.mu.Unlock()
	var running []services.Pod
	for _, p := range pods {
		if seen, ok := p.servicePod(); ok {
			running = append(running, seen)
		}
	}
	return running
}

// handleDeletedPod stops a Pod that was deleted from the API server, or moved to another
// node.
func (n *Node) handleDeletedPod(deleted *corev1.Pod) {
	n.mu.Lock()
	existing := n.pods[deleted.UID]
	n.mu.Unlock()
	if existing == nil {
		return
	}
	existing.mu.Lock()
	gracePeriod := stopTimeout
	existing.graceLimit = &gracePeriod
	existing.mu.Unlock()
	existing.terminate()
}

// removeOldFiles removes the files of Pods that were deleted while the node was stopped.
func (n *Node) removeOldFiles() {
	dir := filepath.Join(n.options.Dir, "pods")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, entry := range entries {
		if n.pods[types.UID(entry.Name())] == nil {
			_ = os.RemoveAll(filepath.Join(dir, entry.Name()))
		}
	}
}

// writeStatus writes a Pod's status. It returns no error if the Pod no longer exists.
func (n *Node) writeStatus(ctx context.Context, object *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of a Pod: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = n.options.Client.CoreV1().Pods(object.Namespace).Patch(ctx, object.Name, types.StrategicMergePatchType, patch,
		metav1.PatchOptions{}, "status")
	if err != nil && !isPodGone(err) {
		return fmt.Errorf("writing the status of Pod %s: %w", klog.KObj(object), err)
	}
	return nil
}

// deletePod removes a Pod from the API server after its programs have ended.
func (n *Node) deletePod(ctx context.Context, object *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	immediately := int64(0)
	err := n.options.Client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &immediately, Preconditions: metav1.NewUIDPreconditions(string(object.UID)),
	})
	if err != nil && !isPodGone(err) {
		return fmt.Errorf("deleting Pod %s: %w", klog.KObj(object), err)
	}
	return nil
}

func (n *Node) apiServerAddress() (host, port string) {
	host, port, _ = net.SplitHostPort(n.options.APIServer)
	return host, port
}
