package nodecapacity

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	workv1alpha2 "karmada.io/karmada/api/work/v1alpha2"
	"karmada.io/karmada/internal/domain/capacity"
)

func quota(hard, used string, change ...func(*corev1.ResourceQuota)) Quota {
	q := &corev1.ResourceQuota{Status: corev1.ResourceQuotaStatus{Hard: list(hard), Used: list(used)}}
	for _, each := range change {
		each(q)
	}
	return NewQuota(q)
}

func scoped(scopes ...corev1.ResourceQuotaScope) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) { q.Spec.Scopes = scopes }
}

func forClass(operator corev1.ScopeSelectorOperator, values ...string) func(*corev1.ResourceQuota) {
	return func(q *corev1.ResourceQuota) {
		if q.Spec.ScopeSelector == nil {
			q.Spec.ScopeSelector = &corev1.ScopeSelector{}
		}
		q.Spec.ScopeSelector.MatchExpressions = append(q.Spec.ScopeSelector.MatchExpressions,
			corev1.ScopedResourceSelectorRequirement{ScopeName: corev1.ResourceQuotaScopePriorityClass, Operator: operator, Values: values})
	}
}

func TestQuotaReplicas(t *testing.T) {
	inClass := func(class, request string) *workv1alpha2.ReplicaRequirements {
		r := requirements(request, nil)
		r.Namespace, r.PriorityClassName = "shop", class
		return r
	}
	assumedIn := func(namespace, class string) capacity.AssumedWorkload {
		c := component(2, "cpu=1")
		c.ReplicaRequirements.PriorityClassName = class
		return capacity.AssumedWorkload{Namespace: namespace, Components: []workv1alpha2.Component{c, {Replicas: 5}}}
	}
	elsewhere := inClass("", "cpu=1")
	elsewhere.Namespace = ""
	tests := map[string]struct {
		quotas       []Quota
		requirements *workv1alpha2.ReplicaRequirements
		assumed      []capacity.AssumedWorkload
		want         int32
	}{
		"no quota":                                  {nil, inClass("", "cpu=1"), nil, Unlimited},
		"no requirements":                           {[]Quota{quota("cpu=1", "cpu=1")}, nil, nil, Unlimited},
		"no namespace":                              {[]Quota{quota("cpu=1", "cpu=1")}, elsewhere, nil, Unlimited},
		"no common resource":                        {[]Quota{quota("memory=1", "memory=0")}, inClass("", "cpu=1"), nil, Unlimited},
		"free is hard minus used":                   {[]Quota{quota("cpu=4", "cpu=1")}, inClass("", "cpu=1"), nil, 3},
		"a full quota":                              {[]Quota{quota("cpu=4", "cpu=5")}, inClass("", "cpu=1"), nil, 0},
		"a quota without usage does not count":      {[]Quota{quota("cpu=4", "")}, inClass("", "cpu=1"), nil, Unlimited},
		"the smallest quota counts":                 {[]Quota{quota("cpu=4", "cpu=0"), quota("memory=2Gi", "memory=0")}, inClass("", "cpu=1 memory=1Gi"), nil, 2},
		"both spellings: the smaller counts":        {[]Quota{quota("cpu=9 requests.cpu=2", "cpu=0 requests.cpu=0")}, inClass("", "cpu=1"), nil, 2},
		"extended resources count":                  {[]Quota{quota("requests.nvidia.com/gpu=2", "requests.nvidia.com/gpu=1")}, inClass("", "nvidia.com/gpu=1"), nil, 1},
		"limits, storage and objects do not count":  {[]Quota{quota("limits.cpu=1 requests.storage=1 pods=1 count/pods=1", "limits.cpu=1 requests.storage=1 pods=1 count/pods=1")}, inClass("", "cpu=1 storage=1 count/pods=1"), nil, Unlimited},
		"more than an int32 is no limit":            {[]Quota{quota("cpu=1E", "cpu=0")}, inClass("", "cpu=1m"), nil, Unlimited},
		"the class matches":                         {[]Quota{quota("cpu=4", "cpu=0", forClass(corev1.ScopeSelectorOpIn, "high"))}, inClass("high", "cpu=1"), nil, 4},
		"the class does not match":                  {[]Quota{quota("cpu=4", "cpu=0", forClass(corev1.ScopeSelectorOpIn, "high"))}, inClass("low", "cpu=1"), nil, Unlimited},
		"any class":                                 {[]Quota{quota("cpu=4", "cpu=0", scoped(corev1.ResourceQuotaScopePriorityClass))}, inClass("low", "cpu=1"), nil, 4},
		"any class requires a class":                {[]Quota{quota("cpu=4", "cpu=0", forClass(corev1.ScopeSelectorOpExists))}, inClass("", "cpu=1"), nil, Unlimited},
		"no class":                                  {[]Quota{quota("cpu=4", "cpu=0", forClass(corev1.ScopeSelectorOpDoesNotExist))}, inClass("", "cpu=1"), nil, 4},
		"another class":                             {[]Quota{quota("cpu=4", "cpu=0", forClass(corev1.ScopeSelectorOpNotIn, "high"))}, inClass("low", "cpu=1"), nil, 4},
		"an unknown operator":                       {[]Quota{quota("cpu=4", "cpu=0", forClass("Like", "high"))}, inClass("high", "cpu=1"), nil, Unlimited},
		"all conditions must match":                 {[]Quota{quota("cpu=4", "cpu=0", forClass(corev1.ScopeSelectorOpExists), forClass(corev1.ScopeSelectorOpNotIn, "high"))}, inClass("high", "cpu=1"), nil, Unlimited},
		"a scope that depends on other properties":  {[]Quota{quota("cpu=4", "cpu=0", scoped(corev1.ResourceQuotaScopePriorityClass, corev1.ResourceQuotaScopeTerminating))}, inClass("high", "cpu=1"), nil, Unlimited},
		"a request of CPU is never best effort":     {[]Quota{quota("cpu=4", "cpu=0", scoped(corev1.ResourceQuotaScopeNotBestEffort))}, inClass("", "cpu=1"), nil, 4},
		"other requests may be best effort":         {[]Quota{quota("requests.x.io/y=4", "requests.x.io/y=0", scoped(corev1.ResourceQuotaScopeNotBestEffort))}, inClass("", "x.io/y=1"), nil, Unlimited},
		"assumed workloads of the namespace count":  {[]Quota{quota("cpu=4", "cpu=0")}, inClass("", "cpu=1"), []capacity.AssumedWorkload{assumedIn("shop", "")}, 2},
		"assumed workloads elsewhere do not count":  {[]Quota{quota("cpu=4", "cpu=0")}, inClass("", "cpu=1"), []capacity.AssumedWorkload{assumedIn("bank", "")}, 4},
		"assumed workloads of a class do not count": {[]Quota{quota("cpu=4", "cpu=0", forClass(corev1.ScopeSelectorOpIn, "high"))}, inClass("high", "cpu=1"), []capacity.AssumedWorkload{assumedIn("shop", "low")}, 4},
		"assumed workloads may exceed the quota":    {[]Quota{quota("cpu=1", "cpu=0")}, inClass("", "cpu=1"), []capacity.AssumedWorkload{assumedIn("shop", "")}, 0},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := QuotaReplicas(test.quotas, test.requirements, test.assumed); got != test.want {
				t.Errorf("%d replicas, want %d", got, test.want)
			}
		})
	}
}

func TestQuotaSets(t *testing.T) {
	high := component(1, "cpu=2")
	high.ReplicaRequirements.PriorityClassName = "high"
	quotas := []Quota{quota("cpu=10", "cpu=0"), quota("cpu=4", "cpu=0", forClass(corev1.ScopeSelectorOpIn, "high"))}
	tests := map[string]struct {
		components []workv1alpha2.Component
		want       int32
	}{
		"no components":                  {nil, Unlimited},
		"components without replicas":    {[]workv1alpha2.Component{component(0, "cpu=1")}, Unlimited},
		"the sum of all components":      {[]workv1alpha2.Component{component(1, "cpu=1"), component(4, "cpu=1")}, 2},
		"only matching components count": {[]workv1alpha2.Component{component(1, "cpu=1"), high}, 2},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if got := QuotaSets(quotas, "shop", test.components, nil); got != test.want {
				t.Errorf("%d sets, want %d", got, test.want)
			}
		})
	}
}
