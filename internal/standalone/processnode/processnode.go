// Package processnode answers "how does a Pod run on a machine without containers?":
// a small kubelet whose containers are child processes. It is meant for simulated
// clusters, so that programs of Karmada run in them as they do anywhere else.
//
// What it promises:
//
//   - Only the programs of Programs run: the last element of the image's name, such as
//     karmada-agent, is a program that Find looks for where this one is installed. The
//     admission plugin that places Pods asks Runs and gives them Label and Taint.
//   - The kernel confines each program by Landlock: it executes nothing but itself,
//     reads the volumes that its container mounts and a few files of the system, and
//     changes only its own directory and its empty directories. A kubeconfig that names
//     a command or a file of the machine is therefore of no use to its author.
//   - Variables that change how a process runs are refused, and nothing is inherited.
//   - A program gets the command line, the environment and the files that its Pod
//     says. Secrets, ConfigMaps, service account tokens and fields of the Pod are laid
//     out as files and follow their source within seconds, all files of a volume at
//     once; tokens are renewed in time.
//   - A process has no file system of its own. Paths below a mount path are replaced,
//     in arguments and in variables, by where the files are; what is written in files
//     stays. A program reads its service account through flags.InCluster.
//   - A process has no network of its own. Each Pod has an address in 127.64.0.0/10.
//     Arguments that would listen on all addresses are narrowed to it, those of exec and
//     of exec probes as well, and defaults of programs follow $KARMADA_POD_IP. An
//     argument that would listen on another address than this one and the loopback
//     address is refused, so that other machines reach no Pod. Probes go to ports at
//     which the Pod's address listens, and to no others. There is no cluster DNS.
//   - Restart policy, back-off, grace periods, init containers, probes, conditions and
//     events are those of a kubelet. Logs are bounded.
//   - logs, exec, attach and port-forward lead here. exec runs the program of the
//     container with other arguments, and no other command. The input of programs is
//     empty.
//   - No process outlives the one that runs the node, however that ends. The next node
//     of the same name goes on with its Pods.
//
// What it does not do, it says: a Pod with a hostPath, a persistent volume, a
// lifecycle hook, a sidecar or a gRPC probe waits with a message that names it.
// Security contexts, limits of CPU and memory, and network settings have no effect:
// the programs are processes of the user who runs the node, on the network of the
// machine.
//
// Here are the node, its Pods and their containers. What a program is given is in
// layout, how it runs in process, what it writes in containerlog, and what the API
// server asks in kubelet.
package processnode

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
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

	"karmada.io/karmada/internal/standalone/processnode/kubelet"
	"karmada.io/karmada/internal/standalone/processnode/process"
)

// Label and Taint of such a node. Pods that it can run select the one and tolerate
// the other.
const (
	Label = "karmada.io/runs-programs"
	Taint = "karmada.io/runs-programs"
)

// Options describe a node.
type Options struct {
	// Name is that of the Node object.
	Name string
	// Dir holds everything that the node keeps.
	Dir string
	// Client reaches the cluster with the rights of an administrator.
	Client kubernetes.Interface
	// APIServer is the host and port at which programs find the API server; its
	// certificate must hold the host.
	APIServer string
	// Port is where Handler is served, on 127.0.0.1.
	Port int
	// Capacity is what the scheduler counts with; pods is also a limit.
	Capacity corev1.ResourceList
	// Labels are put on the Node besides Label.
	Labels map[string]string
	// Version is what the Node gives as that of its kubelet.
	Version string
	// Off says why the node runs no programs; nil means that it does. Its Pods wait
	// with this error.
	Off error
	// Unconfined lets programs run with all rights of this user where the kernel cannot
	// confine them. Without it the node is off there.
	Unconfined bool
}

// ErrNoConfinement says that the kernel cannot keep programs from the files of the
// machine.
var ErrNoConfinement = errors.New("the kernel of this machine has no Landlock, which confines programs to their files: use Linux 5.13 or newer with landlock among the modules in /sys/kernel/security/lsm")

// CheckConfinement returns ErrNoConfinement where programs cannot be confined.
func CheckConfinement() error {
	if process.Confines() {
		return nil
	}
	return ErrNoConfinement
}

// stopGrace is how long programs may take to end when the node stops.
const stopGrace = 2 * time.Second

// Node runs Pods. It runs once.
type Node struct {
	options Options
	// programs are the names of those that may run.
	programs []string
	find     func(program string) (string, error)
	now      func() time.Time
	backoff  backoff
	spawner  *process.Spawner
	events   record.EventRecorder
	handler  http.Handler

	stopped chan struct{}
	work    sync.WaitGroup
	mu      sync.Mutex
	pods    map[types.UID]*pod
}

// New makes a node.
func New(o Options) *Node {
	confinement := CheckConfinement()
	if o.Off == nil && !o.Unconfined {
		o.Off = confinement
	}
	o.Unconfined = confinement != nil
	n := &Node{
		options: o, programs: Programs(), find: Find, now: time.Now, pods: map[types.UID]*pod{}, stopped: make(chan struct{}),
		backoff: backoff{first: 10 * time.Second, limit: 5 * time.Minute, forget: 10 * time.Minute},
	}
	n.handler = kubelet.Node{Find: n.hosted, Images: programPrefix, Now: n.now}.Handler()
	return n
}

