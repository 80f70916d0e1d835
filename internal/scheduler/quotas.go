package scheduler

import (
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	policyv1alpha1 "karmada.io/karmada/api/policy/v1alpha1"
	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/conditions"
	"karmada.io/karmada/internal/domain/quota"
	"karmada.io/karmada/internal/loop"
)

// quotaHandlers returns handlers that enqueue the bindings that a quota refused, when the quota has more
// room or is deleted. Without them, these bindings would wait for the end of their backoff.
func (s *source) quotaHandlers() toolscache.ResourceEventHandler {
	return loop.Handlers[*policyv1alpha1.FederatedResourceQuota]{
		Added: func(*policyv1alpha1.FederatedResourceQuota, bool) {},
		Updated: func(older, newer *policyv1alpha1.FederatedResourceQuota) {
			if quota.HasMoreRoom(older, newer) {
				s.enqueueRefusedByQuota(newer.Namespace)
			}
		},
		Deleted: func(gone *policyv1alpha1.FederatedResourceQuota) { s.enqueueRefusedByQuota(gone.Namespace) },
	}
}

func (s *source) enqueueRefusedByQuota(namespace string) {
	candidates, err := loop.ListBindings(s.ctx, s.scheduler.karmada, true, client.InNamespace(namespace), client.UnsafeDisableDeepCopy)
	if err != nil {
		klog.FromContext(s.ctx).Error(err, "Cannot find the bindings that a quota refused", "namespace", namespace)
		return
	}
	for _, bound := range candidates {
		condition := conditions.Get(bound.BindingStatus().Conditions, workv1alpha2.Scheduled)
		if condition != nil && condition.Reason == workv1alpha2.BindingReasonQuotaExceeded && s.scheduler.handles(bound) {
			s.enqueue(bound, urgencyBackground, causeQuota)
		}
	}
}
