package workstatus

import (
	"context"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	workv1alpha1 "karmada.io/karmada/api/work/v1alpha1"
	"karmada.io/karmada/internal/domain/podfailure"
)

const (
	// firstPodCheck is how long a workload may be unhealthy before its Pods are read:
	// most are on their way and arrive within it.
	firstPodCheck = 10 * time.Second
	// lastPodCheck bounds the pause between two reads, which doubles each time.
	lastPodCheck = 5 * time.Minute
	// podChecksPerSecond bounds how many workloads have their Pods read in a second.
	podChecksPerSecond = 5
	// workloadsRemembered bounds how many unhealthy workloads are remembered.
	workloadsRemembered = 10_000
)

// podChecks decides when the Pods of unhealthy workloads are read, and remembers
// what was found. It may be lost: what was found last is stored in the Work.
type podChecks struct {
	now    func() time.Time
	budget *rate.Limiter
	// workloads holds a podCheck for each subject.
	workloads *lru.Cache
}

// podSubject is the object of one manifest of a Work.
type podSubject struct {
	work       types.NamespacedName
	identifier workv1alpha1.ResourceIdentifier
}

type podCheck struct {
	next    time.Time
	pause   time.Duration
	failure *podfailure.Failure
}

func newPodChecks(now func() time.Time) *podChecks {
	return &podChecks{
		now: now, budget: rate.NewLimiter(podChecksPerSecond, podChecksPerSecond), workloads: lru.New(workloadsRemembered),
	}
}

// check returns what is remembered of an unhealthy workload, and after what time
// its Pods should be read; 0 for now. stored is what was found before the process
// started.
func (p *podChecks) check(subject podSubject, stored *podfailure.Failure) (podCheck, time.Duration) {
	now := p.now()
	remembered, _ := p.workloads.Get(subject)
	check, ok := remembered.(podCheck)
	if !ok {
		check = podCheck{next: now.Add(firstPodCheck), pause: firstPodCheck, failure: stored}
		p.workloads.Add(subject, check)
	}
	if wait := check.next.Sub(now); wait > 0 {
		return check, wait
	}
	if !p.budget.AllowN(now, 1) {
		return check, time.Second
	}
	return check, 0
}

// found remembers what was found and returns after what time to read again.
func (p *podChecks) found(subject podSubject, check podCheck) time.Duration {
	check.pause = min(2*check.pause, lastPodCheck)
	check.next = p.now().Add(check.pause)
	p.workloads.Add(subject, check)
	return check.pause
}

// forget ends the checks of a workload that is healthy or gone.
func (p *podChecks) forget(subject podSubject) { p.workloads.Remove(subject) }

// podOwners are the kinds whose Pods are read: those with spec.selector whose
// status has conditions of the form that Kubernetes uses.
var podOwners = map[schema.GroupVersionKind]bool{
	{Group: "apps", Version: "v1", Kind: "Deployment"}:  true,
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:  true,
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}: true,
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:   true,
}

// explain adds to the entry of a workload that stays unhealthy what keeps its Pods
// from running. It returns after what time the workload should be looked at again;
// 0 for never. A member that does not list its Pods leaves the entry as it is.
func (c *controller) explain(ctx context.Context, target holder, stored *workv1alpha1.Work, observed *unstructured.Unstructured, entry *workv1alpha1.ManifestStatus) time.Duration {
	if !podOwners[observed.GroupVersionKind()] {
		return 0
	}
	subject := podSubject{client.ObjectKeyFromObject(stored), entry.Identifier}
	if entry.Health != workv1alpha1.ResourceUnhealthy {
		c.pods.forget(subject)
		return 0
	}
	check, wait := c.pods.check(subject, c.failureStored(stored, entry.Identifier))
	if wait == 0 {
		failure, err := failureIn(ctx, target.Client(), observed, c.pods.now())
		if err != nil {
			klog.FromContext(ctx).V(2).Info("The Pods of an unhealthy workload were not read", "cause", err)
		} else {
			check.failure = failure
		}
		wait = c.pods.found(subject, check)
	}
	if check.failure != nil {
		status, err := check.failure.AddTo(entry.Status)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("The failure of Pods was not added to a status", "cause", err)
			return wait
		}
		entry.Status = status
	}
	return wait
}

// failureStored is what the Work says of the Pods of an object; nil for nothing.
func (c *controller) failureStored(stored *workv1alpha1.Work, identifier workv1alpha1.ResourceIdentifier) *podfailure.Failure {
	statuses := c.reports.Current(stored).Status.ManifestStatuses
	for i := range statuses {
		if statuses[i].Identifier != identifier {
			continue
		}
		if failure, ok := podfailure.In(statuses[i].Status); ok {
			return &failure
		}
	}
	return nil
}