// Handler answers the API server's questions of a kubelet. Whoever serves it must let
// in the API server only: it runs programs.
func (n *Node) Handler() http.Handler { return n.handler }

// Run registers the node and runs its Pods until ctx ends; then it ends all
// programs, within a few seconds.
func (n *Node) Run(ctx context.Context) error {
	n.spawner = process.NewSpawner()
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
	registration, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(object any) { n.see(ctx, object) },
		UpdateFunc: func(_, object any) { n.see(ctx, object) },
		DeleteFunc: n.lose,
	})
	if err != nil {
		return fmt.Errorf("watching the Pods of node %q: %w", n.options.Name, err)
	}
	n.work.Go(func() { wait.UntilWithContext(ctx, n.renew, leasePeriod) })
	n.work.Go(func() { pods.RunWithContext(ctx) })
	if cache.WaitForCacheSync(ctx.Done(), registration.HasSynced) {
		n.clean()
	}
	<-ctx.Done()
	close(n.stopped)
	n.work.Wait()
	return nil
}

// stopping reports whether the node is about to end.
func (n *Node) stopping() bool {
	select {
	case <-n.stopped:
		return true
	default:
		return false
	}
}

// see takes up a Pod, or tells the one that is known what changed.
func (n *Node) see(ctx context.Context, object any) {
	seen, ok := object.(*corev1.Pod)
	if !ok || seen.Spec.NodeName != n.options.Name {
		return
	}
	n.mu.Lock()
	known := n.pods[seen.UID]
	if known == nil && ctx.Err() == nil {
		known = newPod(ctx, n, seen, addressOf(seen.UID, n.taken))
		n.pods[seen.UID] = known
		if full := n.options.Capacity.Pods().Value(); int64(len(n.pods)) > full && !finished(seen) {
			known.object = outOfPods(seen, full)
		}
		known.update(known.object)
		n.work.Go(func() { n.host(ctx, known) })
	} else if known != nil {
		known.update(seen)
	}
	n.mu.Unlock()
}

// outOfPods is the end of a Pod for which there is no room, which the scheduler
// should have seen.
func outOfPods(seen *corev1.Pod, limit int64) *corev1.Pod {
	refused := seen.DeepCopy()
	refused.Status.Phase, refused.Status.Reason = corev1.PodFailed, "OutOfpods"
	refused.Status.Message = fmt.Sprintf("This node runs at most %d Pods.", limit)
	return refused
}

// taken reports whether a Pod has the address. The caller holds the lock.
func (n *Node) taken(address netip.Addr) bool {
	for _, p := range n.pods {
		if p.address == address {
			return true
		}
	}
	return false
}

func (n *Node) host(ctx context.Context, p *pod) {
	p.run(klog.NewContext(ctx, klog.FromContext(ctx).WithValues("pod", p.key)))
	n.mu.Lock()
	defer n.mu.Unlock()
	delete(n.pods, p.uid)
}

// lose ends a Pod that is no more, or no more here.
func (n *Node) lose(object any) {
	if unknown, ok := object.(cache.DeletedFinalStateUnknown); ok {
		object = unknown.Obj
	}
	lost, ok := object.(*corev1.Pod)
	if !ok {
		return
	}
	n.mu.Lock()
	known := n.pods[lost.UID]
	n.mu.Unlock()
	if known == nil {
		return
	}
	known.mu.Lock()
	limit := stopGrace
	known.limit = &limit
	known.mu.Unlock()
	known.end()
}

// clean removes what is left of Pods that went while the node was stopped.
func (n *Node) clean() {
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

// write writes a Pod's status. A Pod that is gone needs none.
func (n *Node) write(ctx context.Context, object *corev1.Pod, status corev1.PodStatus) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": object.UID}, "status": status})
	if err != nil {
		return fmt.Errorf("encoding the status of a Pod: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	_, err = n.options.Client.CoreV1().Pods(object.Namespace).Patch(ctx, object.Name, types.StrategicMergePatchType, patch, metav1.PatchOptions{}, "status")
	if err != nil && !gone(err) {
		return fmt.Errorf("writing the status of Pod %s: %w", klog.KObj(object), err)
	}
	return nil
}

// forget lets a Pod go whose programs have ended.
func (n *Node) forget(ctx context.Context, object *corev1.Pod) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	now := int64(0)
	err := n.options.Client.CoreV1().Pods(object.Namespace).Delete(ctx, object.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: metav1.NewUIDPreconditions(string(object.UID)),
	})
	if err != nil && !gone(err) {
		return fmt.Errorf("deleting Pod %s: %w", klog.KObj(object), err)
	}
	return nil
}

func (n *Node) apiServer() (host, port string) {
	host, port, _ = net.SplitHostPort(n.options.APIServer)
	return host, port
}
