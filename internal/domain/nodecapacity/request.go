package nodecapacity

import (
	"encoding/binary"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	podresources "k8s.io/component-helpers/resource"

	"karmada.io/karmada/internal/domain/capacity"
)

// Request holds the amounts of node resources that a Pod requests.
type Request struct {
	// amounts contains only positive amounts, without the Pod itself.
	amounts map[corev1.ResourceName]int64
	// key is equal for equal amounts.
	key string
}

// RequestOf returns the amounts that kube-scheduler reserves for the Pod: the sum of all containers or
// the largest init container, whichever is larger, plus the overhead. While a Pod is being resized, the
// larger one of the old and the new request counts.
func RequestOf(pod *corev1.Pod) Request {
	list := podresources.PodRequests(pod, podresources.PodResourcesOptions{
		UseStatusResources: true, InPlacePodLevelResourcesVerticalScalingEnabled: true,
	})
	request := Request{amounts: capacity.ResourceAmounts(list)}
	delete(request.amounts, corev1.ResourcePods)
	var key []byte
	for _, name := range slices.Sorted(maps.Keys(request.amounts)) {
		if !capacity.IsNodeResource(name) {
			delete(request.amounts, name)
			continue
		}
		key = binary.AppendVarint(append(append(key, name...), 0), request.amounts[name])
	}
	request.key = string(key)
	return request
}

// requestPool stores equal requests only once, because many Pods have equal requests.
type requestPool map[string]*pooledRequest

type pooledRequest struct {
	Request
	uses int
}

// intern returns the pooled request with the same amounts, or a new one, which acquire adds to the pool.
func (r requestPool) intern(request Request) *pooledRequest {
	if pooled, ok := r[request.key]; ok {
		return pooled
	}
	return &pooledRequest{Request: request}
}

func (r requestPool) acquire(pooled *pooledRequest) {
	r[pooled.key] = pooled
	pooled.uses++
}

func (r requestPool) release(pooled *pooledRequest) {
	if pooled.uses--; pooled.uses == 0 {
		delete(r, pooled.key)
	}
}
