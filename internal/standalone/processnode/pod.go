package processnode

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"karmada.io/karmada/internal/access/podenvironment"
	"karmada.io/karmada/internal/standalone/processnode/layout"
	"karmada.io/karmada/internal/standalone/processnode/services"
)

const (
	serviceAccountPath     = "/var/run/secrets/kubernetes.io/serviceaccount"
	serviceAccountVariable = podenvironment.ServiceAccountVariable

	// hostDir is the directory, in the node's directory, that contains the files of hostPath volumes.
	hostDir = "host"
	// refreshPeriod is the interval at which volumes are compared with their sources.
	refreshPeriod = 10 * time.Second
	// requestTimeout limits each request for a Pod.
	requestTimeout = 10 * time.Second
	// retryDelay is the time after which a failed action is retried.
	retryDelay = time.Second
)

// pod is one Pod of this node, from its creation to its end.
type pod struct {
	node    *Node
	uid     types.UID
	key     string
	dir     string
	address netip.Addr
	// The specification of volumes and containers does not change during a Pod's lifetime.
	volumes                    map[string]*layout.Volume
	initContainers, containers []*container

	// lifetime is the context of the Pod's programs. It ends when terminate is called or the node stops. done
	// is closed when run has returned.
	lifetime  context.Context //nolint:containedctx // the programs of the Pod outlive single requests
	terminate context.CancelFunc
	done      chan struct{}
	// statusChanged wakes reportStatus when the status may have changed.
	statusChanged chan struct{}

	mu         sync.Mutex
	object     *corev1.Pod
	graceLimit *time.Duration
	// stopped means that the programs ended because the Pod is deleted.
	stopped bool
	// writtenStatus is the last status that was written.
	writtenStatus *corev1.PodStatus
}

func newPod(ctx context.Context, node *Node, object *corev1.Pod, address netip.Addr) *pod {
	p := &pod{
		node: node, uid: object.UID, object: object, address: address,
		key:  fmt.Sprintf("%s_%s(%s)", object.Name, object.Namespace, object.UID),
		dir:  filepath.Join(node.options.Dir, "pods", string(object.UID)),
		done: make(chan struct{}), statusChanged: make(chan struct{}, 1), volumes: map[string]*layout.Volume{},
	}
	for i := range object.Spec.Volumes {
		v := &object.Spec.Volumes[i]
		p.volumes[v.Name] = layout.NewVolume(v, filepath.Join(p.dir, "volumes", v.Name), filepath.Join(node.options.Dir, hostDir))
	}
	p.lifetime, p.terminate = context.WithCancel(ctx)
	reportedStatus := func(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
		return nil
	}
	for i := range object.Spec.InitContainers {
		c := &object.Spec.InitContainers[i]
		p.initContainers = append(p.initContainers, newContainer(p, c, reportedStatus(object.Status.InitContainerStatuses, c.Name), true))
	}
	for i := range object.Spec.Containers {
		c := &object.Spec.Containers[i]
		p.containers = append(p.containers, newContainer(p, c, reportedStatus(object.Status.ContainerStatuses, c.Name), false))
	}
	return p
}

// latest returns the last received version of the Pod, with the Pod's addresses.
func (p *pod) latest() *corev1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	object := p.object.DeepCopy()
	object.Status.PodIP, object.Status.HostIP = p.address.String(), hostAddress
	return object
}

func (p *pod) spec() *corev1.PodSpec {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &p.object.Spec
}

// update stores the changed Pod. If the Pod is being deleted, update terminates its programs.
func (p *pod) update(object *corev1.Pod) {
	p.mu.Lock()
	p.object = object
	p.node.services.UpdatePods()
	deleting := object.DeletionTimestamp != nil
	if seconds := object.DeletionGracePeriodSeconds; deleting && seconds != nil {
		grace := time.Duration(*seconds) * time.Second
		p.graceLimit = &grace
	}
	p.mu.Unlock()
	if deleting {
		p.terminate()
	}
}

// gracePeriod returns how long a program may take to end.
func (p *pod) gracePeriod() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	grace := corev1.DefaultTerminationGracePeriodSeconds * time.Second
	if seconds := p.object.Spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	if p.graceLimit != nil {
		grace = *p.graceLimit
	}
	if p.node.isStopping() {
		grace = min(grace, stopTimeout)
	}
	return grace
}

