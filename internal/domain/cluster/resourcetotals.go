package cluster

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// InternedResources is a resource list that is sorted by name and never changed. It is shared, because
// most of a cluster's Pods request one of a few distinct lists.
type InternedResources struct {
	entries []resourceAmount
	text    string
	refs    int
}

type resourceAmount struct {
	name     corev1.ResourceName
	quantity resource.Quantity
}

// resourceTotals are the resource totals of several nodes or Pods.
type resourceTotals struct {
	// entries are sorted by name.
	entries []resourceTotal
	count   int64
}

// resourceTotal is one resource's total over the nodes or Pods that have it.
type resourceTotal struct {
	resourceAmount
	contributors int64
}

func (r *resourceTotals) add(a *InternedResources) {
	r.count++
	for i := range a.entries {
		at := r.indexOf(a.entries[i].name)
		r.entries[at].quantity.Add(a.entries[i].quantity)
		r.entries[at].contributors++
	}
}

func (r *resourceTotals) subtract(a *InternedResources) {
	r.count--
	for i := range a.entries {
		at := r.indexOf(a.entries[i].name)
		r.entries[at].quantity.Sub(a.entries[i].quantity)
		if r.entries[at].contributors--; r.entries[at].contributors == 0 {
			r.entries = slices.Delete(r.entries, at, at+1)
		}
	}
}

// indexOf returns the index of a resource's total. If there is none, indexOf inserts a zero total.
func (r *resourceTotals) indexOf(name corev1.ResourceName) int {
	at, found := r.find(name)
	if !found {
		r.entries = slices.Insert(r.entries, at, resourceTotal{resourceAmount: resourceAmount{name: name}})
	}
	return at
}

func (r *resourceTotals) find(name corev1.ResourceName) (at int, found bool) {
	return slices.BinarySearchFunc(r.entries, name, func(entry resourceTotal, name corev1.ResourceName) int {
		return strings.Compare(string(entry.name), string(name))
	})
}

// quantityOf returns the total of one resource, or 0 if there is none.
func (r *resourceTotals) quantityOf(name corev1.ResourceName) resource.Quantity {
	if at, found := r.find(name); found {
		return r.entries[at].quantity
	}
	return resource.Quantity{}
}

// resourceList returns the totals in the form of a status. If countPods is true, each counted object
// adds one to the resource pods.
func (r *resourceTotals) resourceList(countPods bool) corev1.ResourceList {
	list := corev1.ResourceList{}
	for i := range r.entries {
		list[r.entries[i].name] = r.entries[i].quantity.DeepCopy()
	}
	if countPods && r.count > 0 {
		pods := list[corev1.ResourcePods]
		pods.Add(*resource.NewQuantity(r.count, resource.DecimalSI))
		list[corev1.ResourcePods] = pods
	}
	return list
}
