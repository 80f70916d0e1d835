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

	"karmada.io/karmada/internal/programs/flags"
	"karmada.io/karmada/internal/standalone/processnode/layout"
)

const (
	serviceAccountPath     = "/var/run/secrets/kubernetes.io/serviceaccount"
	serviceAccountVariable = flags.ServiceAccountVariable

	// refreshPeriod is how often volumes are compared with what they come from.
	refreshPeriod = 10 * time.Second
	// requestTimeout bounds each request about a Pod.
	requestTimeout = 10 * time.Second
	// retryDelay is how long it takes until what could not be done is tried again.
	retryDelay = time.Second
)

// pod is one Pod of this node, from its first sight to its end.
type pod struct {
	node    *Node
	uid     types.UID
	key     string
	dir     string
	address netip.Addr
	// The specification of these does not change during the life of a Pod.
	volumes           map[string]*layout.Volume
	inits, containers []*container

	// living ends with the programs of the Pod: end ends it, or the end of the node.
	// done tells that all is over.
	living context.Context
	end    context.CancelFunc
	done   chan struct{}
	// news tells the reporter that the status may have changed.
	news chan struct{}

	mu     sync.Mutex
	object *corev1.Pod
	limit  *time.Duration
	// over tells that the programs ended because the Pod goes.
	over bool
	// written is the status that was written last.
	written *corev1.PodStatus
}

func newPod(ctx context.Context, node *Node, object *corev1.Pod, address netip.Addr) *pod {
	p := &pod{
		node: node, uid: object.UID, object: object, address: address,
		key:  fmt.Sprintf("%s_%s(%s)", object.Name, object.Namespace, object.UID),
		dir:  filepath.Join(node.options.Dir, "pods", string(object.UID)),
		done: make(chan struct{}), news: make(chan struct{}, 1), volumes: map[string]*layout.Volume{},
	}
	for i := range object.Spec.Volumes {
		v := &object.Spec.Volumes[i]
		p.volumes[v.Name] = layout.NewVolume(v, filepath.Join(p.dir, "volumes", v.Name))
	}
	p.living, p.end = context.WithCancel(ctx)
	known := func(statuses []corev1.ContainerStatus, name string) *corev1.ContainerStatus {
		for i := range statuses {
			if statuses[i].Name == name {
				return &statuses[i]
			}
		}
		return nil
	}
	for i := range object.Spec.InitContainers {
		c := &object.Spec.InitContainers[i]
		p.inits = append(p.inits, newContainer(p, c, known(object.Status.InitContainerStatuses, c.Name), true))
	}
	for i := range object.Spec.Containers {
		c := &object.Spec.Containers[i]
		p.containers = append(p.containers, newContainer(p, c, known(object.Status.ContainerStatuses, c.Name), false))
	}
	return p
}

// stored is the Pod as it was seen last.
func (p *pod) stored() *corev1.Pod {
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

// update is told what changed. A Pod that is being deleted ends.
func (p *pod) update(object *corev1.Pod) {
	p.mu.Lock()
	p.object = object
	deleting := object.DeletionTimestamp != nil
	if seconds := object.DeletionGracePeriodSeconds; deleting && seconds != nil {
		grace := time.Duration(*seconds) * time.Second
		p.limit = &grace
	}
	p.mu.Unlock()
	if deleting {
		p.end()
	}
}

// grace is how long a program may take to end.
func (p *pod) grace() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	grace := corev1.DefaultTerminationGracePeriodSeconds * time.Second
	if seconds := p.object.Spec.TerminationGracePeriodSeconds; seconds != nil {
		grace = time.Duration(*seconds) * time.Second
	}
	if p.limit != nil {
		grace = *p.limit
	}
	if p.node.stopping() {
		grace = min(grace, stopGrace)
	}
	return grace
}

// report has the status written soon.
func (p *pod) report() {
	select {
	case p.news <- struct{}{}:
	default:
	}
}

func (p *pod) event(kind, reason, message string) {
	p.node.events.Event(p.stored(), kind, reason, message)
}