// servicePod returns the Pod as Services see it. ok is false if the Pod has ended.
func (p *pod) servicePod() (seen services.Pod, ok bool) {
	object, status := p.latest(), p.status()
	if status.Phase == corev1.PodSucceeded || status.Phase == corev1.PodFailed {
		return services.Pod{}, false
	}
	seen = services.Pod{
		Namespace: object.Namespace, Name: object.Name, Hostname: object.Spec.Hostname, Subdomain: object.Spec.Subdomain,
		Labels: object.Labels, Address: p.address, Ports: map[string]int32{},
	}
	for _, c := range status.Conditions {
		seen.IsReady = seen.IsReady || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && object.DeletionTimestamp == nil
	}
	for i := range object.Spec.Containers {
		for _, port := range object.Spec.Containers[i].Ports {
			if port.Name != "" && (port.Protocol == corev1.ProtocolTCP || port.Protocol == "") {
				seen.Ports[port.Name] = port.ContainerPort
			}
		}
	}
	return seen, true
}

// requestReport schedules a report of the status, to the API server and to the Services.
func (p *pod) requestReport() {
	p.node.services.UpdatePods()
	select {
	case p.statusChanged <- struct{}{}:
	default:
	}
}

func (p *pod) recordEvent(kind, reason, message string) {
	p.node.events.Event(p.latest(), kind, reason, message)
}

// run runs the Pod until the Pod has ended, is deleted, or the node stops. When the node stops,
// the status does not change, so that the next node process continues with the Pod.
func (p *pod) run(ctx context.Context) {
	defer close(p.done)
	reporting, cancel := context.WithCancel(ctx)
	defer cancel()
	var reporter sync.WaitGroup
	reporter.Go(func() { p.reportStatus(reporting) })
	defer p.terminate()
	p.runContainers(p.lifetime) //nolint:contextcheck // the deletion of the Pod also ends its programs
	if ctx.Err() != nil {
		reporter.Wait()
		return
	}
	// Keep a Pod that has ended until the Pod is deleted.
	p.requestReport()
	<-p.lifetime.Done()
	cancel()
	reporter.Wait()
	if ctx.Err() == nil {
		p.finishDeletion(ctx)
	}
}

// runContainers runs init containers and containers in order, and returns when all of them
// have ended.
func (p *pod) runContainers(ctx context.Context) {
	if isFinished(p.latest()) {
		return
	}
	if err := errors.Join(p.node.options.Disabled, validateSupported(p.spec())); err != nil {
		p.setAllWaiting(reasonConfigError, err)
		<-ctx.Done()
		return
	}
	if !p.prepareVolumes(ctx) {
		return
	}
	var refresher sync.WaitGroup
	refreshing, cancel := context.WithCancel(ctx)
	refresher.Go(func() { p.refreshVolumes(refreshing) })
	defer refresher.Wait()
	defer cancel()
	for _, init := range p.initContainers {
		init.run(ctx)
		if code, ended := init.finalExitCode(); !ended || code != 0 {
			return
		}
	}
	var running sync.WaitGroup
	for _, c := range p.containers {
		running.Go(func() { c.run(ctx) })
	}
	running.Wait()
}

// isFinished reports whether a Pod succeeded or failed.
func isFinished(object *corev1.Pod) bool {
	return object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
}

// setAllWaiting sets all containers to waiting with a reason and an error.
func (p *pod) setAllWaiting(reason string, err error) {
	message, isKnown := err.Error(), false
	for _, c := range append(append([]*container{}, p.initContainers...), p.containers...) {
		c.updateStatus(func(status *corev1.ContainerStatus) {
			if old := status.State.Waiting; old != nil {
				isKnown = isKnown || old.Message == message
			}
			status.State = waitingState(reason, message)
		})
	}
	if isKnown {
		return
	}
	kind := "FailedMount"
	if reason == reasonConfigError {
		kind = "Failed"
	}
	p.recordEvent(corev1.EventTypeWarning, kind, message)
}

