package binding

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/binding"
	"karmada.io/karmada/internal/domain/conditions"
)

// Failures takes what keeps clusters of a binding from having their Works, by the
// name of the cluster; none when all is well. Where there is no Work no Work can
// tell it.
type Failures interface {
	Set(binding types.UID, failures map[string]string) (changed bool)
	// Conclude tells that all Works of a generation are made, or have failed.
	Conclude(of types.NamespacedName, uid types.UID, generation int64)
	// Forget takes that back: the binding is gone.
	Forget(of types.NamespacedName)
}

// failing hands failures on and takes them back when their binding is gone, of
// which nothing but the name is known then.
type failing struct {
	failures Failures

	mu     sync.Mutex
	failed map[types.NamespacedName]types.UID
}

func newFailing(failures Failures) *failing {
	return &failing{failures: failures, failed: map[types.NamespacedName]types.UID{}}
}

func (f *failing) set(bound binding.Object, failures map[string]string) {
	key := client.ObjectKeyFromObject(bound)
	if f.uid(key) != bound.GetUID() {
		f.forget(key)
	}
	f.mu.Lock()
	if len(failures) > 0 {
		f.failed[key] = bound.GetUID()
	} else {
		delete(f.failed, key)
	}
	f.mu.Unlock()
	f.failures.Set(bound.GetUID(), failures)
}

// conclude tells that the generation that was looked at is dealt with, unless
// something stood in the way of which no cluster was told.
func (f *failing) conclude(bound binding.Object, failures []error) {
	for _, err := range failures {
		var of *clusterError
		if lagging(err) || !errors.As(err, &of) {
			return
		}
	}
	f.failures.Conclude(client.ObjectKeyFromObject(bound), bound.GetUID(), bound.GetGeneration())
}

func (f *failing) uid(key types.NamespacedName) types.UID {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.failed[key]
}

// forget takes back what was said of a binding that is gone.
func (f *failing) forget(key types.NamespacedName) {
	f.failures.Forget(key)
	uid := f.uid(key)
	if uid == "" {
		return
	}
	f.mu.Lock()
	delete(f.failed, key)
	f.mu.Unlock()
	f.failures.Set(uid, nil)
}

// tellProgress tells on the template, which is where users look, what has become
// of overrides, and that what failed before has worked. That Works are written as
// was decided is no news: it is seen in the status.
func (r *reconciler) tellProgress(done *pass, recovered bool) {
	if len(done.overridden) > 0 {
		r.events.Decided(done.template, policyv1alpha1.EventReasonApplyOverridePolicySucceed,
			"Overrides were applied for %s.", counted(len(done.overridden), "cluster"))
		r.reportIdle(done)
	}
	if recovered {
		r.events.Decided(done.template, workv1alpha2.EventReasonSyncWorkSucceed,
			"All Works of binding %s are as they should be, after some could not be written.", done.bound.GetName())
	}
}

// tellSuccess tells those who want to hear of each success that all Works are written.
func (r *reconciler) tellSuccess(done *pass) {
	if len(done.failures) > 0 {
		return
	}
	for _, object := range []client.Object{done.bound, done.template} {
		r.events.Succeeded(object, workv1alpha2.EventReasonSyncWorkSucceed, "All Works of binding %s are as they should be.", done.bound.GetName())
	}
}

// reportIdle records the overriders that found nothing to change.
func (r *reconciler) reportIdle(done *pass) {
	if len(done.idle) == 0 {
		r.events.Recovered(done.template, policyv1alpha1.EventReasonOverrideWithoutEffect)
		return
	}
	slices.Sort(done.idle)
	r.events.Failed(done.template, policyv1alpha1.EventReasonOverrideWithoutEffect,
		errors.New(conditions.Clip(strings.Join(slices.Compact(done.idle), "\n"))))
}

func counted(number int, what string) string {
	if number == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", number, what)
}

// tell tells of failures, unless the same were told before, and reports whether
// there are none after there were some.
func (r *reconciler) tell(object client.Object, reason string, failures []error) (recovered bool) {
	if len(failures) == 0 {
		return r.events.Recovered(object, reason)
	}
	r.events.Failed(object, reason, errors.New(summary(failures)))
	return false
}

// summary says each cause once, with all clusters that it concerns.
func summary(failures []error) string {
	var causes []string
	clusters := map[string][]string{}
	for _, err := range failures {
		cause, of := err.Error(), &clusterError{}
		if errors.As(err, &of) {
			cause = of.err.Error()
			clusters[cause] = append(clusters[cause], of.cluster)
		}
		if len(clusters[cause]) < 2 {
			causes = append(causes, cause)
		}
	}
	lines := make([]string, len(causes))
	for i, cause := range causes {
		switch names := clusters[cause]; len(names) {
		case 0:
			lines[i] = cause
		case 1:
			lines[i] = fmt.Sprintf("cluster %s: %s", names[0], cause)
		default:
			lines[i] = fmt.Sprintf("clusters %s: %s", strings.Join(names, ", "), cause)
		}
	}
	return strings.Join(lines, "\n")
}