// run lets the Pod live until it ended, is deleted, or the node stops. When the
// node stops the Pod stays as it was reported: the next node goes on with it.
func (p *pod) run(ctx context.Context) {
	defer close(p.done)
	reporting, cancel := context.WithCancel(ctx)
	defer cancel()
	var reporter sync.WaitGroup
	reporter.Go(func() { p.keepReporting(reporting) })
	defer p.end()
	p.live(p.living)
	if ctx.Err() != nil {
		reporter.Wait()
		return
	}
	// A Pod that ended stays until somebody deletes it.
	p.report()
	<-p.living.Done()
	cancel()
	reporter.Wait()
	if ctx.Err() == nil {
		p.bury(ctx)
	}
}

// live runs everything in its order and returns when all of it has ended.
func (p *pod) live(ctx context.Context) {
	if finished(p.stored()) {
		return
	}
	if err := errors.Join(p.node.options.Off, unsupported(p.spec())); err != nil {
		p.hold(reasonConfigError, err)
		<-ctx.Done()
		return
	}
	if !p.prepare(ctx) {
		return
	}
	var upkeep sync.WaitGroup
	keeping, cancel := context.WithCancel(ctx)
	upkeep.Go(func() { p.keepVolumes(keeping) })
	defer upkeep.Wait()
	defer cancel()
	for _, init := range p.inits {
		init.run(ctx)
		if code, ended := init.settled(); !ended || code != 0 {
			return
		}
	}
	var running sync.WaitGroup
	for _, c := range p.containers {
		running.Go(func() { c.run(ctx) })
	}
	running.Wait()
}

// finished reports whether a Pod has come to its end.
func finished(object *corev1.Pod) bool {
	return object.Status.Phase == corev1.PodSucceeded || object.Status.Phase == corev1.PodFailed
}

// hold keeps all containers from starting and says why.
func (p *pod) hold(reason string, err error) {
	message, said := err.Error(), false
	for _, c := range append(append([]*container{}, p.inits...), p.containers...) {
		c.change(func(status *corev1.ContainerStatus) {
			if old := status.State.Waiting; old != nil {
				said = said || old.Message == message
			}
			status.State = waiting(reason, message)
		})
	}
	if said {
		return
	}
	kind := "FailedMount"
	if reason == reasonConfigError {
		kind = "Failed"
	}
	p.event(corev1.EventTypeWarning, kind, message)
}

// prepare lays out the volumes, as often as it takes.
func (p *pod) prepare(ctx context.Context) bool {
	for delay := retryDelay / 2; ; delay = min(2*delay, refreshPeriod) {
		err := p.lay(ctx)
		if err == nil {
			return true
		}
		if ctx.Err() != nil {
			return false
		}
		p.hold(reasonCreating, err)
		if !sleep(ctx, delay) {
			return false
		}
	}
}

func (p *pod) lay(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	object, errs := p.stored(), []error(nil)
	for i := range object.Spec.Volumes {
		errs = append(errs, p.volumes[object.Spec.Volumes[i].Name].Lay(ctx, object, p, p, p.node.now()))
	}
	return errors.Join(errs...)
}

// keepVolumes follows what the volumes come from. What is gone stays in the volume
// as it was.
func (p *pod) keepVolumes(ctx context.Context) {
	said := ""
	for sleep(ctx, refreshPeriod) {
		err := p.lay(ctx)
		switch {
		case err == nil:
			said = ""
		case ctx.Err() == nil && err.Error() != said:
			said = err.Error()
			p.event(corev1.EventTypeWarning, "FailedMount", said)
		}
	}
}

