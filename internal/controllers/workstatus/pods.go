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
	// firstPodCheckDelay is how long a workload may be unhealthy before its Pods are read. Most
	// workloads become healthy within this time.
	firstPodCheckDelay = 10 * time.Second
	// maxPodCheckInterval is the maximum interval between two reads of the Pods of a workload. The
	// interval doubles after each read.
	maxPodCheckInterval = 5 * time.Minute
	// podChecksPerSecond is the maximum number of workloads whose Pods are read per second. If more
	// workloads are due, each of them waits for its turn.
	podChecksPerSecond = 5
	// maxTrackedWorkloads is the maximum number of unhealthy workloads in the schedule.
	maxTrackedWorkloads = 10_000
)

// podCheckSchedule decides when the Pods of unhealthy workloads are read, and caches the last
// result. If the cache is lost, the last result is read from the Work.
type podCheckSchedule struct {
	now         func() time.Time
	rateLimiter *rate.Limiter
	// workloads maps a workloadKey to a podCheck.
	workloads *lru.Cache
}

// workloadKey identifies the object of one manifest of a Work.
type workloadKey struct {
	work       types.NamespacedName
	identifier workv1alpha1.ResourceIdentifier
}

type podCheck struct {
	nextRead time.Time
	interval time.Duration
	failure  *podfailure.Failure
	// hasTurn is true if the rate limiter allows the read at nextRead.
	hasTurn bool
}

func newPodCheckSchedule(now func() time.Time) *podCheckSchedule {
	return &podCheckSchedule{
		now: now, rateLimiter: rate.NewLimiter(podChecksPerSecond, podChecksPerSecond), workloads: lru.New(maxTrackedWorkloads),
	}
}

// nextCheck returns the cached result for an unhealthy workload, and the delay until the Pods of
// the workload should be read. 0 means that they should be read now. stored is the result that the
// Work contains from before the start of the process.
func (p *podCheckSchedule) nextCheck(subject workloadKey, stored *podfailure.Failure) (podCheck, time.Duration) {
	now := p.now()
	cached, _ := p.workloads.Get(subject)
	check, ok := cached.(podCheck)
	if !ok {
		check = podCheck{nextRead: now.Add(firstPodCheckDelay), interval: firstPodCheckDelay, failure: stored}
		p.workloads.Add(subject, check)
	}
	if !check.nextRead.After(now) && !check.hasTurn {
		check.hasTurn, check.nextRead = true, now.Add(p.rateLimiter.ReserveN(now, 1).DelayFrom(now))
		p.workloads.Add(subject, check)
	}
	return check, max(check.nextRead.Sub(now), 0)
}

// recordCheck caches a result and returns the delay until the next read of the Pods.
func (p *podCheckSchedule) recordCheck(subject workloadKey, check podCheck) time.Duration {
	check.interval = min(2*check.interval, maxPodCheckInterval)
	check.nextRead, check.hasTurn = p.now().Add(check.interval), false
	p.workloads.Add(subject, check)
	return check.interval
}

// remove ends the checks of a workload that is healthy or deleted.
func (p *podCheckSchedule) remove(subject workloadKey) { p.workloads.Remove(subject) }

// kindsWithPods are the kinds whose Pods are read. Objects of these kinds have spec.selector, and
// their status contains conditions in the usual form of Kubernetes.
var kindsWithPods = map[schema.GroupVersionKind]bool{
	{Group: "apps", Version: "v1", Kind: "Deployment"}:  true,
	{Group: "apps", Version: "v1", Kind: "ReplicaSet"}:  true,
	{Group: "apps", Version: "v1", Kind: "StatefulSet"}: true,
	{Group: "apps", Version: "v1", Kind: "DaemonSet"}:   true,
}

// addPodFailure adds the reason why the Pods of an unhealthy workload do not run to its status. It
// returns the delay until the next pass, or 0 if no further pass is needed. If the Pods cannot be
// listed, it does not change the status.
func (c *controller) addPodFailure(ctx context.Context, target memberAccess, stored *workv1alpha1.Work, observed *unstructured.Unstructured,
	entry *workv1alpha1.ManifestStatus) time.Duration {
	if !kindsWithPods[observed.GroupVersionKind()] {
		return 0
	}
	key := workloadKey{client.ObjectKeyFromObject(stored), entry.Identifier}
	if entry.Health != workv1alpha1.ResourceUnhealthy {
		c.podChecks.remove(key)
		return 0
	}
	check, wait := c.podChecks.nextCheck(key, c.storedPodFailure(stored, entry.Identifier))
	if wait == 0 {
		failure, err := readPodFailure(ctx, target.Client(), observed, c.podChecks.now())
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot read the Pods of an unhealthy workload", "cause", err)
		} else {
			check.failure = failure
		}
		wait = c.podChecks.recordCheck(key, check)
	}
	if check.failure != nil {
		status, err := check.failure.AddTo(entry.Status)
		if err != nil {
			klog.FromContext(ctx).V(2).Info("Cannot add the failure of Pods to a status", "cause", err)
			return wait
		}
		entry.Status = status
	}
	return wait
}

// storedPodFailure returns the failure of Pods that the Work contains for an object, or nil if
// there is none.
func (c *controller) storedPodFailure(stored *workv1alpha1.Work, identifier workv1alpha1.ResourceIdentifier) *podfailure.Failure {
	statuses := c.reports.Latest(stored).Status.ManifestStatuses
	for i := range statuses {
		if statuses[i].Identifier != identifier {
			continue
		}
		if failure, ok := podfailure.FromStatus(statuses[i].Status); ok {
			return &failure
		}
	}
	return nil
}