// prepareVolumes writes the volumes, and retries until it succeeds.
func (p *pod) prepareVolumes(ctx context.Context) bool {
	for delay := retryDelay / 2; ; delay = min(2*delay, refreshPeriod) {
		err := p.updateVolumes(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		p.setAllWaiting(reasonCreating, err)
		if !sleep(ctx, delay) {
			return false
		}
	}
}

func (p *pod) updateVolumes(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, errs := p.latest(), []error(nil)
	for i := range object.Spec.Volumes {
		errs = append(errs, p.volumes[object.Spec.Volumes[i].Name].Update(ctx, object, p, p, p.node.now()))
	}
	return errors.Join(errs...)
}

// refreshVolumes updates the volumes periodically. If a source is deleted, the volume keeps
// the last content.
func (p *pod) refreshVolumes(ctx context.Context) {
	lastMessage := ""
	for sleep(ctx, refreshPeriod) {
		err := p.updateVolumes(ctx)
		switch {
		case err == nil:
			lastMessage = ""
		case ctx.Err() == nil && err.Error() != lastMessage:
			lastMessage = err.Error()
			p.recordEvent(corev1.EventTypeWarning, "FailedMount", lastMessage)
		}
	}
}

// reportStatus writes the status after each change.
func (p *pod) reportStatus(ctx context.Context) {
	for {
		if err := p.writeStatus(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Reporting a Pod", "pod", klog.KObj(p.latest()))
			if !sleep(ctx, retryDelay) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-p.statusChanged:
		}
	}
}

// writeStatus writes the status if it differs from the last written status.
func (p *pod) writeStatus(ctx context.Context) error {
	object, status := p.latest(), p.status()
	p.mu.Lock()
	unchanged := p.writtenStatus != nil && equality.Semantic.DeepEqual(*p.writtenStatus, status)
	p.mu.Unlock()
	if unchanged {
		return nil
	}
	if err := p.node.writeStatus(ctx, object, status); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.writtenStatus = &status
	return nil
}

// status returns the current status of the Pod.
func (p *pod) status() corev1.PodStatus {
	var f podFacts
	for _, c := range p.initContainers {
		f.initContainers = append(f.initContainers, c.currentStatus())
	}
	for _, c := range p.containers {
		f.containers = append(f.containers, c.currentStatus())
	}
	object := p.latest()
	p.mu.Lock()
	f.stopped = p.stopped
	if p.writtenStatus != nil {
		// The watch may not have delivered the written status yet.
		object.Status.StartTime = p.writtenStatus.StartTime
		object.Status.Conditions = append(p.writtenStatus.Conditions[:len(p.writtenStatus.Conditions):len(p.writtenStatus.Conditions)],
			object.Status.Conditions...)
	}
	p.mu.Unlock()
	f.address, f.now = p.address.String(), p.node.now()
	return podStatus(object, f)
}

// finishDeletion reports the end of a deleted Pod, removes its files, and removes the Pod
// from the API server.
func (p *pod) finishDeletion(ctx context.Context) {
	p.mu.Lock()
	p.stopped = true
	p.mu.Unlock()
	_ = os.RemoveAll(p.dir)
	for object := p.latest(); ; {
		err := p.writeStatus(ctx)
		if err == nil {
			err = p.node.deletePod(ctx, object)
		}
		if err == nil || ctx.Err() != nil {
			return
		}
		klog.FromContext(ctx).Error(err, "Deleting a Pod", "pod", klog.KObj(object))
		if !sleep(ctx, retryDelay) {
			return
		}
	}
}

// hostname returns the Pod's host name.
func hostname(object *corev1.Pod) string {
	if object.Spec.Hostname != "" {
		return object.Spec.Hostname
	}
	return object.Name
}

// baseEnvironment returns the variables that every program gets. It does not contain this process's
// environment.
func (p *pod) baseEnvironment(dir string) []corev1.EnvVar {
	host, port := p.node.apiServerAddress()
	root := filepath.Join(dir, "root")
	env := []corev1.EnvVar{
		{Name: "HOSTNAME", Value: hostname(p.latest())},
		{Name: "HOME", Value: root},
		{Name: "TMPDIR", Value: filepath.Join(root, "tmp")},
		{Name: "KUBERNETES_SERVICE_HOST", Value: host},
		{Name: "KUBERNETES_SERVICE_PORT", Value: port},
		{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: port},
		{Name: podenvironment.PodAddressVariable, Value: p.address.String()},
		{Name: podenvironment.DNSServerVariable, Value: p.node.services.DNSAddress()},
	}
	return env
}

// Secret implements layout.ObjectReader.
func (p *pod) Secret(ctx context.Context, name string, optional *bool) (*corev1.Secret, error) {
	secret, err := p.node.options.Client.CoreV1().Secrets(p.latest().Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case layout.IsOptionalNotFound(err, optional):
		return nil, nil // as the interface documents
	case err != nil:
		return nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	return secret, nil
}

// ConfigMap implements layout.ObjectReader.
func (p *pod) ConfigMap(ctx context.Context, name string, optional *bool) (*corev1.ConfigMap, error) {
	configMap, err := p.node.options.Client.CoreV1().ConfigMaps(p.latest().Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case layout.IsOptionalNotFound(err, optional):
		return nil, nil // as the interface documents
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %q: %w", name, err)
	}
	return configMap, nil
}

// Token implements layout.TokenIssuer.
func (p *pod) Token(ctx context.Context, audiences []string, seconds *int64) (*authenticationv1.TokenRequestStatus, error) {
	object := p.latest()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: audiences, ExpirationSeconds: seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: object.Name, UID: object.UID},
	}}
	account := object.Spec.ServiceAccountName
	response, err := p.node.options.Client.CoreV1().ServiceAccounts(object.Namespace).CreateToken(ctx, account, request,
		metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %q: %w", account, err)
	}
	return &response.Status, nil
}

// isPodGone reports whether an error means that the Pod no longer exists.
func isPodGone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