// keepReporting writes the status whenever it changed.
func (p *pod) keepReporting(ctx context.Context) {
	for {
		if err := p.write(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Reporting a Pod", "pod", klog.KObj(p.stored()))
			if !sleep(ctx, retryDelay) {
				return
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-p.news:
		}
	}
}

// write writes the status if it is another than before.
func (p *pod) write(ctx context.Context) error {
	object, status := p.stored(), p.status()
	p.mu.Lock()
	same := p.written != nil && equality.Semantic.DeepEqual(*p.written, status)
	p.mu.Unlock()
	if same {
		return nil
	}
	if err := p.node.write(ctx, object, status); err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.written = &status
	return nil
}

// status is what there is to say of the Pod.
func (p *pod) status() corev1.PodStatus {
	var f facts
	for _, c := range p.inits {
		f.inits = append(f.inits, c.current())
	}
	for _, c := range p.containers {
		f.containers = append(f.containers, c.current())
	}
	object := p.stored()
	p.mu.Lock()
	f.over = p.over
	if p.written != nil {
		// The watch may not have told yet what was written.
		object.Status.StartTime = p.written.StartTime
		object.Status.Conditions = append(p.written.Conditions[:len(p.written.Conditions):len(p.written.Conditions)], object.Status.Conditions...)
	}
	p.mu.Unlock()
	f.address, f.now = p.address.String(), p.node.now()
	return statusOf(object, f)
}

// bury reports the end of a Pod that is deleted, removes its files and lets it go.
func (p *pod) bury(ctx context.Context) {
	p.mu.Lock()
	p.over = true
	p.mu.Unlock()
	_ = os.RemoveAll(p.dir)
	for object := p.stored(); ; {
		err := p.write(ctx)
		if err == nil {
			err = p.node.forget(ctx, object)
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

// given is what every program finds in its environment. Nothing of the environment of
// this process is among it.
func (p *pod) given(dir string) []corev1.EnvVar {
	host, port := p.node.apiServer()
	root := filepath.Join(dir, "root")
	env := []corev1.EnvVar{
		{Name: "HOSTNAME", Value: p.stored().Name},
		{Name: "HOME", Value: root},
		{Name: "TMPDIR", Value: filepath.Join(root, "tmp")},
		{Name: "KUBERNETES_SERVICE_HOST", Value: host},
		{Name: "KUBERNETES_SERVICE_PORT", Value: port},
		{Name: "KUBERNETES_SERVICE_PORT_HTTPS", Value: port},
		{Name: flags.PodAddressVariable, Value: p.address.String()},
	}
	return env
}

// Secret implements layout.Objects.
func (p *pod) Secret(ctx context.Context, name string, optional *bool) (*corev1.Secret, error) {
	secret, err := p.node.options.Client.CoreV1().Secrets(p.stored().Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case layout.Absent(err, optional):
		return nil, nil //nolint:nilnil // as the interface says
	case err != nil:
		return nil, fmt.Errorf("reading Secret %q: %w", name, err)
	}
	return secret, nil
}

// ConfigMap implements layout.Objects.
func (p *pod) ConfigMap(ctx context.Context, name string, optional *bool) (*corev1.ConfigMap, error) {
	configMap, err := p.node.options.Client.CoreV1().ConfigMaps(p.stored().Namespace).Get(ctx, name, metav1.GetOptions{})
	switch {
	case layout.Absent(err, optional):
		return nil, nil //nolint:nilnil // as the interface says
	case err != nil:
		return nil, fmt.Errorf("reading ConfigMap %q: %w", name, err)
	}
	return configMap, nil
}

// Token implements layout.Tokens.
func (p *pod) Token(ctx context.Context, audiences []string, seconds *int64) (*authenticationv1.TokenRequestStatus, error) {
	object := p.stored()
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		Audiences: audiences, ExpirationSeconds: seconds,
		BoundObjectRef: &authenticationv1.BoundObjectReference{APIVersion: "v1", Kind: "Pod", Name: object.Name, UID: object.UID},
	}}
	account := object.Spec.ServiceAccountName
	answer, err := p.node.options.Client.CoreV1().ServiceAccounts(object.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	if err != nil {
		return nil, fmt.Errorf("requesting a token of ServiceAccount %q: %w", account, err)
	}
	return &answer.Status, nil
}

// gone reports whether an error is that a Pod is no more.
func gone(err error) bool { return apierrors.IsNotFound(err) || apierrors.IsConflict(err) }
